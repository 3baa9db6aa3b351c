//! `eye`, `tril` and `triu`: matrices by where an element stands to the diagonal.

use super::indexed::{produce, produce_from};
use keyway_cpu_loops::Cost;
use keyway_sdk::author::{Call, Element, Error};
use keyway_sdk::half::{bf16, f16};

/// Rows and columns of the matrices in a shape.
fn matrix(sizes: &[i64]) -> (usize, usize) {
    match sizes {
        [.., rows, columns] => (*rows as usize, *columns as usize),
        _ => (1, 1),
    }
}

fn eye<T: Element>(call: &Call) -> Result<(), Error> {
    let out = call.out::<T>(0)?;
    let (rows, columns) = matrix(out.sizes());
    produce(out, Cost::Cheap, |first, values| {
        for (i, value) in values.iter_mut().enumerate() {
            let at = first + i;
            *value = T::from_i64(i64::from((at / columns) % rows == at % columns));
        }
    })
}

/// Keeps the elements whose column less their row, less `diagonal`, is as `keep` says.
fn part<T: Element>(call: &Call, keep: impl Fn(i64) -> bool + Sync) -> Result<(), Error> {
    let diagonal = call.int(1)?;
    let (input, out) = (call.view::<T>(0)?, call.out::<T>(0)?);
    let (rows, columns) = matrix(out.sizes());
    produce_from(input, out, Cost::Cheap, |first, read, values| {
        for (i, (value, &x)) in values.iter_mut().zip(read).enumerate() {
            let at = first + i;
            let right = (at % columns) as i64 - ((at / columns) % rows) as i64;
            *value = if keep(right.saturating_sub(diagonal)) { x } else { T::default() };
        }
    })
}

fn tril<T: Element>(call: &Call) -> Result<(), Error> {
    part::<T>(call, |right| right <= 0)
}

fn triu<T: Element>(call: &Call) -> Result<(), Error> {
    part::<T>(call, |right| right >= 0)
}

kernel!("eye", "T>T", eye, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("tril", "Ti>T", tril, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("triu", "Ti>T", triu, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);

//! `mv` and `dot`: products with one or two vector operands.

use super::gemv;
use super::product::{Matrix, Multiply, Tile, multiply_one};
use keyway_cpu_loops::vectors::Lanes;
use keyway_sdk::author::{Call, Error, View, c64, c128};
use keyway_sdk::half::{bf16, f16};

fn step<T: Multiply>(view: View<'_, T>, dim: usize) -> usize {
    view.strides().get(dim).map_or(0, |&s| s.max(0) as usize)
}

fn mv<T: Multiply>(call: &Call) -> Result<(), Error> {
    let (a, x, mut out) = (call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?);
    let out_step = out.strides().first().map_or(1, |&s| s.max(0) as usize);
    let whole = Tile {
        rows: out.numel(),
        columns: 1,
        inner: x.numel(),
        a: Matrix { data: a.as_ptr(), row: step(a, 0), column: step(a, 1) },
        b: Matrix { data: x.as_ptr(), row: step(x, 0), column: 0 },
        out: Matrix { data: out.as_mut_ptr(), row: out_step, column: 1 },
        input: None,
        alpha: T::from_i64(1),
    };
    // SAFETY: sizes and strides are those of the call's tensors, which the op's rule has checked against each other and
    // whose elements the host guarantees.
    unsafe { multiply_one(&whole) }
}

fn dot<T: Multiply>(call: &Call) -> Result<(), Error> {
    let (a, b, mut out) = (call.view::<T>(0)?, call.view::<T>(1)?, call.out::<T>(0)?);
    let whole = Tile {
        rows: 1,
        columns: 1,
        inner: a.numel().min(b.numel()),
        a: Matrix { data: a.as_ptr(), row: 0, column: step(a, 0) },
        b: Matrix { data: b.as_ptr(), row: step(b, 0), column: 0 },
        out: Matrix { data: out.as_mut_ptr(), row: 1, column: 1 },
        input: None,
        alpha: T::from_i64(1),
    };
    // SAFETY: as in `mv`.
    unsafe { multiply_one(&whole) }
}

/// [`dot`] of floats, which are read in place if contiguous.
fn dot_real<T: Multiply + Lanes>(call: &Call) -> Result<(), Error> {
    let (a, b) = (call.view::<T>(0)?, call.view::<T>(1)?);
    let n = a.numel().min(b.numel());
    if n > 1 && (step(a, 0), step(b, 0)) != (1, 1) {
        return dot::<T>(call);
    }
    // SAFETY: the host guarantees the elements of both, and that of the output.
    unsafe {
        let sum = gemv::dot(a.as_ptr(), b.as_ptr(), n)?;
        call.out::<T>(0)?.as_mut_ptr().write(T::from_acc(sum));
    }
    Ok(())
}

kernel!("mv", "TT>T", mv, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]);
kernel!("dot", "TT>T", dot_real, [f32, f64, f16, bf16]);
kernel!("dot", "TT>T", dot, [i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]);

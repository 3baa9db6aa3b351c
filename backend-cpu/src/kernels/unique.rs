//! `unique`

use super::cells::Cells;
use super::order::{Key, Ranking};
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};

fn unique<T: Key>(call: &Call) -> Result<(), Error> {
    let from = Cells::<T>::argument(call, 0)?;
    let n = from.numel();
    // SAFETY: the plan makes the argument contiguous, so its elements are the `n` at this address.
    let read = |i: usize| unsafe { from.lanes.read(i) };
    let (mut values, mut counts): (Vec<T>, Vec<i64>) = (Vec::new(), Vec::new());
    let mut inverse = vec![0i64; if call.bool(1)? { n } else { 0 }];
    Ranking::default().rank(n, n, false, read, |_, i| {
        let value = read(i);
        // NaN differs from itself, so each is a value of its own.
        if values.last() != Some(&value) {
            values.push(value);
            counts.push(0);
        }
        if let Some(count) = counts.last_mut() {
            *count += 1;
        }
        if let Some(place) = inverse.get_mut(i) {
            *place = values.len() as i64 - 1;
        }
    });
    let mut made = call.new_tensor::<T>(&[values.len() as i64])?;
    made.view_mut::<T>()?.assign(values);
    call.set_output(0, made)?;
    let given = call.tensor(0)?;
    let sizes = if call.bool(1)? { given.sizes() } else { &[0] };
    let mut made = call.new_tensor::<i64>(sizes)?;
    made.view_mut::<i64>()?.assign(inverse);
    call.set_output(1, made)?;
    let counts = if call.bool(2)? { counts } else { Vec::new() };
    let mut made = call.new_tensor::<i64>(&[counts.len() as i64])?;
    made.view_mut::<i64>()?.assign(counts);
    call.set_output(2, made)
}

keyway_sdk::register_kernel! {
    op: "unique", signature: "Tbb>TTT", device: "cpu", layout: "strided",
    flags: allocates,
    f32 => unique::<f32>, f64 => unique::<f64>, f16 => unique::<f16>, bf16 => unique::<bf16>,
    i8 => unique::<i8>, i16 => unique::<i16>, i32 => unique::<i32>, i64 => unique::<i64>,
    u8 => unique::<u8>, u16 => unique::<u16>, u32 => unique::<u32>, u64 => unique::<u64>,
    bool => unique::<bool>
}

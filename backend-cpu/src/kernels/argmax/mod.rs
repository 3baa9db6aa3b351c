//! `argmax`, `argmin`, `max` and `min`: the index of the first extreme along a dimension; NaN propagates.
//!
//! Decisions:
//! - a row is searched in two steps: the extreme of each block is reduced by lanes without its index, then the index is
//!   searched in the one block that contains the extreme. Lanes of indices beside lanes of values were rejected, since
//!   indices have eight bytes;
//! - f16 and bf16 are compared as integers with the same order;
//! - the search ends early at an element that nothing can exceed: NaN, true, or the largest value of an integer type.

mod rank;
mod search;

use super::cells::is_dense;
use super::dims::dim;
use keyway_cpu_loops::CallExt;
use keyway_sdk::author::{Call, Error};
use keyway_sdk::half::{bf16, f16};
use rank::Ranked;
use search::search;

/// The size of the dimension in argument 1 (of all elements if it is absent), and the product of the sizes of the inner
/// dimensions.
fn split(call: &Call) -> Result<(usize, usize), Error> {
    let tensor = call.tensor(0)?;
    let sizes = tensor.sizes();
    if call.is_none(1)? || sizes.is_empty() {
        return Ok((tensor.numel(), 1));
    }
    let dim = dim(call, 1, sizes.len())?;
    let inner = sizes.iter().skip(dim + 1).map(|n| *n as usize).product();
    Ok((sizes.get(dim).map_or(1, |n| *n as usize), inner))
}

/// [`split`] in memory order, if the elements are dense in an order other than row-major and the results have the same
/// order.
fn split_in_memory_order(call: &Call) -> Result<Option<(usize, usize)>, Error> {
    let tensor = call.tensor(0)?;
    let (sizes, strides) = (tensor.sizes(), tensor.strides());
    if call.is_none(1)? || tensor.numel() == 0 || !is_dense(sizes, strides) {
        return Ok(None);
    }
    let dim = dim(call, 1, sizes.len())?;
    let others = || (0..sizes.len()).filter(|d| *d != dim && sizes[*d] > 1).map(|d| strides[d]);
    let falling = others().zip(others().skip(1)).all(|(a, b)| a > b);
    let apart =
        (0..call.n_outputs()).all(|i| call.output(i).is_ok_and(|o| o.data_ptr() != tensor.data_ptr()));
    let n = sizes.get(dim).copied().unwrap_or(1);
    Ok((falling && apart && n > 1).then(|| (n as usize, strides[dim] as usize)))
}

/// Calls `with` with the elements of argument 0, the size of the dimension and the inner size.
fn read<T: Ranked>(
    call: &Call,
    with: impl FnOnce(&[T::Stored], (usize, usize)) -> Result<(), Error>,
) -> Result<(), Error> {
    if let Some(split) = split_in_memory_order(call)? {
        let tensor = call.tensor(0)?;
        // SAFETY: the elements are contiguous and have the type that this kernel is registered for; no output is the
        // argument.
        let input =
            unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast_const().cast(), tensor.numel()) };
        return with(input, split);
    }
    T::read(call, |input| if input.is_empty() { Ok(()) } else { with(input, split(call)?) })
}

fn place<T: Ranked, const MAX: bool>(call: &Call) -> Result<(), Error> {
    read::<T>(call, |input, split| search::<T, MAX>(input, split, &mut call.contiguous_out::<i64>(0)?))
}

fn both<T: Ranked, const MAX: bool>(call: &Call) -> Result<(), Error> {
    read::<T>(call, |input, (n, inner)| {
        let mut places = call.contiguous_out::<i64>(1)?;
        search::<T, MAX>(input, (n, inner), &mut places)?;
        let places = &places[..];
        T::write(call, |i| input[(i / inner * n + places[i] as usize) * inner + i % inner])
    })
}

fn argmax<T: Ranked>(call: &Call) -> Result<(), Error> {
    place::<T, true>(call)
}

fn argmin<T: Ranked>(call: &Call) -> Result<(), Error> {
    place::<T, false>(call)
}

fn max<T: Ranked>(call: &Call) -> Result<(), Error> {
    both::<T, true>(call)
}

fn min<T: Ranked>(call: &Call) -> Result<(), Error> {
    both::<T, false>(call)
}

kernel!("argmax", "Tib>T", argmax, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("argmin", "Tib>T", argmin, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("max", "Tib>TT", max, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);
kernel!("min", "Tib>TT", min, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool]);

//! `mean`

use super::reduction::{reduce, reduced};
use super::sum::FloatSum;
use keyway_sdk::author::{Call, Element, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn mean<T: Float>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let mask = reduced(call, 1, input)?;
    let count: usize = input
        .sizes()
        .iter()
        .enumerate()
        .filter(|(i, _)| mask >> i & 1 != 0)
        .map(|(_, n)| *n as usize)
        .product();
    let count = T::Acc::from_f64(count as f64);
    reduce(input, mask, call.out(0)?, &FloatSum::<T, true>::NEW, |acc| T::from_acc(acc / count))
}

kernel!("mean", "TIb>T", mean, [f32, f64, f16, bf16]);

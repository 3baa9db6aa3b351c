//! `mean`

use super::reduction::{reduce, reduced, reduced_count};
use super::sum::FloatSum;
use keyway_sdk::author::{Call, Element, Error, Float};
use keyway_sdk::half::{bf16, f16};

fn mean<T: Float>(call: &Call) -> Result<(), Error> {
    let input = call.view::<T>(0)?;
    let mask = reduced(call, 1, input)?;
    let count = T::Acc::from_f64(reduced_count(input.sizes(), mask) as f64);
    reduce(input, mask, call.out(0)?, &FloatSum::<T, true>::NEW, |acc| T::from_acc(acc / count))
}

kernel!("mean", "TIb>T", mean, [f32, f64, f16, bf16]);

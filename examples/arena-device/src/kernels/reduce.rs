//! `sum`, `mean`, `amax` and `argmax`.

use super::kernel;
use crate::arena::Cell;
use crate::operand::reduce;
use keyway_sdk::author::{Call, Error, Real};

/// The dimensions in argument 1, if they were given.
fn dims<'a>(call: &Call<'a>) -> Result<Option<&'a [i64]>, Error> {
    if call.is_none(1)? { Ok(None) } else { call.ints(1).map(Some) }
}

fn sum<T: Real + Cell>(call: &Call<'_>) -> Result<(), Error> {
    reduce(call, dims(call)?, |terms| T::from_f64(terms.map(|(_, x): (_, T)| x.to_f64()).sum()))
}

/// The host would compose it from `sum` and `div`, whose rounded sum loses digits where the mean is far from 0.
fn mean<T: Real + Cell>(call: &Call<'_>) -> Result<(), Error> {
    reduce(call, dims(call)?, |terms| {
        let (count, sum) =
            terms.fold((0.0, 0.0), |(count, sum), (_, x): (_, T)| (count + 1.0, sum + x.to_f64()));
        T::from_f64(sum / count)
    })
}

/// Integers and bools are summed as `i64`.
fn sum_int<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    reduce(call, dims(call)?, |terms| terms.fold(0i64, |sum, (_, x): (_, T)| sum.wrapping_add(x.to_i64())))
}

/// The maximum with its index, the first of several; the first NaN if there is one. The op's rule has checked that there are
/// elements.
#[allow(clippy::eq_op)]
fn largest<T: Cell>(terms: &mut dyn Iterator<Item = (usize, T)>) -> (usize, T) {
    let best = terms.reduce(|best, next| {
        let (a, b) = (best.1, next.1);
        if a == a && (b > a || b != b) { next } else { best }
    });
    best.unwrap_or_default()
}

fn amax<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    reduce(call, dims(call)?, |terms| largest::<T>(terms).1)
}

fn argmax<T: Cell>(call: &Call<'_>) -> Result<(), Error> {
    // One dimension, or `None` for all elements.
    let dim = if call.is_none(1)? { None } else { Some([call.int(1)?]) };
    reduce(call, dim.as_ref().map(|dim| dim.as_slice()), |terms| largest::<T>(terms).0 as i64)
}

kernel!("sum", "TIb>T", [
    f32 => sum::<f32>, f64 => sum::<f64>, i64 => sum_int::<i64>, bool => sum_int::<bool>,
]);
kernel!("mean", "TIb>T", [f32 => mean::<f32>, f64 => mean::<f64>]);
kernel!("amax", "TIb>T", [f32 => amax::<f32>, f64 => amax::<f64>, i64 => amax::<i64>]);
kernel!("argmax", "Tib>T", [f32 => argmax::<f32>, f64 => argmax::<f64>, i64 => argmax::<i64>]);

//! Full reductions of long periodic vectors. The result of many periods follows from that of one, by a law that the oracle
//! confirms on short vectors, since it would take seconds for millions of elements.

use super::super::Context;
use super::elements::{PERIOD, repeated, vector};
use super::vectors::{positive, vectors};
use crate::array::{Array, Number};
use crate::call::Prepared;
use crate::compare::{self, Tolerance};
use crate::families::factor;
use crate::inputs;
use crate::oracle::{self, Inputs, Oracle};
use crate::outcome::{Steps, Stop};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::ops::def::OpDef;
use keyway::ops::sample::Sample;

/// The relative error of a sum of millions of values in f32, which may be added sequentially, in units of the tolerance.
const LOOSE: f64 = 1000.0;

/// How the result of a repeated vector follows from the results of the period and of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    /// It is that of the period: a maximum and its index.
    Same,
    /// It is the sum of the results of the parts: a sum, a count.
    Sum,
    /// It is the mean of the results, weighted by the lengths.
    Mean,
}

impl Law {
    const ALL: [Law; 3] = [Law::Same, Law::Sum, Law::Mean];

    /// The result of `count` elements from that of `period` elements and that of the remaining ones.
    fn apply(self, count: usize, period: usize, whole: Number, rest: Number) -> Number {
        let (times, left) = (count / period, count % period);
        match (self, whole, rest) {
            (Law::Same, whole, _) => whole,
            (Law::Sum, Number::Int(whole), Number::Int(rest)) => {
                Number::Int(whole.wrapping_mul(times as i128).wrapping_add(rest))
            }
            (Law::Sum, whole, rest) => Number::Float(whole.float() * times as f64 + rest.float()),
            (Law::Mean, whole, rest) => {
                let sum = whole.float() * (times * period) as f64 + rest.float() * left as f64;
                Number::Float(sum / count as f64)
            }
        }
    }
}

/// Whether two results are equal, except for the rounding of the oracle's own sums.
fn equal(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Float(a), Number::Float(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        (a, b) => a == b,
    }
}

/// The law of an op whose results the oracle computes by `value` from the number of elements.
fn law(period: usize, value: &dyn Fn(usize) -> Option<Number>) -> Option<Law> {
    let whole = value(period)?;
    let mut laws = Law::ALL.to_vec();
    for count in [2 * period + 2, 3 * period + period / 2] {
        let (expected, rest) = (value(count)?, value(count % period)?);
        laws.retain(|law| equal(law.apply(count, period, whole, rest), expected));
    }
    laws.first().copied()
}

/// The result of one element for the first elements of the inputs, repeated.
fn result(oracle: Oracle, inputs: &Inputs, count: usize) -> Option<Array> {
    let made = oracle(&prefix(inputs, count)).ok()?;
    match <[Array; 1]>::try_from(made) {
        Ok([one]) if one.numel() == 1 => Some(one),
        _ => None,
    }
}

/// Whether the results of long vectors follow from those of short ones.
pub fn has_law(def: &OpDef, sample: &Sample, dtype: DType) -> bool {
    const FEW: usize = 7;
    let (Some(oracle), Ok(sample)) = (oracle::find(def.name()), vectors(sample, FEW)) else { return false };
    let inputs = inputs(&sample, dtype, 0);
    law(FEW, &|count| Some(result(oracle, &inputs, count)?.values[0])).is_some()
}

/// Calls the op on a vector of this length.
pub fn run(context: &Context<'_>, sample: &Sample, length: usize) -> Steps {
    let (def, oracle) = (context.def()?, context.oracle()?);
    let whole = inputs(&vectors(sample, PERIOD)?, context.dtype(), context.sample_seed());
    let value = |count: usize| Some(result(oracle, &whole, count)?.values[0]);
    let none =
        || Stop::Skipped("the result of a long vector does not follow from those of its parts".to_string());
    let law = law(PERIOD, &value).ok_or_else(none)?;
    let of_period = result(oracle, &whole, PERIOD).ok_or_else(none)?;
    let rest = value(length % PERIOD).ok_or_else(none)?;
    let expected = law.apply(length, PERIOD, of_period.values[0], rest);
    let expected = Array::new(of_period.dtype, of_period.sizes.clone(), vec![expected]);
    let mut tensors = Vec::new();
    let mut failed = Ok(());
    inputs::map_arrays(&mut whole.clone(), |array| {
        let made = repeated(array, length, context.target.device)
            .and_then(|storage| vector(storage, length, array.dtype));
        match made {
            Ok(tensor) => tensors.push(tensor),
            Err(error) => failed = Err(error),
        }
    });
    failed?;
    let made = Prepared::unplaced(&whole).call_with(def, &tensors, Out::New);
    let got = made.map_err(|error| context.refused(error))?;
    let tolerance = Tolerance::of(expected.dtype).times(factor(def, sample) * LOOSE);
    Ok(compare::each(&[expected], &got, |_| tolerance)?)
}

fn inputs(sample: &Sample, dtype: DType, seed: u64) -> Inputs {
    let mut inputs = inputs::of_sample(&sample.args, dtype, seed);
    inputs::map_arrays(&mut inputs, |array| {
        array.values.iter_mut().for_each(|value| *value = positive(*value));
    });
    inputs
}

/// The inputs with the first elements of the repeated vectors.
fn prefix(inputs: &Inputs, count: usize) -> Inputs {
    let mut inputs = inputs.clone();
    inputs::map_arrays(&mut inputs, |array| {
        let values = array.values.iter().copied().cycle().take(count).collect();
        *array = Array::new(array.dtype, [count], values);
    });
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_parts_are_combined_by_the_law() {
        let (whole, rest) = (Number::Int(10), Number::Int(3));
        assert_eq!(Law::Sum.apply(2 * 7 + 2, 7, whole, rest), Number::Int(23));
        assert_eq!(Law::Same.apply(16, 7, whole, rest), whole);
        let mean = Law::Mean.apply(16, 7, Number::Float(2.0), Number::Float(1.0));
        assert!(equal(mean, Number::Float(30.0 / 16.0)), "{mean:?}");
        assert!(!equal(Number::Float(1.0), Number::Float(1.0001)));
    }
}

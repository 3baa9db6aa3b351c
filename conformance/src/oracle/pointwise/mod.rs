//! Element-wise ops.
//!
//! An op promotes its operands, casts them to the promoted dtype and computes in f64 or in integers from there. If a result
//! depends on more than the mathematics (NaN, infinities, signed zeros, the order of a formula's operations), it is that of
//! PyTorch's reference documentation and CPU kernels.

pub(super) mod activation;
pub(super) mod arithmetic;
pub(super) mod gamma;
pub(super) mod logic;
pub(super) mod pair;
pub(super) mod real;
pub(super) mod rounding;
pub(crate) mod special;

use super::{Inputs, Unknown};
use crate::array::{Array, Number, round_to, wrapped};
use keyway::DType;

/// The result of an oracle.
pub(super) type Outcome = Result<Vec<Array>, Unknown>;

/// The shape that shapes broadcast to.
pub fn broadcast(shapes: &[&[usize]]) -> Result<Vec<usize>, Unknown> {
    let ndim = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut result = vec![1; ndim];
    for shape in shapes {
        for (r, &size) in result[ndim - shape.len()..].iter_mut().zip(*shape) {
            match (*r, size) {
                (_, 1) => {}
                (1, _) => *r = size,
                (a, b) if a == b => {}
                _ => return Err(Unknown(format!("shapes {shapes:?} do not broadcast"))),
            }
        }
    }
    Ok(result)
}

/// The error that there is no expected value.
pub(super) fn unknown<T>(why: &str) -> Result<T, Unknown> {
    Err(Unknown(why.to_string()))
}

/// The dtype in which an op with real results computes: f32 for integers and bool.
pub(super) fn float_of(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

/// Whether an intermediate value of a formula is out of the range of `dtype` although its inputs, `from`, are finite. The
/// rest of the formula then depends on the precision and the order of the computation, which no op specifies, so that any
/// value is accepted.
pub(crate) fn leaves_range(dtype: DType, step: f64, from: &[f64]) -> bool {
    from.iter().all(|v| v.is_finite()) && round_to(step, dtype).is_infinite()
}

/// The float, or `Any` if the op leaves the result `open`.
pub(super) fn float_unless(open: bool, value: f64) -> Number {
    if open { Number::Any } else { Number::Float(value) }
}

/// Broadcasts these arrays and applies `element` to the elements at each index. Integers wrap to the range of `dtype`.
pub(super) fn each<const N: usize>(
    operands: [&Array; N],
    dtype: DType,
    mut element: impl FnMut([Number; N]) -> Result<Number, Unknown>,
) -> Outcome {
    let sizes = broadcast(&operands.map(|a| a.sizes.as_slice()))?;
    let mut operands = operands.map(|a| a.spread(&sizes));
    let mut values = Vec::with_capacity(sizes.iter().product());
    for _ in 0..values.capacity() {
        let these = operands.each_mut().map(|operand| operand.next().unwrap_or(Number::Any));
        values.push(match element(these)? {
            Number::Int(v) => Number::Int(wrapped(v, dtype)),
            v => v,
        });
    }
    Ok(vec![Array::new(dtype, sizes.clone(), values)])
}

/// Applies `real` to floats or `whole` to integers of the first argument, in its own dtype. Bool is refused.
fn number(inputs: &Inputs, real: fn(f64) -> f64, whole: fn(i128) -> i128) -> Outcome {
    let a = inputs.array(0)?;
    each([a], a.dtype, |[v]| match v {
        Number::Float(v) => Ok(Number::Float(real(v))),
        Number::Int(v) => Ok(Number::Int(whole(v))),
        _ => unknown("it takes numbers"),
    })
}

/// Applies `real` to floats or `whole` to integers of the first two arguments, promoted. Bool is refused.
fn numbers(
    inputs: &Inputs,
    real: impl Fn(f64, f64) -> f64,
    whole: impl Fn(i128, i128) -> Result<i128, Unknown>,
) -> Outcome {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b) = (inputs.operand_in(0, dtype)?, inputs.operand_in(1, dtype)?);
    each([&a, &b], dtype, |pair| match pair {
        [Number::Float(x), Number::Float(y)] => Ok(Number::Float(real(x, y))),
        [Number::Int(x), Number::Int(y)] => whole(x, y).map(Number::Int),
        _ => unknown("it takes numbers"),
    })
}

/// The first argument as floats, integers and bool as f32; `real` of each.
fn reals(inputs: &Inputs, real: fn(f64) -> f64) -> Outcome {
    let a = inputs.array(0)?;
    let dtype = float_of(a.dtype);
    each([&a.cast(dtype)], dtype, |[v]| Ok(Number::Float(real(v.float()))))
}

/// The first two arguments, promoted, integers and bool as f32; `real` of each pair.
fn real_pairs(inputs: &Inputs, real: impl Fn(f64, f64) -> f64) -> Outcome {
    real_pairs_of(inputs, |_, x, y| Number::Float(real(x, y)))
}

/// As [`real_pairs`], with the dtype passed to `real`.
fn real_pairs_of(inputs: &Inputs, real: impl Fn(DType, f64, f64) -> Number) -> Outcome {
    let dtype = float_of(inputs.promote(&[0, 1])?);
    let (a, b) = (inputs.operand_in(0, dtype)?, inputs.operand_in(1, dtype)?);
    each([&a, &b], dtype, |[x, y]| Ok(real(dtype, x.float(), y.float())))
}

/// A bound in argument `i`, unrounded: one outside of an integer dtype's range does not clamp. With `below`, a bound on the
/// side that would clamp everything is refused.
fn number_bounds(inputs: &Inputs, i: usize, dtype: DType, below: bool) -> Result<Option<Number>, Unknown> {
    if inputs.is_none(i) {
        return Ok(None);
    }
    let bound = inputs.number(i)?;
    match dtype.integer_range() {
        Some((low, high)) if if below { bound.int() < low } else { bound.int() > high } => {
            unknown("the bound is beyond the dtype's range")
        }
        _ => Ok(Some(bound)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Value, find};

    /// The values of the oracle of `op` for these f64 arguments.
    pub fn floats(op: &str, args: &[&[f64]], rest: &[Value]) -> Vec<f64> {
        let arrays = args.iter().map(|a| {
            let values = a.iter().copied().map(Number::Float).collect();
            Value::Array(Array::new(DType::F64, vec![a.len()], values))
        });
        let inputs = Inputs(arrays.chain(rest.iter().cloned()).collect());
        find(op).expect("an oracle")(&inputs).expect("an answer")[0].floats()
    }

    /// The values of the oracle of `op` for these integer arguments, or the reason why there are none.
    pub fn ints(op: &str, dtype: DType, args: &[&[i128]], rest: &[Value]) -> Result<Vec<i128>, Unknown> {
        let arrays = args.iter().map(|a| {
            let values = a.iter().copied().map(Number::Int).collect();
            Value::Array(Array::new(dtype, vec![a.len()], values))
        });
        let inputs = Inputs(arrays.chain(rest.iter().cloned()).collect());
        Ok(find(op).expect("an oracle")(&inputs)?[0].ints())
    }

    #[test]
    fn shapes_broadcast_from_the_right() {
        assert_eq!(broadcast(&[&[2, 1, 4], &[3, 1]]), Ok(vec![2, 3, 4]));
        assert_eq!(broadcast(&[&[0, 4], &[1, 4], &[]]), Ok(vec![0, 4]));
        assert!(broadcast(&[&[2, 3], &[2]]).is_err());
    }
}

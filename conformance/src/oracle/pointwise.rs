//! Ops that work on each element by itself.

use super::{Family, Inputs, Unknown};
use crate::array::{Array, Number};

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

/// `self + alpha * other`.
fn add(inputs: &Inputs) -> Result<Vec<Array>, Unknown> {
    let dtype = inputs.promote(&[0, 1])?;
    let (a, b, alpha) = (inputs.operand(0)?.cast(dtype), inputs.operand(1)?.cast(dtype), inputs.number(2)?);
    let sizes = broadcast(&[&a.sizes, &b.sizes])?;
    Ok(vec![Array::from_fn(dtype, sizes, |index| match (a.broadcast_at(index), b.broadcast_at(index)) {
        (Number::Float(x), Number::Float(y)) => Number::Float(x + alpha.float() * y),
        (Number::Bool(x), Number::Bool(y)) => Number::Bool(x | (y & alpha.truth())),
        (x, y) => Number::Int(x.int() + alpha.int() * y.int()),
    })])
}

/// The family.
pub const ALL: Family = &[("add", add)];

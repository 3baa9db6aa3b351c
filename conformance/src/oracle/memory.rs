//! Ops that copy values.

use super::pointwise::{Outcome, each, unknown};
use super::{Family, Inputs, Unknown};
use crate::array::Array;

/// The same values, in another layout or on another device.
fn same(inputs: &Inputs) -> Outcome {
    Ok(vec![inputs.array(0)?.clone()])
}

/// The same values in another memory format.
fn clone(inputs: &Inputs) -> Outcome {
    match inputs.str(1)? {
        "preserve" | "contiguous" => same(inputs),
        "channels_last" if (3..=5).contains(&inputs.array(0)?.ndim()) => same(inputs),
        other => Err(Unknown(format!("the tensor has no memory format `{other}`"))),
    }
}

/// The values of the second argument, broadcast to the first's sizes and cast to its dtype.
fn copy(inputs: &Inputs) -> Outcome {
    let (target, source) = (inputs.array(0)?, inputs.array(1)?);
    let made = each([target, &source.cast(target.dtype)], target.dtype, |[_, v]| Ok(v))?;
    if made[0].sizes == target.sizes { Ok(made) } else { unknown("the source is larger than the target") }
}

/// Fills with a number, as an element of the dtype.
fn fill(inputs: &Inputs) -> Outcome {
    let (like, value) = (inputs.array(0)?, inputs.number(1)?.cast(inputs.array(0)?.dtype));
    Ok(vec![Array::from_fn(like.dtype, like.sizes.clone(), |_| value)])
}

/// The values in another dtype.
fn to_dtype(inputs: &Inputs) -> Outcome {
    let a = inputs.array(0)?;
    Ok(vec![a.cast(inputs.optional_dtype(1)?.unwrap_or(a.dtype))])
}

/// The ops of this family.
pub const ALL: Family = &[
    ("clone", clone),
    ("copy", copy),
    ("fill", fill),
    ("pin_memory", same),
    ("sparse_mask_like", same),
    ("to_device", same),
    ("to_dtype", to_dtype),
    ("to_layout", same),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Number;
    use crate::oracle::{Value, find};
    use keyway::DType;

    fn made(op: &str, args: &[Value]) -> Array {
        find(op).expect("an oracle")(&Inputs(args.to_vec())).expect("an answer").remove(0)
    }

    fn floats(values: &[f64]) -> Value {
        Value::Array(Array::new(
            DType::F64,
            [values.len()],
            values.iter().copied().map(Number::Float).collect(),
        ))
    }

    #[test]
    fn casts() {
        let to = |dtype| made("to_dtype", &[floats(&[1.9, -1.9, f64::NAN]), Value::DType(dtype)]).values;
        assert_eq!(to(DType::I32), [Number::Int(1), Number::Int(-1), Number::Any]);
        assert_eq!(to(DType::BOOL), [Number::Bool(true); 3]);
        assert_eq!(to(DType::BF16)[0], Number::Float(1.898_437_5));
    }

    #[test]
    fn sources_broadcast_to_their_target() {
        assert_eq!(made("copy", &[floats(&[0.0; 3]), floats(&[2.5])]).floats(), [2.5; 3]);
        assert!(copy(&Inputs(vec![floats(&[0.0]), floats(&[1.0, 2.0])])).is_err());
        let bytes = Value::Array(Array::new(DType::U8, [2], vec![Number::Int(0); 2]));
        assert_eq!(made("fill", &[bytes, Value::Float(7.5)]).ints(), [7, 7]);
    }
}

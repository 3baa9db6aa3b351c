//! From a sample's description to the numbers that both the oracle and the backend are given.

use crate::array::{Array, Number};
use crate::oracle::{Inputs, Value};
use keyway::DType;
use keyway::ops::build;
use keyway::ops::sample::{Role, SampleArg, TensorSample};

/// The numbers of a filling as elements of a dtype: a value that the dtype cannot hold is brought into its
/// range, so that every dtype can be given every sample.
fn element(value: f64, dtype: DType) -> Number {
    match dtype.integer_range() {
        Some(_) if dtype == DType::BOOL => Number::Bool(value as i64 != 0),
        Some((low, high)) => Number::Int((value as i128).clamp(low, high)),
        None => Number::Float(value).cast(dtype),
    }
}

fn array(sample: &TensorSample, tested: DType, seed: u64) -> Array {
    let dtype = match sample.role {
        Role::Tested => tested,
        Role::Fixed(dtype) => dtype,
    };
    let values = build::values(&sample.fill, sample.sizes.iter().product(), seed);
    Array::new(dtype, sample.sizes.clone(), values.into_iter().map(|v| element(v, dtype)).collect())
}

/// The arguments of a sample, its tested tensors of dtype `tested`; `seed` numbers the sample.
pub fn of_sample(args: &[SampleArg], tested: DType, seed: u64) -> Inputs {
    let mut count = 0;
    let mut next = |t: &TensorSample| {
        count += 1;
        array(t, tested, seed.wrapping_mul(1000) + count - 1)
    };
    let mut value = |arg: &SampleArg| match arg {
        SampleArg::None => Value::None,
        SampleArg::Tensor(t) => Value::Array(next(t)),
        SampleArg::Tensors(list) => Value::Arrays(list.iter().map(&mut next).collect()),
        SampleArg::Int(v) => Value::Int(*v),
        SampleArg::Float(v) => Value::Float(*v),
        SampleArg::Bool(v) => Value::Bool(*v),
        SampleArg::Ints(v) => Value::Ints(v.clone()),
        SampleArg::Floats(v) => Value::Floats(v.clone()),
        SampleArg::Str(v) => Value::Str((*v).to_string()),
        SampleArg::DType(v) => Value::DType(*v),
    };
    Inputs(args.iter().map(&mut value).collect())
}

/// Changes every array of the inputs.
pub fn map_arrays(inputs: &mut Inputs, mut change: impl FnMut(&mut Array)) {
    for value in &mut inputs.0 {
        match value {
            Value::Array(a) => change(a),
            Value::Arrays(list) => list.iter_mut().for_each(&mut change),
            _ => {}
        }
    }
}

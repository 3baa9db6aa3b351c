//! Conversion of a sample's description to the values for both the oracle and the backend.

use crate::array::{Array, Number};
use crate::oracle::{Inputs, Value};
use keyway::DType;
use keyway::ops::build;
use keyway::ops::sample::{Role, SampleArg, TensorSample};

/// The values of a filling as elements of a dtype: a value out of the dtype's range is mapped into it, so that every sample is
/// valid for every dtype.
fn element(value: f64, dtype: DType) -> Number {
    match dtype.integer_range() {
        Some(_) if dtype == DType::BOOL => Number::Bool(value as i64 != 0),
        Some((low, high)) => Number::Int((value as i128).clamp(low, high)),
        None => Number::Float(value).cast(dtype),
    }
}

/// Mixed into the seed of imaginary parts.
const IMAGINARY: u64 = 0x5151_5151;

/// A complex number with these parts, rotated into another quadrant for each element.
fn quadrants(nth: usize, (re, im): (f64, f64), dtype: DType) -> Number {
    let (re, im) = [(re, im), (-im, re), (-re, -im), (im, -re)][nth % 4];
    Number::Complex(re, im).cast(dtype)
}

fn dtype(sample: &TensorSample, tested: DType) -> DType {
    match sample.role {
        Role::Tested => tested,
        Role::Fixed(dtype) => dtype,
    }
}

fn array(sample: &TensorSample, tested: DType, seed: u64) -> Array {
    let dtype = dtype(sample, tested);
    let values = build::values(&sample.fill, &sample.sizes, seed);
    if dtype.is_complex() {
        let imaginary = build::values(&sample.fill, &sample.sizes, seed ^ IMAGINARY);
        let parts = values.into_iter().zip(imaginary).enumerate();
        return Array::new(
            dtype,
            sample.sizes.clone(),
            parts.map(|(nth, z)| quadrants(nth, z, dtype)).collect(),
        );
    }
    Array::new(dtype, sample.sizes.clone(), values.into_iter().map(|v| element(v, dtype)).collect())
}

/// The arguments of a sample, its tested tensors in dtype `tested`; `seed` is the sample's number.
pub fn of_sample(args: &[SampleArg], tested: DType, seed: u64) -> Inputs {
    let mut count = 0;
    with_arrays(args, |t| {
        count += 1;
        array(t, tested, seed.wrapping_mul(1000) + count - 1)
    })
}

/// The same arguments as arrays with dtypes and sizes but without elements.
pub fn shapes_of_sample(args: &[SampleArg], tested: DType) -> Inputs {
    with_arrays(args, |t| Array::new(dtype(t, tested), t.sizes.clone(), Vec::new()))
}

fn with_arrays(args: &[SampleArg], mut next: impl FnMut(&TensorSample) -> Array) -> Inputs {
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

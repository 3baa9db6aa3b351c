//! Shared parts of the ops that compute the input gradient of an activation from its output gradient and its input or output.

use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, Sample, plain, sample, tensor};

pub(super) const fn def(schema: &'static str, derivative: Derivative, samples: fn() -> Vec<Sample>) -> OpDef {
    OpDef::binary(schema, rules::binary_float, derivative)
        .forms(Forms::New)
        .dtypes(Dtypes::FLOAT)
        .samples(samples)
}

/// The shapes of both tensors in the samples: every rank.
pub(super) const SHAPES: [&[usize]; 6] = [&[], &[7], &[0, 3], &[2, 3, 4], &[2, 3, 2, 2], &[2, 1, 2, 3, 2]];

/// A gradient and a tensor of the same shape, filled with `values`.
pub(super) fn samples(values: &Fill) -> Vec<Sample> {
    SHAPES.iter().map(|sizes| sample([plain(sizes), tensor(sizes, values.clone())])).collect()
}

//! What the ops share that compute the gradient through an activation, from the gradient of its output and its input
//! or output.

use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, Sample, plain, sample, tensor};

pub(super) const fn def(schema: &'static str, derivative: Derivative, samples: fn() -> Vec<Sample>) -> OpDef {
    OpDef::binary(schema, rules::binary_float, derivative)
        .forms(Forms::New)
        .dtypes(Dtypes::FLOAT)
        .samples(samples)
}

/// Shapes of every rank, of both tensors.
pub(super) const SHAPES: [&[usize]; 6] = [&[], &[7], &[0, 3], &[2, 3, 4], &[2, 3, 2, 2], &[2, 1, 2, 3, 2]];

/// A gradient and, of the same shape, what `values` says.
pub(super) fn samples(values: &Fill) -> Vec<Sample> {
    SHAPES.iter().map(|sizes| sample([plain(sizes), tensor(sizes, values.clone())])).collect()
}

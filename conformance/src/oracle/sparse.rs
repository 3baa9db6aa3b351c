//! Ops of sparse tensors, on their dense values.

use super::number::zero;
use super::pointwise::Outcome;
use super::{Family, Inputs, Unknown, linalg};
use crate::array::Array;

/// The same values, in any layout.
fn same(inputs: &Inputs) -> Outcome {
    Ok(vec![inputs.array(0)?.clone()])
}

/// These values where the mask is not 0, otherwise 0.
fn masked(values: &Array, mask: &Array) -> Outcome {
    if values.sizes != mask.sizes {
        return Err(Unknown(format!("{:?} with a mask of {:?}", values.sizes, mask.sizes)));
    }
    let kept = |(value, mask): (&crate::array::Number, &crate::array::Number)| {
        if mask.truth() { *value } else { zero(values.dtype) }
    };
    let kept = values.values.iter().zip(&mask.values).map(kept).collect();
    Ok(vec![Array::new(values.dtype, values.sizes.clone(), kept)])
}

fn sparse_mask(inputs: &Inputs) -> Outcome {
    masked(inputs.array(0)?, inputs.array(1)?)
}

fn sampled_mm(inputs: &Inputs) -> Outcome {
    let dtype = inputs.promote(&[0, 1, 2])?;
    let (a, b) = (inputs.array(1)?.cast(dtype), inputs.array(2)?.cast(dtype));
    if a.ndim() != b.ndim() || !(2..=3).contains(&a.ndim()) {
        return Err(Unknown(format!("{:?} by {:?}", a.sizes, b.sizes)));
    }
    masked(&linalg::product(&a, &b)?, inputs.array(0)?)
}

/// The ops of this family.
pub const ALL: Family = &[
    ("coalesce", same),
    ("sampled_mm", sampled_mm),
    ("sparse_mask", sparse_mask),
    ("to_sparse", same),
    ("to_sparse_csr", same),
];

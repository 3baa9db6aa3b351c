//! What `logical_and`, `logical_or` and `logical_xor` share: all but the table of truth.

use crate::DType;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::sample::{Fill, PAIRS, Sample, sample, tensor};
use keyway_dispatcher::op::Typing;

pub(super) const fn def(schema: &'static str) -> OpDef {
    // Whatever the dtypes, their truth values are what the kernel sees.
    OpDef::binary(schema, |_| Ok(Typing::of(DType::BOOL)), Derivative::NotDifferentiable).samples(samples)
}

fn samples() -> Vec<Sample> {
    let truth = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.0, 1.0, 2.0, 0.0, 0.0]));
    PAIRS.iter().map(|(a, b)| sample([tensor(a, Fill::Index(2)), truth(b)])).collect()
}

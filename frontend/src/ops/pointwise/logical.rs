//! Shared parts of `logical_and`, `logical_or` and `logical_xor`.

use crate::DType;
use crate::ops::def::{Derivative, OpDef};
use crate::ops::sample::{Fill, PAIRS, Sample, sample, tensor};
use keyway_dispatcher::error::Result;
use keyway_dispatcher::op::{Arg, Args, Typing};

pub(super) const fn def(schema: &'static str) -> OpDef {
    OpDef::binary(schema, typing, Derivative::NotDifferentiable).samples(samples)
}

/// Tensors of one dtype are passed unchanged; others are cast to bool.
fn typing(args: &Args<'_>) -> Result<Typing> {
    let compute = match (args.get(0), args.get(1)) {
        (Arg::Tensor(a), Arg::Tensor(b)) if a.dtype() == b.dtype() => a.dtype(),
        _ => DType::BOOL,
    };
    Ok(Typing { compute, result: DType::BOOL })
}

fn samples() -> Vec<Sample> {
    let truth = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![0.0, 1.0, 2.0, 0.0, 0.0]));
    PAIRS.iter().map(|(a, b)| sample([tensor(a, Fill::Index(2)), truth(b)])).collect()
}

//! Shared parts of `any` and `all`: reductions to bool.

use super::cases;
use crate::DType;
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::rules::{keeping, reduced_dims, reduced_sizes};
use crate::ops::sample::{Sample, plain};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

/// The definition of a reduction to bool with arguments `(self, dim, keepdim)`.
pub(super) const fn def(schema: &'static str) -> OpDef {
    OpDef::new(schema, Rule::Structured(rule), Derivative::NotDifferentiable, samples)
        .forms(Forms::Out)
        .errors(|| cases::dim_errors(&[]))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let mask = reduced_dims(args, 1, t.ndim())?;
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(2)?), DType::BOOL))
}

fn samples() -> Vec<Sample> {
    let mut samples = cases::over_dims(plain, &[]);
    samples.push(cases::over(plain(&[2, 0]), Some(&[1]), &[], false));
    samples
}

//! The definition that `tril` and `triu` share, with arguments `(self, diagonal)`.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{collected, in_format_of, one, tensor};
use crate::ops::def::{Decompose, Derivative, Forms, OpDef, OpFlags};
use crate::ops::rules;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Outputs, Plan, Rule};

/// The definition of `tril` or `triu`.
pub(super) const fn def(schema: &'static str, derivative: Derivative, compose: Decompose) -> OpDef {
    OpDef::new(schema, Rule::Structured(rule), derivative, samples)
        .forms(Forms::InPlace)
        .errors(|| vec![error([plain(&[3]), SampleArg::Int(0)], "2 or more dimensions")])
        .with(OpFlags::EXACT)
        .decomposed(compose)
}

/// The elements for which `keeps(row, column - diagonal)` is true, the others set to 0, selected by a mask that is built on
/// the host.
pub(super) fn masked(args: &Args<'_>, keeps: fn(i64, i64) -> bool) -> RuleResult<Outputs> {
    one(compose(args, keeps))
}

fn compose(args: &Args<'_>, keeps: fn(i64, i64) -> bool) -> Result<Tensor> {
    let (t, diagonal) = (tensor(args, 0)?, args.int(1)?);
    let [.., rows, columns] = *t.shape() else { return Ok(t) };
    let kept = |row: usize| (0..columns).map(move |c| keeps(row as i64, (c as i64).saturating_sub(diagonal)));
    let count = rows.saturating_mul(columns);
    let mask = Tensor::from_vec(collected(count, (0..rows).flat_map(kept))?, [rows, columns])?;
    // One dimension more than the mask has, so that the strides of the tensor alone determine those of the result.
    let made = mask.to_device(t.device())?.where_cond(&t.unsqueeze(0)?, false)?.squeeze(0)?;
    // With a leading dimension, an image of one channel is no longer recognized as channels_last.
    if t.as_ref().is_in_channels_last_order() { in_format_of(&t, made) } else { Ok(made) }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    if t.ndim() < 2 {
        let expected = "of 2 or more dimensions".to_string();
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: t.sizes().into() });
    }
    rules::like_first(args)
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 7] =
        [&[3, 3], &[2, 4], &[4, 2], &[0, 3], &[2, 3, 4], &[2, 1, 3, 2], &[2, 1, 2, 2, 2]];
    let on = |s: &&[usize]| [0, 1, -1, 7].map(|diagonal| sample([plain(s), SampleArg::Int(diagonal)]));
    shapes.iter().flat_map(on).collect()
}

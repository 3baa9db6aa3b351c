//! What `tril` and `triu` share, with arguments `(self, diagonal)`.

use crate::ops::def::{Derivative, Facts, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule};

pub(super) const fn def(schema: &'static str, derivative: Derivative) -> OpDef {
    OpDef::new(schema, Rule::Structured(rule), derivative, samples)
        .forms(Forms::InPlace)
        .errors(|| vec![error([plain(&[3]), SampleArg::Int(0)], "2 or more dimensions")])
        .with(Facts::EXACT)
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

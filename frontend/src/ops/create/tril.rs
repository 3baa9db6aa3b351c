//! `tril`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The lower triangle of each matrix: what lies on the diagonal and below it, 0 elsewhere. Diagonal 0 is the
    /// main one, 1 the one above it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1i32, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(a.tril(0)?.to_vec::<i32>()?, [1, 0, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of fewer than 2 dimensions.
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(diagonal)])
    }

    /// [`Tensor::tril`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn tril_(&self, diagonal: i64) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), Arg::Int(diagonal)])
    }
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

/// `tril`
pub static DEF: OpDef = OpDef {
    schema: "tril(Tensor self, int diagonal=0) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.tril(b.int(1)?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples,
    errors: || vec![error([plain(&[3]), SampleArg::Int(0)], "2 or more dimensions")],
    entry: Entry::new(),
}
.with(Facts::EXACT);

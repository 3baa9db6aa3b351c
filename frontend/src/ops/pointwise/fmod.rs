//! `fmod`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, sample, tensor,
};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// What is left of `self / other`, with the sign of `self`, as Rust's `%`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-7i64, 7])?.fmod(3)?.to_vec::<i64>()?, [-1, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An integer divided by zero; two bool operands; shapes that do not broadcast, dtypes that have no
    /// common one, tensors on different devices.
    pub fn fmod<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }

    /// [`Tensor::fmod`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn fmod_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::binary(args)?;
    rules::require(args, 0, plan.compute, plan.compute != DType::BOOL, "numbers")?;
    Ok(plan)
}

/// Dividends and divisors whose quotients are no whole numbers, where the remainder jumps.
fn samples() -> Vec<Sample> {
    let dividend = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![5.25, -4.0, 1.0, -7.5, 0.5, 3.0, -1.0]));
    let divisor = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.7, -2.3, 3.25, -1.9, 2.6]));
    let pairs = PAIRS.iter().map(|(a, b)| sample([dividend(a), divisor(b)]));
    let numbers =
        [sample([dividend(&[3, 4]), SampleArg::Float(2.9)]), sample([SampleArg::Int(5), divisor(&[2, 3])])];
    pairs.chain(numbers).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = |fill| fixed(&[2], DType::I32, fill);
    let mut errors = broadcast_errors(&[]);
    errors.push(error([ints(Fill::Index(5)), ints(Fill::Values(vec![0.0]))], "divided by zero"));
    errors
}

/// `fmod`
pub static DEF: OpDef = OpDef {
    schema: "fmod(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Dense(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || Ok(b.grad(0)?.clone()))?;
            g.set(1, || {
                let (a, other) = (b.saved(0)?, b.saved(1)?);
                let quotient = super::div::DEF.run(&[a.arg(), other.arg(), Arg::Str("trunc")])?;
                b.grad(0)?.mul(&quotient)?.mul(-1)
            })
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples,
    errors,
    entry: Entry::new(),
};

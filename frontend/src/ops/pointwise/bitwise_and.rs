//! `bitwise_and`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, PAIRS, Sample, error, fixed, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

impl Tensor {
    /// The bits that both have; for bool, and.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[5i64, 12])?.bitwise_and(6)?.to_vec::<i64>()?, [4, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats; shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn bitwise_and<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }

    /// [`Tensor::bitwise_and`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn bitwise_and_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary(args)?;
    rules::require(args, 0, typing.compute, !typing.compute.is_float(), "integers or bool")?;
    Ok(typing)
}

fn samples() -> Vec<Sample> {
    PAIRS.iter().map(|(a, b)| sample([tensor(a, Fill::Index(100)), tensor(b, Fill::Index(50))])).collect()
}

fn errors() -> Vec<ErrorSample> {
    let floats = || fixed(&[2], DType::F32, Fill::Index(2));
    vec![error([floats(), floats()], "integers or bool")]
}

/// `bitwise_and`
pub static DEF: OpDef = OpDef {
    schema: "bitwise_and(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rule),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::InPlace,
    dtypes: Dtypes::INTEGRAL,
    samples,
    errors,
    entry: Entry::new(),
};

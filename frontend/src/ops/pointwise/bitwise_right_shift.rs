//! `bitwise_right_shift`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, PAIRS, Sample, error, fixed, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

impl Tensor {
    /// `self / 2^other`, rounded down; every bit is shifted out where `other` is negative or no less than the number of bits.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[5i64, 12])?.bitwise_right_shift(2)?.to_vec::<i64>()?, [1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats and bool; shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn bitwise_right_shift<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into()])
    }

    /// [`Tensor::bitwise_right_shift`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn bitwise_right_shift_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let typing = rules::binary(args)?;
    rules::require(args, 0, typing.compute, typing.compute.is_integer(), "integers")?;
    Ok(typing)
}

fn samples() -> Vec<Sample> {
    PAIRS
        .iter()
        .map(|(a, b)| {
            sample([tensor(a, Fill::Index(100)), tensor(b, Fill::Values(vec![0.0, 1.0, 3.0, 7.0, 70.0]))])
        })
        .collect()
}

fn errors() -> Vec<ErrorSample> {
    let floats = || fixed(&[2], DType::F32, Fill::Index(2));
    vec![error([floats(), floats()], "integers")]
}

/// `bitwise_right_shift`
pub static DEF: OpDef = OpDef {
    schema: "bitwise_right_shift(Tensor self, Tensor other) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rule),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::InPlace,
    dtypes: Dtypes::INT,
    samples,
    errors,
    entry: Entry::new(),
};

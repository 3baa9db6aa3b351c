//! `fmod`

use super::modulus;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use keyway_dispatcher::op::Arg;

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

/// `fmod`
pub static DEF: OpDef = OpDef {
    schema: "fmod(Tensor self, Tensor other) -> Tensor",
    rule: modulus::RULE,
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| modulus::derivative(b, g, "trunc"),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::NUMERIC,
    samples: modulus::samples,
    errors: modulus::errors,
    entry: Entry::new(),
}
.with(Facts::SIGNED_ZEROS);

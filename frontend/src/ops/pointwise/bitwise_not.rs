//! `bitwise_not`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// Each element with its bits turned over; for bool the other truth value.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0i32, 5])?.bitwise_not()?.to_vec::<i32>()?, [-1, -6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A float dtype.
    pub fn bitwise_not(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::bitwise_not`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn bitwise_not_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::bitwise_not`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn bitwise_not_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `bitwise_not`
pub static DEF: OpDef = OpDef {
    schema: "bitwise_not(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_integral),
    decomposition: None,
    derivative: Derivative::NotDifferentiable,
    forms: Forms::InPlace,
    dtypes: Dtypes::INTEGRAL,
    samples: || sample::unary(-2.0, 2.0),
    errors: || {
        vec![error([fixed(&[2], DType::F32, Fill::Values(vec![0.0, 1.0]))], "an integer dtype or bool")]
    },
    entry: Entry::new(),
};

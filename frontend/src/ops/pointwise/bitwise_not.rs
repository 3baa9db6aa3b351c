//! `bitwise_not`

use crate::DType;
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{forms, rules};

forms! {
    /// The bitwise complement of each element; for bool, logical not.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0i32, 5])?.bitwise_not()?.to_vec::<i32>()?, [-1, -6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A float dtype.
    pub fn bitwise_not(&self), in_place: bitwise_not_, out: bitwise_not_out, on: 6;
}

/// `bitwise_not`
pub static DEF: OpDef =
    OpDef::unary("bitwise_not(Tensor self) -> Tensor", rules::unary_integral, Derivative::NotDifferentiable)
        .dtypes(Dtypes::INTEGRAL)
        .errors(|| {
            vec![error([fixed(&[2], DType::F32, Fill::Values(vec![0.0, 1.0]))], "an integer dtype or bool")]
        });

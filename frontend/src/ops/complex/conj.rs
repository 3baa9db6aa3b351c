//! `conj`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use keyway_dispatcher::op::Typing;

impl Tensor {
    /// The complex conjugate: `re - i im`. A real tensor is returned itself, without a copy.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([Complex::new(1.0f32, 2.0)])?;
    /// assert_eq!(z.conj()?.to_vec::<Complex<f32>>()?, [Complex::new(1.0, -2.0)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "conj_physical")]
    pub fn conj(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { DEF.run(&[self.into()]) } else { Ok(self.clone()) }
    }
}

/// `conj`
pub static DEF: OpDef = OpDef::unary(
    "conj(Tensor self) -> Tensor",
    |args| super::require_complex(args).map(Typing::of),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.conj())),
)
.forms(Forms::Out)
.samples(Vec::new)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX);

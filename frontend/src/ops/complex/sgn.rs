//! `sgn`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use keyway_dispatcher::op::Typing;

impl Tensor {
    /// `z / |z|` of complex numbers, and 0 of 0; of real numbers [`Tensor::sign`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([Complex::new(0.0f32, 2.0)])?;
    /// assert_eq!(z.sgn()?.to_vec::<Complex<f32>>()?, [Complex::new(0.0, 1.0)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    pub fn sgn(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { DEF.run(&[self.into()]) } else { self.sign() }
    }
}

/// `sgn`
pub static DEF: OpDef = OpDef::unary(
    "sgn(Tensor self) -> Tensor",
    |args| super::require_complex(args).map(Typing::of),
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            // The part of the gradient perpendicular to `z`, over the modulus: `(g - Re(conj(s) g) s) / |z|` with `s = z / |z|`.
            let (z, grad) = (b.input(0)?, b.grad(0)?);
            let length = z.abs()?;
            let is_zero = length.eq(0)?;
            let direction = z.sgn()?;
            let along = direction.conj()?.mul(grad)?.real()?.mul(&direction)?;
            let across = grad.sub(&along)?.div(&is_zero.where_cond(1, &length)?)?;
            is_zero.where_cond(0, &across)
        })
    }),
)
.forms(Forms::Out)
.samples(Vec::new)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX);

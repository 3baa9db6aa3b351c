//! `angle`

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::{DType, Tensor};
use keyway_dispatcher::op::Typing;
use std::f64::consts::PI;

impl Tensor {
    /// The argument in radians, in `[-pi, pi]`: `atan2(im, re)`. Of a negative real number it is pi, of other real numbers 0, and
    /// NaN of NaN. Integers become f32.
    ///
    /// The gradient is that of PyTorch: 0 at 0, and 0 for real tensors.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::new([Complex::new(0.0f32, 2.0)])?;
    /// assert_eq!(z.angle()?.to_vec::<f32>()?, [std::f32::consts::FRAC_PI_2]);
    /// assert_eq!(Tensor::new([3.0f32])?.angle()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "arg")]
    pub fn angle(&self) -> Result<Tensor> {
        if self.dtype().is_complex() {
            return DEF.run(&[self.into()]);
        }
        called("angle", &["self"], || {
            let x = if self.dtype().is_float() { self.clone() } else { self.to_dtype(DType::F32)? };
            // 0 times the element is NaN for NaN, and 0 for infinities once these are clamped.
            let zero = x.detach().clamp(-1, 1)?.mul(0)?.abs()?;
            x.lt(0)?.where_cond(PI, &zero)
        })
    }
}

/// `angle`
pub static DEF: OpDef = OpDef::unary(
    "angle(Tensor self) -> Tensor",
    |args| {
        let dtype = super::require_complex(args)?;
        Ok(Typing { compute: dtype, result: dtype.to_real() })
    },
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            // The derivatives by the parts are `-im / |z|^2` and `re / |z|^2`: `i z / |z|^2`, divided twice by the modulus.
            let z = b.input(0)?;
            let length = z.abs()?;
            let length = length.eq(0)?.where_cond(1, &length)?;
            let rotated = Tensor::complex(&z.imag()?.neg()?, &z.real()?)?;
            rotated.div(&length)?.mul(&b.grad(0)?.div(&length)?)
        })
    }),
)
.forms(Forms::Out)
.samples(Vec::new)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX);

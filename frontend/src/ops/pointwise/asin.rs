//! `asin`

use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::error::Result;
use crate::ops::composite::widened;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::{forms, rules, sample};

forms! {
    /// The arc sine of each element, in radians; NaN outside -1..=1. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32])?.asin()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the backend.
    #[doc(alias = "arcsin")]
    pub fn asin(&self), in_place: asin_, out: asin_out, on: 0.5;
}

/// `1 / sqrt(1 - x^2)`.
pub(super) fn inverse_slope(x: &Tensor) -> Result<Tensor> {
    one_less_square(&widened(x)?)?.rsqrt()
}

/// `sqrt(1 + x^2)`, for real numbers without overflow of the square.
pub(super) fn length_from_one(x: &Tensor) -> Result<Tensor> {
    if x.is_complex() { x.square()?.add(1)?.sqrt() } else { widened(x)?.hypot(1) }
}

/// `1 - x^2`, as `(1 - x) (1 + x)`: near 1 and -1 these factors are exact, where `1 - x^2` cancels. With a graph, `1 - x^2`
/// where that is accurate, below 1/2, since the derivative of the product, a difference of two values near 1, loses the digits
/// of a small `x`.
pub(super) fn one_less_square(x: &Tensor) -> Result<Tensor> {
    let product = x.rsub(1)?.mul(&x.add(1)?)?;
    // Of complex numbers both are as accurate by their modulus.
    if !is_grad_enabled() || x.is_complex() {
        return Ok(product);
    }
    x.detach().abs()?.lt(0.5)?.where_cond(&x.square()?.rsub(1)?, &product)
}

/// `asin`
pub static DEF: OpDef = OpDef::unary(
    "asin(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_inputs(0b1, |b, g| g.set(0, || b.grad(0)?.mul(&inverse_slope(&b.input(0)?)?))),
)
.samples(|| sample::unary(-0.8, 0.8))
.with(OpFlags::ZERO_PRESERVING)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);

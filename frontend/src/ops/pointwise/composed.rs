//! Element-wise functions that are short formulas of other ops.

use crate::error::{Result, called};
use crate::ops::composite::{cast, real};
use crate::ops::rules::float_of;
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// 2 to the power of each element.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3.0f32, -1.0])?.exp2()?.to_vec::<f32>()?, [8.0, 0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::rpow`].
    pub fn exp2(&self) -> Result<Tensor> {
        called("exp2", &["self"], || self.rpow(2.0))
    }

    /// The power in f64, or in c128 if either operand is complex.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([4i32, -2])?.float_power(-1)?.to_vec::<f64>()?, [0.25, -0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::pow`].
    pub fn float_power<'a>(&self, exponent: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("float_power", &["self", "exponent"], || {
            let wide = |t: &Tensor| t.to_dtype(if t.is_complex() { DType::C128 } else { DType::F64 });
            match exponent.into() {
                Arg::Tensor(exponent) => wide(self)?.pow(&wide(&Tensor::from_ref(exponent.clone()))?),
                number => wide(self)?.pow(number),
            }
        })
    }

    /// The fractional part of each element, with its sign: `x - trunc(x)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([2.5f32, -2.25])?.frac()?.to_vec::<f32>()?, [0.5, -0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Bool.
    pub fn frac(&self) -> Result<Tensor> {
        called("frac", &["self"], || self.sub(&self.trunc()?))
    }

    /// `log(x / (1 - x))`, the inverse of [`Tensor::sigmoid`]; NaN outside 0..=1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.5f32, 1.0])?.logit()?.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn logit(&self) -> Result<Tensor> {
        called("logit", &["self"], || {
            let x = real(self)?;
            cast(x.log()?.sub(&x.neg()?.log1p()?)?, float_of(self.dtype()))
        })
    }

    /// [`Tensor::logit`] of each element clamped to `eps..=1 - eps`; the gradient is 0 outside.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-1.0f32, 0.5])?.logit_with(0.5)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An `eps` outside 0 to 0.5.
    pub fn logit_with(&self, eps: f64) -> Result<Tensor> {
        called("logit", &["self", "eps"], || {
            if !(0.0..=0.5).contains(&eps) {
                let (expected, got) = ("0 to 0.5".to_string(), eps.to_string());
                return Err(Error::Value { op: "logit", argument: "eps", expected, got }.into());
            }
            cast(real(self)?.clamp(eps, 1.0 - eps)?.logit()?, float_of(self.dtype()))
        })
    }

    /// The normalized sinc function `sin(pi x) / (pi x)`, 1 at 0. Near 0 its power series is computed, so derivatives of every
    /// order are exact there too.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let y = Tensor::new([0.0f32, 0.5])?.sinc()?.to_vec::<f32>()?;
    /// assert!(y[0] == 1.0 && (y[1] - 2.0 / std::f32::consts::PI).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn sinc(&self) -> Result<Tensor> {
        called("sinc", &["self"], || {
            let t = real(self)?.mul(std::f64::consts::PI)?;
            let far = t.detach().abs()?.ge(0.5)?;
            // Each branch is computed from values of its own range: for others, gradients would be 0 times infinity.
            let outside = far.where_cond(&t, 1.0)?;
            let square = far.where_cond(0.0, &t)?.square()?;
            // `sum of (-square)^n / (2 n + 1)!` by Horner's rule; the first addend left out is below 1e-19.
            let mut series = square.ones_like()?;
            for n in (1..=7).rev() {
                let factor = f64::from(2 * n * (2 * n + 1));
                series = series.mul(&square)?.mul(-1.0 / factor)?.add(1.0)?;
            }
            cast(far.where_cond(&outside.sin()?.div(&outside)?, &series)?, float_of(self.dtype()))
        })
    }

    /// The larger element; a NaN operand is ignored if the other is a number. [`Tensor::maximum`] propagates NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32, f32::NAN])?, Tensor::new([3.0f32, 2.0])?);
    /// assert_eq!(a.fmax(&b)?.to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::maximum`].
    pub fn fmax(&self, other: &Tensor) -> Result<Tensor> {
        called("fmax", &["self", "other"], || beside_nan(self, other, self.maximum(other)?))
    }

    /// The smaller element; a NaN operand is ignored if the other is a number. [`Tensor::minimum`] propagates NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([1.0f32, f32::NAN])?, Tensor::new([3.0f32, 2.0])?);
    /// assert_eq!(a.fmin(&b)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::minimum`].
    pub fn fmin(&self, other: &Tensor) -> Result<Tensor> {
        called("fmin", &["self", "other"], || beside_nan(self, other, self.minimum(other)?))
    }

    /// Whether the sign bit of each element is set, also for -0. Unspecified for NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-0.0f32, 0.0, -1.0])?.signbit()?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn signbit(&self) -> Result<Tensor> {
        called("signbit", &["self"], || {
            if self.dtype().is_float() { self.new_ones(())?.copysign(self)?.lt(0) } else { self.lt(0) }
        })
    }

    /// Whether each element is positive infinity.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([f32::INFINITY, 1.0])?.isposinf()?.to_vec::<bool>()?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn isposinf(&self) -> Result<Tensor> {
        called("isposinf", &["self"], || self.isinf()?.logical_and(&self.gt(0)?))
    }

    /// Whether each element is negative infinity.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([f32::NEG_INFINITY, 1.0])?.isneginf()?.to_vec::<bool>()?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn isneginf(&self) -> Result<Tensor> {
        called("isneginf", &["self"], || self.isinf()?.logical_and(&self.lt(0)?))
    }

    /// The Heaviside step function: 0 for negative elements, 1 for positive ones, and `values` at 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, at_0) = (Tensor::new([-2.0f32, 0.0, 3.0])?, Tensor::new(0.5f32)?);
    /// assert_eq!(x.heaviside(&at_0)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, tensors on different devices.
    pub fn heaviside(&self, values: &Tensor) -> Result<Tensor> {
        called("heaviside", &["self", "values"], || {
            let step = self.detach().gt(0)?.to_dtype(self.dtype())?;
            self.eq(0)?.where_cond(&values.to_dtype(self.dtype())?, &step)
        })
    }

    /// Converts degrees to radians.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new(180.0f64)?.deg2rad()?.item::<f64>()?, std::f64::consts::PI);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn deg2rad(&self) -> Result<Tensor> {
        called("deg2rad", &["self"], || self.mul(std::f64::consts::PI / 180.0))
    }

    /// Converts radians to degrees.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new(std::f64::consts::PI)?.rad2deg()?.item::<f64>()?, 180.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn rad2deg(&self) -> Result<Tensor> {
        called("rad2deg", &["self"], || self.mul(180.0 / std::f64::consts::PI))
    }
}

/// `made`, or the operand that is not NaN if the other is.
fn beside_nan(a: &Tensor, b: &Tensor, made: Tensor) -> Result<Tensor> {
    let [first, second] = [a, b].map(|t| t.to_dtype(made.dtype()));
    let (first, second) = (first?, second?);
    first.isnan()?.where_cond(&second, &second.isnan()?.where_cond(&first, &made)?)
}

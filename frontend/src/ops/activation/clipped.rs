//! Piecewise activations, implemented with simpler ops: f16 and bf16 are computed in f32.
//!
//! At a kink the gradient is that of the flat side, as in PyTorch.

use crate::Tensor;
use crate::autograd::{Context, Function, apply};
use crate::error::{Result, called};
use crate::ops::composite::{cast, real};
use crate::ops::rules::float_of;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// `clamp(x, -1, 1)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-2.0f32, 0.5, 3.0])?.hardtanh()?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn hardtanh(&self) -> Result<Tensor> {
        self.hardtanh_with(-1, 1)
    }

    /// [`Tensor::hardtanh`] with other bounds; integers stay integers if both bounds are integers. The gradient at the
    /// bounds is 0, while that of [`Tensor::clamp`] is 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-2.0f32, 0.5, 3.0])?.hardtanh_with(0.0, 2.0)?.to_vec::<f32>()?, [0.0, 0.5, 2.0]);
    /// assert_eq!(Tensor::new([-2, 3])?.hardtanh_with(0, 2)?.to_vec::<i32>()?, [0, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `min_val` above `max_val`; an argument that is not a number.
    pub fn hardtanh_with<'a>(
        &self,
        min_val: impl Into<Arg<'a>>,
        max_val: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        called("hardtanh", &["self", "min_val", "max_val"], || {
            let (min, max) = (min_val.into(), max_val.into());
            let [low, high] = [number("hardtanh", "min_val", &min)?, number("hardtanh", "max_val", &max)?];
            if low > high {
                let (expected, got) = (format!("at most `max_val`, {high}"), low.to_string());
                return Err(Error::Value { op: "hardtanh", argument: "min_val", expected, got }.into());
            }
            if !self.as_ref().is_strided() && low <= 0.0 && high >= 0.0 {
                return on_stored(self, |values| values.hardtanh_with(min, max));
            }
            let held = self.detach().clamp(min, max)?;
            self.le(min)?.logical_or(&self.ge(max)?)?.where_cond(&held, self)
        })
    }

    /// `min(max(0, x), 6)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-1.0f32, 5.0, 7.0])?.relu6()?.to_vec::<f32>()?, [0.0, 5.0, 6.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn relu6(&self) -> Result<Tensor> {
        called("relu6", &["self"], || self.hardtanh_with(0, 6))
    }

    /// `min(max(0, x + 3), 6) / 6`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-4.0f32, 0.0, 3.0])?.hardsigmoid()?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    #[doc(alias = "hard_sigmoid")]
    pub fn hardsigmoid(&self) -> Result<Tensor> {
        called("hardsigmoid", &["self"], || {
            cast(real(self)?.add(3.0)?.relu6()?.div(6.0)?, float_of(self.dtype()))
        })
    }

    /// `-log(1 + exp(-x))`, the logarithm of [`Tensor::sigmoid`], accurate far below 0 too.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new(-200.0f32)?.logsigmoid()?.item::<f32>()?, -200.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    #[doc(alias = "log_sigmoid")]
    pub fn logsigmoid(&self) -> Result<Tensor> {
        called("logsigmoid", &["self"], || {
            cast(real(self)?.neg()?.softplus_with(1.0, f64::INFINITY)?.neg()?, float_of(self.dtype()))
        })
    }

    /// `x / (1 + |x|)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-1.0f32, 3.0])?.softsign()?.to_vec::<f32>()?, [-0.5, 0.75]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn softsign(&self) -> Result<Tensor> {
        called("softsign", &["self"], || {
            if !self.as_ref().is_strided() {
                return on_stored(self, Tensor::softsign);
            }
            let value = |x: &Tensor| x.div(&x.abs()?.add(1.0)?);
            // The derivative of the quotient subtracts nearly equal values far from 0.
            let gradient = |grad: &Tensor, x: &Tensor| {
                let below = x.abs()?.add(1.0)?;
                grad.div(&below)?.div(&below)
            };
            smooth(self, Smooth { name: "softsign", value, gradient })
        })
    }

    /// `x - tanh(x)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.0f32, 100.0])?.tanhshrink()?.to_vec::<f32>()?, [0.0, 99.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn tanhshrink(&self) -> Result<Tensor> {
        called("tanhshrink", &["self"], || {
            let value = |x: &Tensor| x.sub(&x.tanh()?);
            // The derivative of the difference cancels near 0.
            let gradient = |grad: &Tensor, x: &Tensor| grad.mul(&x.tanh()?.square()?);
            smooth(self, Smooth { name: "tanhshrink", value, gradient })
        })
    }

    /// `x`, and 0 where `|x| <= 0.5`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-0.5f32, 0.6])?.hardshrink()?.to_vec::<f32>()?, [0.0, 0.6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn hardshrink(&self) -> Result<Tensor> {
        self.hardshrink_with(0.5)
    }

    /// `x`, and 0 where `|x| <= lambd`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([-0.5f32, 2.0])?.hardshrink_with(1.0)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn hardshrink_with(&self, lambd: f64) -> Result<Tensor> {
        called("hardshrink", &["self", "lambd"], || {
            if !self.as_ref().is_strided() {
                return on_stored(self, |values| values.hardshrink_with(lambd));
            }
            self.ge(-lambd)?.logical_and(&self.le(lambd)?)?.where_cond(0, self)
        })
    }

    /// `x` if it is above `threshold`, otherwise `value`. Integers stay integers if `value` is an integer.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([0.5f32, 1.0, 2.0])?.threshold(1.0, -9.0)?.to_vec::<f32>()?, [-9.0, -9.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An integer `value` that the dtype cannot represent; an argument that is not a number.
    pub fn threshold<'a>(&self, threshold: impl Into<Arg<'a>>, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("threshold", &["self", "threshold", "value"], || {
            let (threshold, value) = (threshold.into(), value.into());
            number("threshold", "threshold", &threshold)?;
            number("threshold", "value", &value)?;
            self.le(threshold)?.where_cond(value, self)
        })
    }
}

/// An element-wise function whose derivative is more accurate from its input than through the ops of its forward computation.
struct Smooth {
    name: &'static str,
    value: fn(&Tensor) -> Result<Tensor>,
    /// Computes the gradient from the output gradient and the input.
    gradient: fn(&Tensor, &Tensor) -> Result<Tensor>,
}

impl Function for Smooth {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        context.save(inputs);
        inputs.iter().map(self.value).collect()
    }

    fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        grads.iter().zip(context.saved()).map(|(grad, x)| (self.gradient)(grad, x).map(Some)).collect()
    }
}

fn smooth(t: &Tensor, function: Smooth) -> Result<Tensor> {
    let made = apply(function, &[real(t)?])?.into_iter().next();
    made.map_or_else(|| t.copy(), |made| cast(made, float_of(t.dtype())))
}

/// Applies `f`, with `f(0) = 0`, to the values of a sparse tensor, coalesced first.
fn on_stored(t: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let whole = t.without_duplicates()?;
    let values = f(&whole.stored()?)?;
    whole.map_stored_as(values.dtype(), |_| Ok(values.clone()))
}

/// The value of an integer or float argument.
fn number(op: &'static str, argument: &'static str, arg: &Arg<'_>) -> Result<f64> {
    match arg {
        &Arg::Int(number) => Ok(number as f64),
        &Arg::Float(number) => Ok(number),
        other => {
            let (expected, got) = ("a number".to_string(), other.describe());
            Err(Error::Value { op, argument, expected, got }.into())
        }
    }
}

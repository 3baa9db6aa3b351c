//! Element-wise activations as modules, and the softmax family.

use super::Module;
use crate::ops::pointwise::gelu::Approximate;
use crate::{Result, Tensor};

/// A module without parameters whose forward function is one call.
macro_rules! activation {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr),* $(,)? } => |$self:ident, $input:ident| $call:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }

        impl Module for $name {
            fn forward(&$self, $input: &Tensor) -> Result<Tensor> {
                $call
            }
        }
    )*};
    ($($(#[$doc:meta])* $name:ident => |$input:ident| $call:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name;

        impl Module for $name {
            fn forward(&self, $input: &Tensor) -> Result<Tensor> {
                $call
            }
        }
    )*};
}

activation! {
    /// `max(0, x)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Relu}};
    /// assert_eq!(Relu.forward(&Tensor::new([-1.0f32, 2.0])?)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "ReLU")]
    Relu => |input| input.relu();

    /// `x * sigmoid(x)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Silu}};
    /// assert_eq!(Silu.forward(&Tensor::new(0.0f32)?)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "SiLU")]
    #[doc(alias = "Swish")]
    Silu => |input| input.silu();

    /// `1 / (1 + exp(-x))`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Sigmoid}};
    /// assert_eq!(Sigmoid.forward(&Tensor::new(0.0f32)?)?.item::<f32>()?, 0.5);
    /// # Ok(()) }
    /// ```
    Sigmoid => |input| input.sigmoid();

    /// The hyperbolic tangent.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Tanh}};
    /// assert_eq!(Tanh.forward(&Tensor::new(0.0f32)?)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    Tanh => |input| input.tanh();

    /// `x * clamp(x + 3, 0, 6) / 6`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Hardswish, Module}};
    /// assert_eq!(Hardswish.forward(&Tensor::new([-4.0f32, 6.0])?)?.to_vec::<f32>()?, [0.0, 6.0]);
    /// # Ok(()) }
    /// ```
    Hardswish => |input| input.hardswish();

    /// `min(max(0, x), 6)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Relu6}};
    /// assert_eq!(Relu6.forward(&Tensor::new([-1.0f32, 7.0])?)?.to_vec::<f32>()?, [0.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "ReLU6")]
    Relu6 => |input| input.relu6();

    /// `min(max(0, x + 3), 6) / 6`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Hardsigmoid, Module}};
    /// assert_eq!(Hardsigmoid.forward(&Tensor::new([-4.0f32, 0.0])?)?.to_vec::<f32>()?, [0.0, 0.5]);
    /// # Ok(()) }
    /// ```
    Hardsigmoid => |input| input.hardsigmoid();

    /// `-log(1 + exp(-x))`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LogSigmoid, Module}};
    /// assert_eq!(LogSigmoid.forward(&Tensor::new([-200.0f32])?)?.to_vec::<f32>()?, [-200.0]);
    /// # Ok(()) }
    /// ```
    LogSigmoid => |input| input.logsigmoid();

    /// `x / (1 + |x|)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Softsign}};
    /// assert_eq!(Softsign.forward(&Tensor::new([-1.0f32, 3.0])?)?.to_vec::<f32>()?, [-0.5, 0.75]);
    /// # Ok(()) }
    /// ```
    Softsign => |input| input.softsign();

    /// `x - tanh(x)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Tanhshrink}};
    /// assert_eq!(Tanhshrink.forward(&Tensor::new([0.0f32, 100.0])?)?.to_vec::<f32>()?, [0.0, 99.0]);
    /// # Ok(()) }
    /// ```
    Tanhshrink => |input| input.tanhshrink();

    /// The identity: returns its input.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Identity, Module}};
    /// assert_eq!(Identity.forward(&Tensor::new([-1.0f32, 7.0])?)?.to_vec::<f32>()?, [-1.0, 7.0]);
    /// # Ok(()) }
    /// ```
    Identity => |input| Ok(input.clone());

    /// `x * tanh(log(1 + exp(x)))`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Mish, Module}};
    /// assert_eq!(Mish.forward(&Tensor::new(0.0f32)?)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    Mish => |input| input.mish();

    /// `1.0507 * x`, and `1.0507 * 1.6733 * (exp(x) - 1)` below 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Selu}};
    /// assert_eq!(Selu.forward(&Tensor::new(0.0f32)?)?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "SELU")]
    Selu => |input| input.selu();
}

activation! {
    /// `x * Φ(x)`, where `Φ` is the cumulative distribution function of the standard normal distribution.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Gelu, Module}};
    /// let y = Gelu::default().forward(&Tensor::new(1.0f32)?)?.item::<f32>()?;
    /// assert!((y - 0.841_345).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "GELU")]
    Gelu {
        /// The formula of `Φ`.
        approximate: Approximate = Approximate::None,
    } => |self, input| input.gelu_with(self.approximate);

    /// `x`, and `slope * x` below 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LeakyRelu, Module}};
    /// assert_eq!(LeakyRelu { slope: 0.5 }.forward(&Tensor::new(-4.0f32)?)?.item::<f32>()?, -2.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "LeakyReLU")]
    LeakyRelu {
        /// The factor below 0.
        slope: f64 = 0.01,
    } => |self, input| input.leaky_relu_with(self.slope);

    /// `x`, and `alpha * (exp(x) - 1)` below 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Elu, Module}};
    /// assert_eq!(Elu::default().forward(&Tensor::new(2.0f32)?)?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "ELU")]
    Elu {
        /// The negated limit as `x` goes to minus infinity.
        alpha: f64 = 1.0,
    } => |self, input| input.elu_with(self.alpha);

    /// `x`, and `alpha * (exp(x / alpha) - 1)` below 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Celu, Module}};
    /// assert_eq!(Celu::default().forward(&Tensor::new(2.0f32)?)?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "CELU")]
    Celu {
        /// The negated limit as `x` goes to minus infinity.
        alpha: f64 = 1.0,
    } => |self, input| input.celu_with(self.alpha);

    /// Soft thresholding: `sign(x) * max(|x| - lambd, 0)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Softshrink}};
    /// assert_eq!(Softshrink::default().forward(&Tensor::new(2.0f32)?)?.item::<f32>()?, 1.5);
    /// # Ok(()) }
    /// ```
    Softshrink {
        /// The distance by which elements are shrunk towards 0.
        lambd: f64 = 0.5,
    } => |self, input| input.softshrink_with(self.lambd);

    /// `clamp(x, min_val, max_val)`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Hardtanh, Module}};
    /// let y = Hardtanh::default().forward(&Tensor::new([-2.0f32, 0.5])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 0.5]);
    /// # Ok(()) }
    /// ```
    Hardtanh {
        /// The lower bound.
        min_val: f64 = -1.0,
        /// The upper bound.
        max_val: f64 = 1.0,
    } => |self, input| input.hardtanh_with(self.min_val, self.max_val);

    /// Hard thresholding: `x`, and 0 where `|x| <= lambd`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Hardshrink, Module}};
    /// let y = Hardshrink::default().forward(&Tensor::new([-0.5f32, 2.0])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    Hardshrink {
        /// The threshold of `|x|`.
        lambd: f64 = 0.5,
    } => |self, input| input.hardshrink_with(self.lambd);

    /// `x` if it is above `threshold`, otherwise `value`; see [`Tensor::threshold`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Threshold}};
    /// let y = Threshold { threshold: 1.0, value: -9.0 }.forward(&Tensor::new([0.5f32, 2.0])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-9.0, 2.0]);
    /// # Ok(()) }
    /// ```
    Threshold {
        /// The threshold that an element must exceed to be left unchanged.
        threshold: f64 = 0.0,
        /// The replacement of elements at or below the threshold.
        value: f64 = 0.0,
    } => |self, input| input.threshold(self.threshold, self.value);

    /// Gated linear unit: the first half of a dimension times the sigmoid of the second half.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Glu, Module}};
    /// let y = Glu::default().forward(&Tensor::new([3.0f32, 0.0])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.5]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "GLU")]
    Glu {
        /// The dimension; -1 is the last.
        dim: i64 = -1,
    } => |self, input| input.glu_with(self.dim);

    /// `log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` is above the threshold.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Softplus}};
    /// let y = Softplus::default().forward(&Tensor::new(0.0f32)?)?.item::<f32>()?;
    /// assert!((y - 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    Softplus {
        /// The sharpness of the bend at 0.
        beta: f64 = 1.0,
        /// The value of `beta * x` above which the function is linear.
        threshold: f64 = 20.0,
    } => |self, input| input.softplus_with(self.beta, self.threshold);

    /// Softmax: converts scores to probabilities that sum to 1 along a dimension.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{Module, Softmax}};
    /// let y = Softmax::default().forward(&Tensor::new([1.0f32, 1.0])?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    Softmax {
        /// The dimension; -1 is the last.
        dim: i64 = -1,
    } => |self, input| input.softmax(self.dim);

    /// Log-softmax: converts scores to log-probabilities, the input of [`NllLoss`](super::NllLoss).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{LogSoftmax, Module}};
    /// let y = LogSoftmax::default().forward(&Tensor::new([1.0f32, 1.0])?)?.to_vec::<f32>()?;
    /// assert!((y[0] + 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    LogSoftmax {
        /// The dimension; -1 is the last.
        dim: i64 = -1,
    } => |self, input| input.log_softmax(self.dim);
}

//! The ops of layers and losses as functions, for those used to `F.relu(x)`. Each is the method of [`Tensor`] of the same name,
//! which has the documentation; the losses refuse shapes that would silently broadcast, as the modules do.
//!
//! ```
//! # fn main() -> keyway::Result<()> {
//! use keyway::nn::functional as F;
//! use keyway::prelude::*;
//! let x = Tensor::new([[1.0f32, -1.0], [0.0, 2.0]])?;
//! let classes = Tensor::new([0i64, 1])?;
//! assert_eq!(F::relu(&x)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 2.0]);
//! assert!(F::cross_entropy(&x, &classes)?.item::<f32>()? < 0.2);
//! # Ok(()) }
//! ```

use super::loss::same_shape;
use super::{AttentionOptions, AvgPoolOptions, ConvOptions, InterpolateOptions, MaxPoolOptions};
use crate::tensor::IntoShape;
use crate::{Result, Tensor};

macro_rules! functions {
    ($($name:ident($input:ident $(, $arg:ident: $type:ty)*);)*) => {$(
        #[doc = concat!("[`Tensor::", stringify!($name), "`].")]
        ///
        /// # Errors
        /// Those of the method.
        pub fn $name($input: &Tensor $(, $arg: $type)*) -> Result<Tensor> {
            $input.$name($($arg),*)
        }
    )*};
}

functions! {
    avg_pool1d(input, options: AvgPoolOptions<1>);
    avg_pool2d(input, options: AvgPoolOptions<2>);
    avg_pool3d(input, options: AvgPoolOptions<3>);
    celu(input);
    conv1d(input, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions<1>);
    conv2d(input, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions<2>);
    conv3d(input, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions<3>);
    cosine_similarity(input, other: &Tensor, dim: i64);
    cross_entropy(input, target: &Tensor);
    dropout(input, p: f64, training: bool);
    elu(input);
    gelu(input);
    glu(input, dim: i64);
    hardshrink(input);
    hardsigmoid(input);
    hardswish(input);
    hardtanh(input);
    interpolate(input, options: &InterpolateOptions);
    leaky_relu(input);
    linear(input, weight: &Tensor, bias: Option<&Tensor>);
    log_softmax(input, dim: i64);
    max_pool1d(input, options: MaxPoolOptions<1>);
    max_pool2d(input, options: MaxPoolOptions<2>);
    max_pool3d(input, options: MaxPoolOptions<3>);
    logsigmoid(input);
    mish(input);
    nll_loss(input, target: &Tensor);
    normalize(input, dim: i64);
    one_hot(input, num_classes: Option<i64>);
    pad(input, widths: impl IntoShape);
    pixel_shuffle(input, upscale_factor: usize);
    prelu(input, weight: &Tensor);
    relu(input);
    relu6(input);
    scaled_dot_product_attention(input, key: &Tensor, value: &Tensor, options: AttentionOptions<'_>);
    selu(input);
    sigmoid(input);
    silu(input);
    softmax(input, dim: i64);
    softplus(input);
    softshrink(input);
    softsign(input);
    tanh(input);
    tanhshrink(input);
}

macro_rules! losses {
    ($($name:ident;)*) => {$(
        #[doc = concat!("[`Tensor::", stringify!($name), "`] of two tensors of one shape.")]
        ///
        /// # Errors
        /// Those of the method; another shape of the target.
        pub fn $name(input: &Tensor, target: &Tensor) -> Result<Tensor> {
            same_shape(stringify!($name), input, target)?;
            input.$name(target)
        }
    )*};
}

losses! {
    binary_cross_entropy;
    binary_cross_entropy_with_logits;
    huber_loss;
    kl_div;
    l1_loss;
    mse_loss;
    smooth_l1_loss;
}

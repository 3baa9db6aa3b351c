//! The ops of layers and losses as functions, in the style of `F.relu(x)`. Each calls the method of [`Tensor`] of the same
//! name, which has the documentation; the losses refuse shapes that would silently broadcast, as the modules do.
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

mod losses;

use super::{AttentionOptions, AvgPoolOptions, ConvOptions, GridOptions, InterpolateOptions, MaxPoolOptions};
use crate::tensor::IntoShape;
use crate::{Result, Tensor};
pub use losses::*;

/// [`Tensor::embedding`], with the indices first as in PyTorch.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::functional as F};
/// let (at, weight) = (Tensor::new([1i64, 0])?, Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?);
/// assert_eq!(F::embedding(&at, &weight)?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of the method.
pub fn embedding(input: &Tensor, weight: &Tensor) -> Result<Tensor> {
    weight.embedding(input)
}

macro_rules! functions {
    ($($(#[$example:meta])+ $name:ident($input:ident $(, $arg:ident: $type:ty)*);)*) => {$(
        #[doc = concat!("[`Tensor::", stringify!($name), "`].")]
        ///
        $(#[$example])+
        ///
        /// # Errors
        /// Those of the method.
        pub fn $name($input: &Tensor $(, $arg: $type)*) -> Result<Tensor> {
            $input.$name($($arg),*)
        }
    )*};
}

functions! {
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([[[1.0f32, 2.0, 3.0, 4.0]]])?;
    /// assert_eq!(F::avg_pool1d(&x, 2)?.to_vec::<f32>()?, [1.5, 3.5]);
    /// # Ok(()) }
    /// ```
    avg_pool1d(input, options: impl Into<AvgPoolOptions<1>>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([[[[1.0f32, 2.0], [3.0, 4.0]]]])?;
    /// assert_eq!(F::avg_pool2d(&x, [1, 2])?.to_vec::<f32>()?, [1.5, 3.5]);
    /// # Ok(()) }
    /// ```
    avg_pool2d(input, options: impl Into<AvgPoolOptions<2>>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, 3.0])?.reshape((1, 1, 2, 1, 1))?;
    /// assert_eq!(F::avg_pool3d(&x, [2, 1, 1])?.to_vec::<f32>()?, [2.0]);
    /// # Ok(()) }
    /// ```
    avg_pool3d(input, options: impl Into<AvgPoolOptions<3>>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-20.0f32, 2.0])?;
    /// assert_eq!(F::celu(&x)?.to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    celu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, weight) = (Tensor::new([[[1.0f32, 2.0, 3.0]]])?, Tensor::new([[[1.0f32, 10.0]]])?);
    /// assert_eq!(F::conv1d(&x, &weight, None)?.to_vec::<f32>()?, [21.0, 32.0]);
    /// # Ok(()) }
    /// ```
    conv1d(input, weight: &Tensor, bias: Option<&Tensor>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ConvOptions, functional as F}};
    /// let (x, weight) = (Tensor::new([[[1.0f32, 2.0, 3.0]]])?, Tensor::new([[[1.0f32, 10.0]]])?);
    /// let y = F::conv1d_with(&x, &weight, None, ConvOptions::default().stride(2))?;
    /// assert_eq!(y.to_vec::<f32>()?, [21.0]);
    /// # Ok(()) }
    /// ```
    conv1d_with(input, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions<1>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, weight) = (Tensor::ones((1, 1, 3, 3))?, Tensor::ones((1, 1, 2, 2))?);
    /// let bias = Tensor::new([0.5f32])?;
    /// let y = F::conv2d(&x, &weight, Some(&bias))?;
    /// assert_eq!(y.to_vec::<f32>()?, [4.5, 4.5, 4.5, 4.5]);
    /// # Ok(()) }
    /// ```
    conv2d(input, weight: &Tensor, bias: Option<&Tensor>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ConvOptions, functional as F}};
    /// let (x, weight) = (Tensor::ones((1, 1, 3, 3))?, Tensor::ones((1, 1, 3, 3))?);
    /// let y = F::conv2d_with(&x, &weight, None, ConvOptions::default().padding(1))?;
    /// assert_eq!(y.shape(), [1, 1, 3, 3]);
    /// # Ok(()) }
    /// ```
    conv2d_with(input, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions<2>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, weight) = (Tensor::ones((1, 1, 2, 2, 2))?, Tensor::ones((1, 1, 2, 2, 2))?);
    /// assert_eq!(F::conv3d(&x, &weight, None)?.to_vec::<f32>()?, [8.0]);
    /// # Ok(()) }
    /// ```
    conv3d(input, weight: &Tensor, bias: Option<&Tensor>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ConvOptions, functional as F}};
    /// let (x, weight) = (Tensor::ones((1, 1, 2, 2, 2))?, Tensor::ones((1, 1, 2, 2, 2))?);
    /// let y = F::conv3d_with(&x, &weight, None, ConvOptions::default().padding((0, 0, 1)))?;
    /// assert_eq!(y.shape(), [1, 1, 1, 1, 3]);
    /// # Ok(()) }
    /// ```
    conv3d_with(input, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions<3>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (a, b) = (Tensor::new([[1.0f32, 0.0], [0.0, 2.0]])?, Tensor::new([[2.0f32, 0.0], [3.0, 0.0]])?);
    /// assert_eq!(F::cosine_similarity(&a, &b, 1)?.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok(()) }
    /// ```
    cosine_similarity(input, other: &Tensor, dim: i64);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let scores = Tensor::zeros((2, 4))?;
    /// let loss = F::cross_entropy(&scores, &Tensor::new([0i64, 3])?)?.item::<f32>()?;
    /// assert!((loss - 4f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    cross_entropy(input, target: &Tensor);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(F::dropout(&x, 0.5, false)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert_eq!(F::dropout(&x, 1.0, true)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    dropout(input, p: f64, training: bool);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-20.0f32, 2.0])?;
    /// assert_eq!(F::elu(&x)?.to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    elu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-10.0f32, 0.0, 10.0])?;
    /// assert_eq!(F::gelu(&x)?.to_vec::<f32>()?, [0.0, 0.0, 10.0]);
    /// # Ok(()) }
    /// ```
    gelu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([3.0f32, 0.0])?;
    /// assert_eq!(F::glu(&x)?.to_vec::<f32>()?, [1.5]);
    /// # Ok(()) }
    /// ```
    glu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-0.5f32, 2.0])?;
    /// assert_eq!(F::hardshrink(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    hardshrink(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-4.0f32, 0.0])?;
    /// assert_eq!(F::hardsigmoid(&x)?.to_vec::<f32>()?, [0.0, 0.5]);
    /// # Ok(()) }
    /// ```
    hardsigmoid(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, 3.0])?;
    /// let y = F::layer_norm(&x, 2, None, None)?.to_vec::<f32>()?;
    /// assert!((y[0] + 1.0).abs() < 1e-5 && (y[1] - 1.0).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    layer_norm(input, normalized_shape: impl IntoShape, weight: Option<&Tensor>, bias: Option<&Tensor>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0, 10.0, 30.0], (1, 4))?;
    /// let y = F::group_norm(&x, 2, None, None)?.to_vec::<f32>()?;
    /// assert!((y[0] + 1.0).abs() < 1e-5 && (y[3] - 1.0).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    group_norm(input, num_groups: i64, weight: Option<&Tensor>, bias: Option<&Tensor>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, -7.0])?;
    /// assert_eq!(F::rms_norm(&x, 2, None)?.to_vec::<f32>()?, [0.2, -1.4]);
    /// # Ok(()) }
    /// ```
    rms_norm(input, normalized_shape: impl IntoShape, weight: Option<&Tensor>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 1, 2))?;
    /// let grid = Tensor::from_vec(vec![0.0f32, 0.0, 0.5, 0.0], (1, 1, 2, 2))?;
    /// assert_eq!(F::grid_sample(&x, &grid)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    grid_sample(input, grid: &Tensor);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{GridOptions, functional as F}};
    /// let x = Tensor::from_vec(vec![1.0f32, 3.0], (1, 1, 1, 2))?;
    /// let grid = Tensor::from_vec(vec![1.0f32, 0.0], (1, 1, 1, 2))?;
    /// let corners = GridOptions { align_corners: true, ..GridOptions::default() };
    /// assert_eq!(F::grid_sample_with(&x, &grid, corners)?.to_vec::<f32>()?, [3.0]);
    /// # Ok(()) }
    /// ```
    grid_sample_with(input, grid: &Tensor, options: GridOptions);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-3.0f32, 3.0])?;
    /// assert_eq!(F::hardswish(&x)?.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok(()) }
    /// ```
    hardswish(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-2.0f32, 0.5])?;
    /// assert_eq!(F::hardtanh(&x)?.to_vec::<f32>()?, [-1.0, 0.5]);
    /// # Ok(()) }
    /// ```
    hardtanh(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{InterpolateOptions, functional as F}};
    /// let x = Tensor::new([[[1.0f32, 2.0]]])?;
    /// assert_eq!(F::interpolate(&x, &InterpolateOptions::scale(2.0))?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok(()) }
    /// ```
    interpolate(input, options: &InterpolateOptions);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-1.0f32, 2.0])?;
    /// assert_eq!(F::leaky_relu(&x)?.to_vec::<f32>()?, [-0.01, 2.0]);
    /// # Ok(()) }
    /// ```
    leaky_relu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, weight) = (Tensor::new([1.0f32, 2.0])?, Tensor::new([[1.0f32, 1.0], [0.0, 1.0]])?);
    /// let bias = Tensor::new([10.0f32, 20.0])?;
    /// assert_eq!(F::linear(&x, &weight, Some(&bias))?.to_vec::<f32>()?, [13.0, 22.0]);
    /// # Ok(()) }
    /// ```
    linear(input, weight: &Tensor, bias: Option<&Tensor>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let y = F::log_softmax(&Tensor::new([0.0f32, 0.0])?, 0)?.to_vec::<f32>()?;
    /// assert!(y.iter().all(|v| (v + 2f32.ln()).abs() < 1e-6));
    /// # Ok(()) }
    /// ```
    log_softmax(input, dim: i64);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-200.0f32])?;
    /// assert_eq!(F::logsigmoid(&x)?.to_vec::<f32>()?, [-200.0]);
    /// # Ok(()) }
    /// ```
    logsigmoid(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0]]])?;
    /// assert_eq!(F::max_pool1d(&x, 2)?.to_vec::<f32>()?, [4.0, 3.0]);
    /// # Ok(()) }
    /// ```
    max_pool1d(input, options: impl Into<MaxPoolOptions<1>>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([[[[1.0f32, 4.0], [3.0, 2.0]]]])?;
    /// assert_eq!(F::max_pool2d(&x, [2, 1])?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    max_pool2d(input, options: impl Into<MaxPoolOptions<2>>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, 3.0])?.reshape((1, 1, 2, 1, 1))?;
    /// assert_eq!(F::max_pool3d(&x, [2, 1, 1])?.to_vec::<f32>()?, [3.0]);
    /// # Ok(()) }
    /// ```
    max_pool3d(input, options: impl Into<MaxPoolOptions<3>>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([0.0f32, 20.0])?;
    /// assert_eq!(F::mish(&x)?.to_vec::<f32>()?, [0.0, 20.0]);
    /// # Ok(()) }
    /// ```
    mish(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let logs = Tensor::new([[-1.0f32, -2.0], [-3.0, -4.0]])?;
    /// assert_eq!(F::nll_loss(&logs, &Tensor::new([0i64, 1])?)?.item::<f32>()?, 2.5);
    /// # Ok(()) }
    /// ```
    nll_loss(input, target: &Tensor);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([3.0f32, 4.0])?;
    /// assert_eq!(F::normalize(&x, 0)?.to_vec::<f32>()?, [0.6, 0.8]);
    /// # Ok(()) }
    /// ```
    normalize(input, dim: i64);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([0i64, 2])?;
    /// assert_eq!(F::one_hot(&x, -1)?.to_vec::<i64>()?, [1, 0, 0, 0, 0, 1]);
    /// assert_eq!(F::one_hot(&x, 5)?.shape(), [2, 5]);
    /// # Ok(()) }
    /// ```
    one_hot(input, num_classes: i64);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// assert_eq!(F::pad(&x, (1, 2))?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    pad(input, widths: impl IntoShape);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, 2.0, 3.0, 4.0])?.reshape((1, 4, 1, 1))?;
    /// assert_eq!(F::pixel_shuffle(&x, 2)?.shape(), [1, 1, 2, 2]);
    /// # Ok(()) }
    /// ```
    pixel_shuffle(input, upscale_factor: usize);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let (x, weight) = (Tensor::new([-4.0f32, 2.0])?, Tensor::new([0.25f32])?);
    /// assert_eq!(F::prelu(&x, &weight)?.to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    prelu(input, weight: &Tensor);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-1.0f32, 2.0])?;
    /// assert_eq!(F::relu(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    relu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-1.0f32, 7.0])?;
    /// assert_eq!(F::relu6(&x)?.to_vec::<f32>()?, [0.0, 6.0]);
    /// # Ok(()) }
    /// ```
    relu6(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// // One key takes all of the weight, so the result is its value.
    /// let (query, key) = (Tensor::ones((1, 1, 2))?, Tensor::ones((1, 1, 2))?);
    /// let value = Tensor::new([[[5.0f32, 7.0]]])?;
    /// let y = F::scaled_dot_product_attention(&query, &key, &value)?;
    /// assert_eq!(y.to_vec::<f32>()?, [5.0, 7.0]);
    /// # Ok(()) }
    /// ```
    scaled_dot_product_attention(input, key: &Tensor, value: &Tensor);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{AttentionOptions, functional as F}};
    /// let (x, value) = (Tensor::zeros((1, 2, 1))?, Tensor::new([[[1.0f32], [3.0]]])?);
    /// let causal = AttentionOptions { is_causal: true, ..AttentionOptions::default() };
    /// let y = F::scaled_dot_product_attention_with(&x, &x, &value, causal)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    scaled_dot_product_attention_with(input, key: &Tensor, value: &Tensor, options: AttentionOptions<'_>);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let y = F::selu(&Tensor::new([0.0f32, 1.0])?)?.to_vec::<f32>()?;
    /// assert!(y[0] == 0.0 && (y[1] - 1.050701).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    selu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-200.0f32, 0.0, 200.0])?;
    /// assert_eq!(F::sigmoid(&x)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok(()) }
    /// ```
    sigmoid(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([0.0f32, 20.0])?;
    /// assert_eq!(F::silu(&x)?.to_vec::<f32>()?, [0.0, 20.0]);
    /// # Ok(()) }
    /// ```
    silu(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([0.0f32, 0.0])?;
    /// assert_eq!(F::softmax(&x, 0)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    softmax(input, dim: i64);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let y = F::softplus(&Tensor::new([0.0f32, 30.0])?)?.to_vec::<f32>()?;
    /// assert!((y[0] - 2f32.ln()).abs() < 1e-6 && y[1] == 30.0);
    /// # Ok(()) }
    /// ```
    softplus(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([1.0f32, 0.25, -1.5])?;
    /// assert_eq!(F::softshrink(&x)?.to_vec::<f32>()?, [0.5, 0.0, -1.0]);
    /// # Ok(()) }
    /// ```
    softshrink(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-1.0f32, 3.0])?;
    /// assert_eq!(F::softsign(&x)?.to_vec::<f32>()?, [-0.5, 0.75]);
    /// # Ok(()) }
    /// ```
    softsign(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([-20.0f32, 0.0, 20.0])?;
    /// assert_eq!(F::tanh(&x)?.to_vec::<f32>()?, [-1.0, 0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    tanh(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([0.0f32, 100.0])?;
    /// assert_eq!(F::tanhshrink(&x)?.to_vec::<f32>()?, [0.0, 99.0]);
    /// # Ok(()) }
    /// ```
    tanhshrink(input);
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::functional as F};
    /// let x = Tensor::new([0.5f32, 2.0])?;
    /// assert_eq!(F::threshold(&x, 1.0, -9.0)?.to_vec::<f32>()?, [-9.0, 2.0]);
    /// # Ok(()) }
    /// ```
    threshold(input, threshold: f64, value: f64);
}

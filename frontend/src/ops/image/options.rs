//! The options of image ops.

use crate::ops::conv::PerDim;

/// The interpolation mode of [`Tensor::interpolate`](crate::Tensor::interpolate).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{InterpolateMode, InterpolateOptions}};
/// let x = Tensor::new([[[1.0f32, 3.0]]])?;
/// let by = |mode| x.interpolate(&InterpolateOptions::size(4).mode(mode))?.to_vec::<f32>();
/// assert_eq!(by(InterpolateMode::Nearest)?, [1.0, 1.0, 3.0, 3.0]);
/// assert_eq!(by(InterpolateMode::Linear)?, [1.0, 1.5, 2.5, 3.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InterpolateMode {
    /// Nearest neighbour without the half-pixel offset: input element `⌊i * input / output⌋`.
    #[default]
    Nearest,
    /// Nearest neighbour of the pixel centre: input element `⌊(i + 1/2) * input / output⌋`.
    NearestExact,
    /// Linear interpolation of `[batch, channels, length]`, from 2 elements.
    Linear,
    /// Bilinear interpolation of `[batch, channels, height, width]`, from 4 elements.
    Bilinear,
    /// Bicubic interpolation of `[batch, channels, height, width]`, from 16 elements (R. Keys, "Cubic convolution
    /// interpolation", 1981, with a = -0.75).
    Bicubic,
    /// Trilinear interpolation of `[batch, channels, depth, height, width]`, from 8 elements.
    Trilinear,
    /// Adaptive average pooling.
    Area,
}

/// The target size of a resize. A list of one value applies to every spatial dimension.
///
/// ```
/// use keyway::nn::{InterpolateOptions, Resize};
/// assert_eq!(InterpolateOptions::scale(2.0).to, Resize::Scale(vec![2.0]));
/// assert_eq!(InterpolateOptions::sizes(&[3, 4]).to, Resize::Size(vec![3, 4]));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Resize {
    /// The spatial sizes.
    Size(Vec<usize>),
    /// Factors of the input's spatial sizes; the products are rounded down.
    Scale(Vec<f64>),
}

/// The options of [`Tensor::interpolate`](crate::Tensor::interpolate).
///
/// ```
/// use keyway::nn::{InterpolateMode, InterpolateOptions};
/// let doubled = InterpolateOptions::scale(2.0).mode(InterpolateMode::Bilinear);
/// assert!(!doubled.align_corners);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct InterpolateOptions {
    /// The target size.
    pub to: Resize,
    /// The interpolation mode; `Nearest` by default.
    pub mode: InterpolateMode,
    /// Whether the centres of the corner pixels are aligned, rather than their outer edges; for the linear and cubic modes.
    pub align_corners: bool,
    /// Whether sampling positions use the ratio of the (rounded) sizes instead of the given scale factors.
    pub recompute_scale_factor: bool,
}

impl InterpolateOptions {
    fn to(to: Resize) -> InterpolateOptions {
        let mode = InterpolateMode::Nearest;
        InterpolateOptions { to, mode, align_corners: false, recompute_scale_factor: false }
    }

    /// Resizes each spatial dimension to this size.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::InterpolateOptions};
    /// let x = Tensor::ones((1, 1, 2, 3))?;
    /// assert_eq!(x.interpolate(&InterpolateOptions::size(4))?.shape(), [1, 1, 4, 4]);
    /// # Ok(()) }
    /// ```
    pub fn size(all: usize) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Size(vec![all]))
    }

    /// Resizes to these spatial sizes.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::InterpolateOptions};
    /// let x = Tensor::ones((1, 1, 2, 3))?;
    /// assert_eq!(x.interpolate(&InterpolateOptions::sizes(&[4, 5]))?.shape(), [1, 1, 4, 5]);
    /// # Ok(()) }
    /// ```
    pub fn sizes(each: &[usize]) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Size(each.to_vec()))
    }

    /// Scales each spatial dimension by this factor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::InterpolateOptions};
    /// let x = Tensor::ones((1, 1, 2, 3))?;
    /// assert_eq!(x.interpolate(&InterpolateOptions::scale(2.0))?.shape(), [1, 1, 4, 6]);
    /// # Ok(()) }
    /// ```
    pub fn scale(all: f64) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Scale(vec![all]))
    }

    /// Scales the spatial dimensions by these factors.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::InterpolateOptions};
    /// let x = Tensor::ones((1, 1, 2, 3))?;
    /// assert_eq!(x.interpolate(&InterpolateOptions::scales(&[2.0, 3.0]))?.shape(), [1, 1, 4, 9]);
    /// # Ok(()) }
    /// ```
    pub fn scales(each: &[f64]) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Scale(each.to_vec()))
    }

    /// Sets the interpolation mode.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{InterpolateMode, InterpolateOptions}};
    /// let x = Tensor::new([[[1.0f32, 3.0, 5.0, 7.0]]])?;
    /// let mean = InterpolateOptions::size(2).mode(InterpolateMode::Area);
    /// assert_eq!(x.interpolate(&mean)?.to_vec::<f32>()?, [2.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn mode(self, mode: InterpolateMode) -> Self {
        InterpolateOptions { mode, ..self }
    }

    /// Sets whether the centres of the corner pixels are aligned.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{InterpolateMode, InterpolateOptions}};
    /// let x = Tensor::new([[[1.0f32, 3.0]]])?;
    /// let aligned = InterpolateOptions::size(3).mode(InterpolateMode::Linear).align_corners(true);
    /// assert_eq!(x.interpolate(&aligned)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn align_corners(self, on: bool) -> Self {
        InterpolateOptions { align_corners: on, ..self }
    }

    /// Computes sampling locations from the ratio of the sizes instead of the given factors.
    ///
    /// ```
    /// use keyway::nn::InterpolateOptions;
    /// assert!(!InterpolateOptions::scale(1.5).recompute_scale_factor);
    /// assert!(InterpolateOptions::scale(1.5).recompute_scale_factor(true).recompute_scale_factor);
    /// ```
    #[must_use]
    pub fn recompute_scale_factor(self, on: bool) -> Self {
        InterpolateOptions { recompute_scale_factor: on, ..self }
    }
}

/// The options of a sliding window: by default stride 1, no dilation and no padding.
///
/// ```
/// use keyway::nn::{PerDim, UnfoldOptions};
/// let window = UnfoldOptions::new(3).padding(1);
/// assert_eq!((window.stride, window.dilation), (PerDim([1, 1]), PerDim([1, 1])));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnfoldOptions {
    /// The window size.
    pub kernel: PerDim<2>,
    /// The distance between adjacent window elements, in pixels.
    pub dilation: PerDim<2>,
    /// The zero padding on either side.
    pub padding: PerDim<2>,
    /// The distance between adjacent window positions, in pixels.
    pub stride: PerDim<2>,
}

impl UnfoldOptions {
    /// A window of this size.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::UnfoldOptions};
    /// let x = Tensor::ones((1, 1, 4, 4))?;
    /// assert_eq!(x.im2col(UnfoldOptions::new([2, 3]))?.shape(), [1, 6, 6]);
    /// # Ok(()) }
    /// ```
    pub fn new(kernel: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { kernel: kernel.into(), dilation: 1.into(), padding: 0.into(), stride: 1.into() }
    }

    /// Sets the dilation.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::UnfoldOptions};
    /// let x = Tensor::ones((1, 1, 4, 4))?;
    /// assert_eq!(x.im2col(UnfoldOptions::new(2).dilation(3))?.shape(), [1, 4, 1]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { dilation: dilation.into(), ..self }
    }

    /// Sets the padding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::UnfoldOptions};
    /// let x = Tensor::ones((1, 1, 4, 4))?;
    /// assert_eq!(x.im2col(UnfoldOptions::new(2).padding(1))?.shape(), [1, 4, 25]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { padding: padding.into(), ..self }
    }

    /// Sets the stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::UnfoldOptions};
    /// let x = Tensor::ones((1, 1, 4, 4))?;
    /// assert_eq!(x.im2col(UnfoldOptions::new(2).stride(2))?.shape(), [1, 4, 4]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { stride: stride.into(), ..self }
    }
}

/// The interpolation mode of [`Tensor::grid_sample`](crate::Tensor::grid_sample).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{GridMode, GridOptions}};
/// let (x, at) = (Tensor::new([[[[1.0f32, 3.0]]]])?, Tensor::new([[[[0.25f32, 0.0]]]])?);
/// let by = |mode| x.grid_sample_with(&at, GridOptions { mode, ..GridOptions::default() })?.item::<f32>();
/// assert_eq!((by(GridMode::Bilinear)?, by(GridMode::Nearest)?), (2.5, 3.0));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GridMode {
    /// Bilinear, or trilinear for volumes.
    #[default]
    Bilinear,
    /// The nearest pixel; ties go to the even index.
    Nearest,
    /// Bicubic, from 16 pixels (R. Keys, "Cubic convolution interpolation", 1981, with a = -0.75); not for volumes.
    Bicubic,
}

/// The padding mode: the values of pixels outside an image.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{GridOptions, GridPadding}};
/// let (x, at) = (Tensor::new([[[[1.0f32, 3.0]]]])?, Tensor::new([[[[5.0f32, 0.0]]]])?);
/// let by = |padding| x.grid_sample_with(&at, GridOptions { padding, ..GridOptions::default() })?.item::<f32>();
/// assert_eq!((by(GridPadding::Zeros)?, by(GridPadding::Border)?), (0.0, 3.0));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GridPadding {
    /// Zeros.
    #[default]
    Zeros,
    /// The nearest border pixel.
    Border,
    /// The image reflected at its border, repeatedly.
    Reflection,
}

/// The options of [`Tensor::grid_sample`](crate::Tensor::grid_sample).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::GridOptions};
/// let (x, at) = (Tensor::new([[[[1.0f32, 3.0]]]])?, Tensor::new([[[[1.0f32, 0.0]]]])?);
/// // The centre of the last pixel.
/// let options = GridOptions { align_corners: true, ..GridOptions::default() };
/// assert_eq!(x.grid_sample_with(&at, options)?.item::<f32>()?, 3.0);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GridOptions {
    /// The interpolation mode.
    pub mode: GridMode,
    /// The padding mode.
    pub padding: GridPadding,
    /// Whether -1 and 1 are the centres of the outermost pixels rather than their outer edges.
    pub align_corners: bool,
}

//! What images are resampled with.

use crate::ops::conv::PerDim;

/// How elements between those of an image are made.
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
    /// The element whose interval the place lies in, counted from the first element's edge: `⌊i * input / output⌋`.
    #[default]
    Nearest,
    /// The element nearest to the centre of the place: `⌊(i + 1/2) * input / output⌋`.
    NearestExact,
    /// Between two elements of `[batch, channels, length]`.
    Linear,
    /// Between four elements of `[batch, channels, height, width]`.
    Bilinear,
    /// Between sixteen elements of `[batch, channels, height, width]` (R. Keys, "Cubic convolution interpolation", 1981, with
    /// a = -0.75).
    Bicubic,
    /// Between eight elements of `[batch, channels, depth, height, width]`.
    Trilinear,
    /// The mean of the elements under the place: adaptive average pooling.
    Area,
}

/// To which spatial sizes an image is resampled. One number stands for every spatial dimension.
///
/// ```
/// use keyway::nn::{InterpolateOptions, Resize};
/// assert_eq!(InterpolateOptions::scale(2.0).to, Resize::Scale(vec![2.0]));
/// assert_eq!(InterpolateOptions::sizes(&[3, 4]).to, Resize::Size(vec![3, 4]));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Resize {
    /// To these.
    Size(Vec<usize>),
    /// To so many times the input's, rounded down.
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
    /// To which sizes.
    pub to: Resize,
    /// How elements between those of the image are made; the nearest if not stated.
    pub mode: InterpolateMode,
    /// Whether the centres of the outermost elements stay where they are, rather than the outer edges; for the linear and cubic
    /// modes.
    pub align_corners: bool,
    /// Whether places follow from the sizes, which are rounded down, rather than from the factors that were given.
    pub recompute_scale_factor: bool,
}

impl InterpolateOptions {
    fn to(to: Resize) -> InterpolateOptions {
        let mode = InterpolateMode::Nearest;
        InterpolateOptions { to, mode, align_corners: false, recompute_scale_factor: false }
    }

    /// To the same size in each spatial dimension.
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

    /// To these spatial sizes.
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

    /// With this mode.
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

    /// With the centres of the outermost elements where they are, or without.
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

    /// Computes sampling locations from the ratio of the sizes, or from the given factors.
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

/// A window that moves over images: by default one step at a time, without dilation and padding.
///
/// ```
/// use keyway::nn::{PerDim, UnfoldOptions};
/// let window = UnfoldOptions::new(3).padding(1);
/// assert_eq!((window.stride, window.dilation), (PerDim([1, 1]), PerDim([1, 1])));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnfoldOptions {
    /// Elements of the window.
    pub kernel: PerDim<2>,
    /// Elements from one element of the window to the next.
    pub dilation: PerDim<2>,
    /// The border of zeros on either side.
    pub padding: PerDim<2>,
    /// Elements from one place of the window to the next.
    pub stride: PerDim<2>,
}

impl UnfoldOptions {
    /// A window of these sizes.
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

    /// With this dilation.
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

    /// With this padding.
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

    /// With this stride.
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

/// How [`Tensor::grid_sample`](crate::Tensor::grid_sample) makes what lies between the pixels of an image.
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
    /// From the pixels around it, linearly.
    #[default]
    Bilinear,
    /// The nearest pixel; of two that are as near, the one at an even place.
    Nearest,
    /// From sixteen pixels (R. Keys, "Cubic convolution interpolation", 1981, with a = -0.75); not for volumes.
    Bicubic,
}

/// What lies outside an image.
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
    /// The pixels of the border.
    Border,
    /// The image mirrored at its border, again and again.
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
    /// How pixels are made.
    pub mode: GridMode,
    /// What lies outside.
    pub padding: GridPadding,
    /// Whether -1 and 1 are the centres of the outermost pixels rather than their outer edges.
    pub align_corners: bool,
}

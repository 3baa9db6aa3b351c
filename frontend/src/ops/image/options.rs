//! What images are resampled with.

use crate::ops::conv::PerDim;

/// How elements between those of an image are made.
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
/// use keyway::ops::image::{InterpolateMode, InterpolateOptions};
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
    pub fn size(all: usize) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Size(vec![all]))
    }

    /// To these spatial sizes.
    pub fn sizes(each: &[usize]) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Size(each.to_vec()))
    }

    /// To so many times the size of each spatial dimension.
    pub fn scale(all: f64) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Scale(vec![all]))
    }

    /// To so many times the sizes of the spatial dimensions.
    pub fn scales(each: &[f64]) -> InterpolateOptions {
        InterpolateOptions::to(Resize::Scale(each.to_vec()))
    }

    /// With this mode.
    #[must_use]
    pub fn mode(self, mode: InterpolateMode) -> Self {
        InterpolateOptions { mode, ..self }
    }

    /// With the centres of the outermost elements where they are, or without.
    #[must_use]
    pub fn align_corners(self, on: bool) -> Self {
        InterpolateOptions { align_corners: on, ..self }
    }

    /// With places that follow from the sizes, or from the factors.
    #[must_use]
    pub fn recompute_scale_factor(self, on: bool) -> Self {
        InterpolateOptions { recompute_scale_factor: on, ..self }
    }
}

/// A window that moves over images: by default one step at a time, without dilation and padding.
///
/// ```
/// use keyway::ops::{conv::PerDim, image::UnfoldOptions};
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
    pub fn new(kernel: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { kernel: kernel.into(), dilation: 1.into(), padding: 0.into(), stride: 1.into() }
    }

    /// With this dilation.
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { dilation: dilation.into(), ..self }
    }

    /// With this padding.
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { padding: padding.into(), ..self }
    }

    /// With this stride.
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<2>>) -> Self {
        UnfoldOptions { stride: stride.into(), ..self }
    }
}

/// How [`Tensor::grid_sample`](crate::Tensor::grid_sample) makes what lies between the pixels of an image.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GridOptions {
    /// How pixels are made.
    pub mode: GridMode,
    /// What lies outside.
    pub padding: GridPadding,
    /// Whether -1 and 1 are the centres of the outermost pixels rather than their outer edges.
    pub align_corners: bool,
}

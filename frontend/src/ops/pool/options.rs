//! Windows and how they move.

use crate::ops::conv::PerDim;

/// The window of a maximum over `N` spatial dimensions. It moves by its own sizes unless a stride is stated.
///
/// ```
/// use keyway::ops::{conv::PerDim, pool::MaxPoolOptions};
/// let halved = MaxPoolOptions::<2>::new(3).stride(2).padding(1);
/// assert_eq!(MaxPoolOptions::<2>::new([2, 3]).stride, PerDim::from([2, 3]));
/// assert!(!halved.ceil_mode);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxPoolOptions<const N: usize> {
    /// Elements of the window.
    pub kernel: PerDim<N>,
    /// Elements from one place of the window to the next.
    pub stride: PerDim<N>,
    /// The border on either side, which is never the largest; at most half of the window.
    pub padding: PerDim<N>,
    /// Elements from one element of the window to the next.
    pub dilation: PerDim<N>,
    /// Whether a window may reach over the end.
    pub ceil_mode: bool,
}

impl<const N: usize> MaxPoolOptions<N> {
    /// A window of these sizes, which moves by them.
    pub fn new(kernel: impl Into<PerDim<N>>) -> Self {
        let kernel = kernel.into();
        MaxPoolOptions { kernel, stride: kernel, padding: 0.into(), dilation: 1.into(), ceil_mode: false }
    }

    /// With this stride.
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        MaxPoolOptions { stride: stride.into(), ..self }
    }

    /// With this padding.
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<N>>) -> Self {
        MaxPoolOptions { padding: padding.into(), ..self }
    }

    /// With this dilation.
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerDim<N>>) -> Self {
        MaxPoolOptions { dilation: dilation.into(), ..self }
    }

    /// With windows that may reach over the end, or without.
    #[must_use]
    pub fn ceil_mode(self, on: bool) -> Self {
        MaxPoolOptions { ceil_mode: on, ..self }
    }
}

/// The window of a mean over `N` spatial dimensions. It moves by its own sizes unless a stride is stated.
///
/// ```
/// use keyway::ops::pool::AvgPoolOptions;
/// let kept = AvgPoolOptions::<2>::new(3).stride(1).padding(1).count_include_pad(false);
/// assert_eq!(kept.divisor_override, None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AvgPoolOptions<const N: usize> {
    /// Elements of the window.
    pub kernel: PerDim<N>,
    /// Elements from one place of the window to the next.
    pub stride: PerDim<N>,
    /// The border of zeros on either side; at most half of the window.
    pub padding: PerDim<N>,
    /// Whether a window may reach over the end.
    pub ceil_mode: bool,
    /// Whether the border counts among the elements that the sum is divided by.
    pub count_include_pad: bool,
    /// What the sum is divided by instead.
    pub divisor_override: Option<usize>,
}

impl<const N: usize> AvgPoolOptions<N> {
    /// A window of these sizes, which moves by them; the border counts.
    pub fn new(kernel: impl Into<PerDim<N>>) -> Self {
        let kernel = kernel.into();
        let (padding, stride) = (0.into(), kernel);
        let (ceil_mode, count_include_pad, divisor_override) = (false, true, None);
        AvgPoolOptions { kernel, stride, padding, ceil_mode, count_include_pad, divisor_override }
    }

    /// With this stride.
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        AvgPoolOptions { stride: stride.into(), ..self }
    }

    /// With this padding.
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<N>>) -> Self {
        AvgPoolOptions { padding: padding.into(), ..self }
    }

    /// With windows that may reach over the end, or without.
    #[must_use]
    pub fn ceil_mode(self, on: bool) -> Self {
        AvgPoolOptions { ceil_mode: on, ..self }
    }

    /// With a border that counts, or that does not.
    #[must_use]
    pub fn count_include_pad(self, on: bool) -> Self {
        AvgPoolOptions { count_include_pad: on, ..self }
    }

    /// With this divisor, whatever the window holds.
    #[must_use]
    pub fn divisor_override(self, divisor: usize) -> Self {
        AvgPoolOptions { divisor_override: Some(divisor), ..self }
    }
}

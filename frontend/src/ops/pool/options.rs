//! The options of pooling.

use crate::ops::conv::{PerDim, from_tuples};

/// Conversions from a window size to options: `x.max_pool2d(2)`.
macro_rules! from_windows {
    ($($to:ident)+) => {$(
        impl<const N: usize> From<usize> for $to<N> {
            fn from(kernel: usize) -> $to<N> {
                $to::new(kernel)
            }
        }

        impl<const N: usize> From<[usize; N]> for $to<N> {
            fn from(kernel: [usize; N]) -> $to<N> {
                $to::new(kernel)
            }
        }
    )+};
}

from_windows! { MaxPoolOptions AvgPoolOptions MaxUnpoolOptions }
from_tuples! { MaxPoolOptions AvgPoolOptions MaxUnpoolOptions OutputSize }

/// The options of max pooling over `N` spatial dimensions. The stride is the window size unless set. A window size (a number,
/// an array or a tuple) converts to them.
///
/// ```
/// use keyway::nn::{MaxPoolOptions, PerDim};
/// let halved = MaxPoolOptions::<2>::new(3).stride(2).padding(1);
/// assert_eq!(MaxPoolOptions::<2>::new([2, 3]).stride, PerDim::from([2, 3]));
/// assert!(!halved.ceil_mode);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxPoolOptions<const N: usize> {
    /// The window size.
    pub kernel: PerDim<N>,
    /// The distance between adjacent window positions, in elements.
    pub stride: PerDim<N>,
    /// The implicit padding on either side, which never contains the maximum; at most half of the window.
    pub padding: PerDim<N>,
    /// The distance between adjacent window elements.
    pub dilation: PerDim<N>,
    /// Whether the output size is rounded up, so that a window may exceed the input.
    pub ceil_mode: bool,
}

impl<const N: usize> MaxPoolOptions<N> {
    /// A window of this size and an equal stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.max_pool1d(MaxPoolOptions::new(2))?.to_vec::<f32>()?, [4.0, 3.0]);
    /// # Ok(()) }
    /// ```
    pub fn new(kernel: impl Into<PerDim<N>>) -> Self {
        let kernel = kernel.into();
        MaxPoolOptions { kernel, stride: kernel, padding: 0.into(), dilation: 1.into(), ceil_mode: false }
    }

    /// Sets the stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.max_pool1d(MaxPoolOptions::new(2).stride(1))?.to_vec::<f32>()?, [4.0, 4.0, 3.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        MaxPoolOptions { stride: stride.into(), ..self }
    }

    /// Sets the padding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.max_pool1d(MaxPoolOptions::new(2).padding(1))?.to_vec::<f32>()?, [1.0, 4.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<N>>) -> Self {
        MaxPoolOptions { padding: padding.into(), ..self }
    }

    /// Sets the dilation.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.max_pool1d(MaxPoolOptions::new(2).dilation(2))?.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerDim<N>>) -> Self {
        MaxPoolOptions { dilation: dilation.into(), ..self }
    }

    /// Sets whether the output size is rounded up.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.max_pool1d(MaxPoolOptions::new(2).ceil_mode(true))?.to_vec::<f32>()?, [4.0, 3.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn ceil_mode(self, on: bool) -> Self {
        MaxPoolOptions { ceil_mode: on, ..self }
    }
}

/// The options of average pooling over `N` spatial dimensions. The stride is the window size unless set. A window size (a
/// number, an array or a tuple) converts to them.
///
/// ```
/// use keyway::nn::AvgPoolOptions;
/// let kept = AvgPoolOptions::<2>::new(3).stride(1).padding(1).count_include_pad(false);
/// assert_eq!(kept.divisor_override, None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AvgPoolOptions<const N: usize> {
    /// The window size.
    pub kernel: PerDim<N>,
    /// The distance between adjacent window positions, in elements.
    pub stride: PerDim<N>,
    /// The zero padding on either side; at most half of the window.
    pub padding: PerDim<N>,
    /// Whether the output size is rounded up, so that a window may exceed the input.
    pub ceil_mode: bool,
    /// Whether padding zeros are included in the divisor.
    pub count_include_pad: bool,
    /// A divisor that replaces the window's element count.
    pub divisor_override: Option<usize>,
}

impl<const N: usize> AvgPoolOptions<N> {
    /// A window of this size and an equal stride; the divisor includes padding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AvgPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.avg_pool1d(AvgPoolOptions::new(2))?.to_vec::<f32>()?, [2.5, 2.5]);
    /// # Ok(()) }
    /// ```
    pub fn new(kernel: impl Into<PerDim<N>>) -> Self {
        let kernel = kernel.into();
        let (padding, stride) = (0.into(), kernel);
        let (ceil_mode, count_include_pad, divisor_override) = (false, true, None);
        AvgPoolOptions { kernel, stride, padding, ceil_mode, count_include_pad, divisor_override }
    }

    /// Sets the stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AvgPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.avg_pool1d(AvgPoolOptions::new(2).stride(3))?.to_vec::<f32>()?, [2.5, 4.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        AvgPoolOptions { stride: stride.into(), ..self }
    }

    /// Sets the padding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AvgPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.avg_pool1d(AvgPoolOptions::new(2).padding(1))?.to_vec::<f32>()?, [0.5, 3.5, 4.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<N>>) -> Self {
        AvgPoolOptions { padding: padding.into(), ..self }
    }

    /// Sets whether the output size is rounded up.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AvgPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.avg_pool1d(AvgPoolOptions::new(2).ceil_mode(true))?.to_vec::<f32>()?, [2.5, 2.5, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn ceil_mode(self, on: bool) -> Self {
        AvgPoolOptions { ceil_mode: on, ..self }
    }

    /// Sets whether padding zeros are included in the divisor.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AvgPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.avg_pool1d(AvgPoolOptions::new(2).padding(1).count_include_pad(false))?.to_vec::<f32>()?, [1.0, 3.5, 4.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn count_include_pad(self, on: bool) -> Self {
        AvgPoolOptions { count_include_pad: on, ..self }
    }

    /// Sets the divisor, whatever the window's element count.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::AvgPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.avg_pool1d(AvgPoolOptions::new(2).divisor_override(1))?.to_vec::<f32>()?, [5.0, 5.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn divisor_override(self, divisor: usize) -> Self {
        AvgPoolOptions { divisor_override: Some(divisor), ..self }
    }
}

/// The options of power-average (Lp) pooling over `N` spatial dimensions. The stride is the window size unless set.
///
/// ```
/// use keyway::nn::LpPoolOptions;
/// let overlapping = LpPoolOptions::<2>::new(2.0, 3).stride(1);
/// assert!(!overlapping.ceil_mode);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LpPoolOptions<const N: usize> {
    /// The exponent: 1 sums, 2 is the Euclidean norm, and large values approach the maximum.
    pub norm_type: f64,
    /// The window size.
    pub kernel: PerDim<N>,
    /// The distance between adjacent window positions, in elements.
    pub stride: PerDim<N>,
    /// Whether the output size is rounded up, so that a window may exceed the input.
    pub ceil_mode: bool,
}

impl<const N: usize> LpPoolOptions<N> {
    /// This exponent, a window of this size and an equal stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::LpPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.lp_pool1d(LpPoolOptions::new(1.0, 2))?.to_vec::<f32>()?, [5.0, 5.0]);
    /// # Ok(()) }
    /// ```
    pub fn new(norm_type: f64, kernel: impl Into<PerDim<N>>) -> Self {
        let kernel = kernel.into();
        LpPoolOptions { norm_type, kernel, stride: kernel, ceil_mode: false }
    }

    /// Sets the stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::LpPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.lp_pool1d(LpPoolOptions::new(1.0, 2).stride(3))?.to_vec::<f32>()?, [5.0, 8.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        LpPoolOptions { stride: stride.into(), ..self }
    }

    /// Sets whether the output size is rounded up.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::LpPoolOptions};
    /// let x = Tensor::new([[[1.0f32, 4.0, 3.0, 2.0, 6.0]]])?;
    /// assert_eq!(x.lp_pool1d(LpPoolOptions::new(1.0, 2).ceil_mode(true))?.to_vec::<f32>()?, [5.0, 5.0, 12.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn ceil_mode(self, on: bool) -> Self {
        LpPoolOptions { ceil_mode: on, ..self }
    }
}

/// The spatial sizes of a result: one size for all, or an array or a tuple, where `None` preserves the input's size.
///
/// ```
/// use keyway::nn::OutputSize;
/// assert_eq!(OutputSize::<2>::from(7), OutputSize([Some(7), Some(7)]));
/// assert_eq!(OutputSize::from((1, 2)), OutputSize([Some(1), Some(2)]));
/// assert_eq!(OutputSize::from([None, Some(1)]), OutputSize([None, Some(1)]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputSize<const N: usize>(pub [Option<usize>; N]);

impl<const N: usize> From<usize> for OutputSize<N> {
    fn from(all: usize) -> OutputSize<N> {
        OutputSize([Some(all); N])
    }
}

impl<const N: usize> From<[usize; N]> for OutputSize<N> {
    fn from(each: [usize; N]) -> OutputSize<N> {
        OutputSize(each.map(Some))
    }
}

impl<const N: usize> From<[Option<usize>; N]> for OutputSize<N> {
    fn from(each: [Option<usize>; N]) -> OutputSize<N> {
        OutputSize(each)
    }
}

/// The options of max unpooling over `N` spatial dimensions: those of the pooling that it inverts. The stride is the window
/// size unless set.
///
/// ```
/// use keyway::nn::MaxUnpoolOptions;
/// assert_eq!(MaxUnpoolOptions::<2>::new(3).stride(2).padding(1).output_size, None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxUnpoolOptions<const N: usize> {
    /// The window size.
    pub kernel: PerDim<N>,
    /// The distance between adjacent window positions, in elements.
    pub stride: PerDim<N>,
    /// The padding on either side.
    pub padding: PerDim<N>,
    /// The spatial sizes of the result. Several input sizes give the same pooled size; they differ from the default,
    /// `(size - 1) * stride + kernel - 2 * padding`, by less than the stride.
    pub output_size: Option<[usize; N]>,
}

impl<const N: usize> MaxUnpoolOptions<N> {
    /// A window of this size and an equal stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxUnpoolOptions};
    /// let (x, at) = (Tensor::new([[[4.0f32, 6.0]]])?, Tensor::new([[[1i64, 2]]])?);
    /// let back = x.max_unpool1d(&at, MaxUnpoolOptions::new(2))?;
    /// assert_eq!(back.to_vec::<f32>()?, [0.0, 4.0, 6.0, 0.0]);
    /// # Ok(()) }
    /// ```
    pub fn new(kernel: impl Into<PerDim<N>>) -> Self {
        let kernel = kernel.into();
        MaxUnpoolOptions { kernel, stride: kernel, padding: 0.into(), output_size: None }
    }

    /// Sets the stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxUnpoolOptions};
    /// let (x, at) = (Tensor::new([[[4.0f32, 6.0]]])?, Tensor::new([[[1i64, 2]]])?);
    /// let back = x.max_unpool1d(&at, MaxUnpoolOptions::new(2).stride(1))?;
    /// assert_eq!(back.to_vec::<f32>()?, [0.0, 4.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        MaxUnpoolOptions { stride: stride.into(), ..self }
    }

    /// Sets the padding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxUnpoolOptions};
    /// let (x, at) = (Tensor::new([[[4.0f32, 6.0]]])?, Tensor::new([[[1i64, 2]]])?);
    /// let options = MaxUnpoolOptions::new(3).stride(2).padding(1);
    /// assert_eq!(x.max_unpool1d(&at, options)?.to_vec::<f32>()?, [0.0, 4.0, 6.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<N>>) -> Self {
        MaxUnpoolOptions { padding: padding.into(), ..self }
    }

    /// Sets the spatial sizes of the result.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::MaxUnpoolOptions};
    /// let (x, at) = (Tensor::new([[[4.0f32, 6.0]]])?, Tensor::new([[[1i64, 2]]])?);
    /// let options = MaxUnpoolOptions::new(2).output_size([5]);
    /// assert_eq!(x.max_unpool1d(&at, options)?.shape(), [1, 1, 5]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn output_size(self, sizes: [usize; N]) -> Self {
        MaxUnpoolOptions { output_size: Some(sizes), ..self }
    }
}

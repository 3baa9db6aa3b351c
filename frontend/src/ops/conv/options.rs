//! The options of convolutions.

/// One value for each of `N` spatial dimensions: a single number for all of them, an array or a tuple. Strides, paddings,
/// dilations and windows are at most 2^40; an op refuses larger ones.
///
/// ```
/// use keyway::nn::PerDim;
/// assert_eq!(PerDim::<2>::from(3), PerDim::from([3, 3]));
/// assert_eq!(PerDim::from((3, 1)), PerDim([3, 1]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerDim<const N: usize>(pub [usize; N]);

impl<const N: usize> From<usize> for PerDim<N> {
    fn from(all: usize) -> PerDim<N> {
        PerDim([all; N])
    }
}

impl<const N: usize> From<[usize; N]> for PerDim<N> {
    fn from(each: [usize; N]) -> PerDim<N> {
        PerDim(each)
    }
}

/// The conversions from tuples of two and three sizes.
macro_rules! from_tuples {
    ($($to:ident)+) => {$(
        impl From<(usize, usize)> for $to<2> {
            fn from((a, b): (usize, usize)) -> $to<2> {
                [a, b].into()
            }
        }

        impl From<(usize, usize, usize)> for $to<3> {
            fn from((a, b, c): (usize, usize, usize)) -> $to<3> {
                [a, b, c].into()
            }
        }
    )+};
}
pub(crate) use from_tuples;

from_tuples! { PerDim Padding }

impl<const N: usize> PerDim<N> {
    /// The values as a list argument; a value above `i64::MAX` saturates, and every op refuses that.
    pub(crate) fn ints(self) -> [i64; N] {
        self.0.map(crate::tensor::Int::to_i64)
    }
}

/// The zero padding of an input.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{ConvOptions, Padding}};
/// let (x, weight) = (Tensor::ones((1, 1, 8))?, Tensor::ones((1, 1, 3))?);
/// let size = |padding: Padding<1>| x.conv1d_with(&weight, None, ConvOptions::default().padding(padding))?.dim(2);
/// assert_eq!((size(Padding::Valid)?, size(Padding::Same)?, size(Padding::from(2))?), (6, 8, 10));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Padding<const N: usize> {
    /// The number of zeros on either side of each spatial dimension.
    Each(PerDim<N>),
    /// Padding with which the output has the size of the input; if the total is odd, the additional zero is at the end.
    /// Requires a stride of 1.
    Same,
    /// No padding.
    Valid,
}

impl<const N: usize> From<usize> for Padding<N> {
    fn from(all: usize) -> Padding<N> {
        Padding::Each(all.into())
    }
}

impl<const N: usize> From<[usize; N]> for Padding<N> {
    fn from(each: [usize; N]) -> Padding<N> {
        Padding::Each(each.into())
    }
}

/// The options of a convolution of `N` spatial dimensions: by default stride 1, no padding, no dilation and one group.
///
/// ```
/// use keyway::nn::{ConvOptions, Padding};
/// let halved = ConvOptions::<2>::default().stride(2).padding([1, 0]);
/// let kept = ConvOptions::<2>::default().padding(Padding::Same).dilation(2).groups(4);
/// assert_ne!(halved, kept);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConvOptions<const N: usize> {
    /// The distance between adjacent positions of the kernel, in input elements.
    pub stride: PerDim<N>,
    /// The zero padding.
    pub padding: Padding<N>,
    /// The distance between adjacent kernel taps, in input elements.
    pub dilation: PerDim<N>,
    /// The number of groups; each convolves its own part of the input channels to its own part of the output channels.
    pub groups: usize,
}

impl<const N: usize> Default for ConvOptions<N> {
    fn default() -> ConvOptions<N> {
        ConvOptions { stride: 1.into(), padding: Padding::Valid, dilation: 1.into(), groups: 1 }
    }
}

impl<const N: usize> ConvOptions<N> {
    /// Sets the stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvOptions};
    /// let (x, weight) = (Tensor::ones((1, 1, 9))?, Tensor::ones((1, 1, 3))?);
    /// assert_eq!(x.conv1d_with(&weight, None, ConvOptions::default().stride(2))?.shape(), [1, 1, 4]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        ConvOptions { stride: stride.into(), ..self }
    }

    /// Sets the padding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvOptions};
    /// let (x, weight) = (Tensor::ones((1, 1, 9))?, Tensor::ones((1, 1, 3))?);
    /// assert_eq!(x.conv1d_with(&weight, None, ConvOptions::default().padding(2))?.shape(), [1, 1, 11]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn padding(self, padding: impl Into<Padding<N>>) -> Self {
        ConvOptions { padding: padding.into(), ..self }
    }

    /// Sets the dilation.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvOptions};
    /// let (x, weight) = (Tensor::ones((1, 1, 9))?, Tensor::ones((1, 1, 3))?);
    /// assert_eq!(x.conv1d_with(&weight, None, ConvOptions::default().dilation(2))?.shape(), [1, 1, 5]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerDim<N>>) -> Self {
        ConvOptions { dilation: dilation.into(), ..self }
    }

    /// Sets the number of groups.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvOptions};
    /// let (x, weight) = (Tensor::ones((1, 4, 9))?, Tensor::ones((4, 1, 3))?);
    /// assert_eq!(x.conv1d_with(&weight, None, ConvOptions::default().groups(4))?.shape(), [1, 4, 7]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn groups(self, groups: usize) -> Self {
        ConvOptions { groups, ..self }
    }
}

/// The options of a transposed convolution of `N` spatial dimensions: those of the convolution whose gradient it is, and
/// the output padding.
///
/// ```
/// use keyway::nn::ConvTransposeOptions;
/// let doubled = ConvTransposeOptions::<2>::default().stride(2).padding(1).output_padding(1);
/// assert_eq!(doubled.groups, 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConvTransposeOptions<const N: usize> {
    /// The distance in the output between the contributions of adjacent input elements.
    pub stride: PerDim<N>,
    /// The number of output elements that are removed on either side of each spatial dimension.
    pub padding: PerDim<N>,
    /// The number of output elements that are added at the end of each spatial dimension; less than the stride or the dilation.
    pub output_padding: PerDim<N>,
    /// The distance between adjacent kernel taps, in output elements.
    pub dilation: PerDim<N>,
    /// The number of groups; each maps its own part of the input channels to its own part of the output channels.
    pub groups: usize,
}

impl<const N: usize> Default for ConvTransposeOptions<N> {
    fn default() -> ConvTransposeOptions<N> {
        let (one, none) = (1.into(), 0.into());
        ConvTransposeOptions { stride: one, padding: none, output_padding: none, dilation: one, groups: 1 }
    }
}

impl<const N: usize> ConvTransposeOptions<N> {
    /// Sets the stride.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let (x, weight) = (Tensor::ones((1, 1, 4))?, Tensor::ones((1, 1, 3))?);
    /// assert_eq!(x.conv_transpose1d_with(&weight, None, ConvTransposeOptions::default().stride(2))?.shape(), [1, 1, 9]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stride(self, stride: impl Into<PerDim<N>>) -> Self {
        ConvTransposeOptions { stride: stride.into(), ..self }
    }

    /// Sets the padding.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let (x, weight) = (Tensor::ones((1, 1, 4))?, Tensor::ones((1, 1, 3))?);
    /// assert_eq!(x.conv_transpose1d_with(&weight, None, ConvTransposeOptions::default().padding(1))?.shape(), [1, 1, 4]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn padding(self, padding: impl Into<PerDim<N>>) -> Self {
        ConvTransposeOptions { padding: padding.into(), ..self }
    }

    /// Sets the number of additional elements at the end (`output_padding`).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let (x, weight) = (Tensor::ones((1, 1, 4))?, Tensor::ones((1, 1, 3))?);
    /// let options = ConvTransposeOptions::default().stride(2).output_padding(1);
    /// assert_eq!(x.conv_transpose1d_with(&weight, None, options)?.shape(), [1, 1, 10]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn output_padding(self, output_padding: impl Into<PerDim<N>>) -> Self {
        ConvTransposeOptions { output_padding: output_padding.into(), ..self }
    }

    /// Sets the dilation.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let (x, weight) = (Tensor::ones((1, 1, 4))?, Tensor::ones((1, 1, 3))?);
    /// assert_eq!(x.conv_transpose1d_with(&weight, None, ConvTransposeOptions::default().dilation(2))?.shape(), [1, 1, 8]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn dilation(self, dilation: impl Into<PerDim<N>>) -> Self {
        ConvTransposeOptions { dilation: dilation.into(), ..self }
    }

    /// Sets the number of groups.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let (x, weight) = (Tensor::ones((1, 2, 4))?, Tensor::ones((2, 1, 3))?);
    /// assert_eq!(x.conv_transpose1d_with(&weight, None, ConvTransposeOptions::default().groups(2))?.shape(), [1, 2, 6]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn groups(self, groups: usize) -> Self {
        ConvTransposeOptions { groups, ..self }
    }
}

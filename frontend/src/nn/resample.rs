//! Resampling of images, and sliding windows as columns.

use super::Module;
use crate::ops::conv::PerDim;
use crate::ops::image::{InterpolateOptions, UnfoldOptions};
use crate::{Result, Tensor};

/// [`Tensor::interpolate`] with these options.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{InterpolateMode, InterpolateOptions, Module, Upsample}};
/// let doubled = Upsample(InterpolateOptions::scale(2.0).mode(InterpolateMode::Bilinear));
/// let x = Tensor::ones((1, 3, 4, 5))?;
/// assert_eq!(doubled.forward(&x)?.shape(), [1, 3, 8, 10]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Upsample(pub InterpolateOptions);

impl Module for Upsample {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.interpolate(&self.0)
    }
}

/// [`Tensor::im2col`]: the sliding windows of images `[batch, channels, height, width]` as columns
/// `[batch, channels * window, positions]`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Fold, Module, Unfold, UnfoldOptions}};
/// let x = Tensor::ones((1, 2, 4, 4))?;
/// let columns = Unfold(UnfoldOptions::new(2).stride(2)).forward(&x)?;
/// assert_eq!(columns.shape(), [1, 8, 4]);
/// let back = Fold { output_size: 4.into(), options: UnfoldOptions::new(2).stride(2) };
/// assert_eq!(back.forward(&columns)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Unfold(pub UnfoldOptions);

impl Module for Unfold {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.im2col(self.0)
    }
}

/// [`Tensor::col2im`]: sums columns of sliding windows into images; overlapping elements are added. See [`Unfold`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::{Fold, Module, UnfoldOptions}};
/// // Two windows of two columns, which overlap in the middle column.
/// let fold = Fold { output_size: [1, 3].into(), options: UnfoldOptions::new([1, 2]) };
/// let columns = Tensor::new([[[1.0f32, 2.0], [10.0, 20.0]]])?;
/// assert_eq!(fold.forward(&columns)?.to_vec::<f32>()?, [1.0, 12.0, 20.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    /// Height and width of the images.
    pub output_size: PerDim<2>,
    /// The window.
    pub options: UnfoldOptions,
}

impl Module for Fold {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.col2im(self.output_size, self.options)
    }
}

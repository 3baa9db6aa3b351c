//! The image methods of [`Tensor`](crate::Tensor) that take options.

use super::options::{InterpolateMode, InterpolateOptions, Resize, UnfoldOptions};
use super::{col2im, im2col, interpolate};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::conv::{PerDim, batched, unbatched};
use crate::ops::pool::{OutputSize, mean};
use crate::tensor::Int;
use keyway_dispatcher::Error;
use keyway_dispatcher::op::Arg;

const OP: &str = "interpolate";

fn wrong(argument: &'static str, expected: impl Into<String>, got: impl Into<String>) -> crate::Error {
    Error::Value { op: OP, argument, expected: expected.into(), got: got.into() }.into()
}

/// Expands a list of one or `rank` elements to one element per dimension.
fn each<T: Copy + std::fmt::Debug>(argument: &'static str, list: &[T], rank: usize) -> Result<Vec<T>> {
    match list {
        &[all] => Ok(vec![all; rank]),
        _ if list.len() == rank => Ok(list.to_vec()),
        _ => {
            let expected = format!("one number, or {rank}, one for each spatial dimension");
            Err(wrong(argument, expected, format!("{list:?}")))
        }
    }
}

/// The spatial sizes of the result, and the scale factors that determine the sampling positions.
fn target(x: &Tensor, options: &InterpolateOptions) -> Result<(Vec<usize>, Vec<f64>)> {
    let rank = x.rank() - 2;
    let factors = match &options.to {
        Resize::Size(sizes) if options.recompute_scale_factor => {
            let expected = "`scale`, whose factors it computes anew from the sizes".to_string();
            return Err(wrong("recompute_scale_factor", expected, format!("size {sizes:?}")));
        }
        Resize::Size(sizes) => return Ok((each("size", sizes, rank)?, Vec::new())),
        Resize::Scale(factors) => each("scale_factor", factors, rank)?,
    };
    if !factors.iter().all(|f| f.is_finite() && *f > 0.0) {
        return Err(wrong("scale_factor", "factors above 0", format!("{factors:?}")));
    }
    let own = &x.shape()[2..];
    let sizes: Vec<usize> = own.iter().zip(&factors).map(|(&size, f)| (size as f64 * f) as usize).collect();
    if sizes.contains(&0) && !own.contains(&0) {
        let expected = format!("factors that leave 1 element or more of each of {own:?}");
        return Err(wrong("scale_factor", expected, format!("{factors:?}")));
    }
    // With `align_corners` the sizes alone determine the sampling positions.
    let free = options.recompute_scale_factor || options.align_corners;
    Ok((sizes, if free { Vec::new() } else { factors }))
}

impl Tensor {
    /// Resizes images `[batch, channels, length]`, `[batch, channels, height, width]` or
    /// `[batch, channels, depth, height, width]`. Sampling positions are computed in f64, those of the nearest mode with given
    /// sizes exactly.
    ///
    /// With scale factors, output element `i` is sampled at `i / factor` with the given factor, also if the size was rounded
    /// down, as in PyTorch's eager mode; [`recompute_scale_factor`](InterpolateOptions::recompute_scale_factor) uses the
    /// quotient of the sizes instead. Eager PyTorch multiplies by the reciprocal of the factor in f32, so where `i / factor` is
    /// close to an integer the nearest element may differ by one: from 16 elements by factor 2.2, output element 33 is input
    /// element 15 in PyTorch and 14 here, since the f64 nearest to 2.2 is above 2.2.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::nn::{InterpolateMode, InterpolateOptions};
    /// let x = Tensor::from_vec(vec![0.0f32, 4.0], (1, 1, 2))?;
    /// let near = x.interpolate(&InterpolateOptions::scale(2.0))?;
    /// assert_eq!(near.to_vec::<f32>()?, [0.0, 0.0, 4.0, 4.0]);
    /// let linear = x.interpolate(&InterpolateOptions::size(4).mode(InterpolateMode::Linear))?;
    /// assert_eq!(linear.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A rank that the mode does not support, a dtype that is not a float; sizes of 0, factors that are not above 0;
    /// `align_corners` in a mode that is neither linear nor cubic; `recompute_scale_factor` with sizes.
    #[doc(alias = "upsample_bilinear2d")]
    #[doc(alias = "upsample_nearest2d")]
    #[doc(alias = "upsample")]
    pub fn interpolate(&self, options: &InterpolateOptions) -> Result<Tensor> {
        called("interpolate", &["self", "options"], || {
            let ranks = match options.mode {
                InterpolateMode::Linear => 3..=3,
                InterpolateMode::Bilinear | InterpolateMode::Bicubic => 4..=4,
                InterpolateMode::Trilinear => 5..=5,
                _ => 3..=5,
            };
            if !ranks.contains(&self.rank()) {
                let expected = match (*ranks.start(), *ranks.end()) {
                    (a, b) if a == b => format!("of {a} dimensions for {:?}", options.mode),
                    (a, b) => format!("of {a} to {b} dimensions, [batch, channels, ..]"),
                };
                return Err(
                    Error::Shape { op: OP, argument: "self", expected, got: self.shape().into() }.into()
                );
            }
            let (sizes, factors) = target(self, options)?;
            let mode = match options.mode {
                InterpolateMode::Nearest => "nearest",
                InterpolateMode::NearestExact => "nearest-exact",
                InterpolateMode::Bicubic => "cubic",
                InterpolateMode::Area if options.align_corners => {
                    return Err(wrong("align_corners", "false for `Area`", "true"));
                }
                InterpolateMode::Area => return area(self, &sizes),
                InterpolateMode::Linear | InterpolateMode::Bilinear | InterpolateMode::Trilinear => "linear",
            };
            let sizes: Vec<i64> = sizes.iter().map(|size| size.to_i64()).collect();
            interpolate::DEF.run(&[
                self.into(),
                Arg::Ints(&sizes),
                Arg::Str(mode),
                Arg::Bool(options.align_corners),
                Arg::Floats(&factors),
            ])
        })
    }

    /// Extracts the sliding windows of images `[batch, channels, height, width]`, or of one unbatched image, as the columns of
    /// a matrix `[batch, channels * window, positions]` (im2col): each row is one window element of one channel.
    /// [`Tensor::unfold`] returns one-dimensional windows as a view.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::UnfoldOptions};
    /// let x = Tensor::from_vec((1..=9).map(f64::from).collect(), (1, 1, 3, 3))?;
    /// let columns = x.im2col(UnfoldOptions::new(2))?;
    /// assert_eq!(columns.shape(), [1, 4, 4]);
    /// assert_eq!(columns.to_vec::<f64>()?[..4], [1.0, 2.0, 4.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another rank, a dtype that is not a float; a window, stride or dilation of 0, a window larger than the padded input.
    #[doc(alias = "unfold")]
    pub fn im2col(&self, options: UnfoldOptions) -> Result<Tensor> {
        called("im2col", &["self", "options"], || {
            let (x, had_batch) = batched("im2col", self, 2)?;
            let [kernel, dilation, padding, stride] = lists(options);
            let made = im2col::DEF.run(&[
                (&x).into(),
                Arg::Ints(&kernel),
                Arg::Ints(&dilation),
                Arg::Ints(&padding),
                Arg::Ints(&stride),
            ])?;
            unbatched(made, had_batch)
        })
    }

    /// Sums the columns of `[batch, channels * window, positions]`, or of an unbatched matrix, into images (col2im): each image
    /// element is the sum of its copies in [`Tensor::im2col`], of which this is the adjoint.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::UnfoldOptions};
    /// let ones = Tensor::ones((1, 4, 4))?;
    /// let counts = ones.col2im([3, 3], UnfoldOptions::new(2))?;
    /// assert_eq!(counts.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another rank, a dtype that is not a float; a number of rows that the window does not divide, a number of columns other
    /// than the number of window positions in images of that size; a window, stride or dilation of 0, a window larger than the
    /// padded images.
    #[doc(alias = "fold")]
    pub fn col2im(&self, output_size: impl Into<PerDim<2>>, options: UnfoldOptions) -> Result<Tensor> {
        called("col2im", &["self", "output_size", "options"], || {
            let had_batch = self.rank() != 2;
            let x = if had_batch { self.clone() } else { self.unsqueeze(0)? };
            let [kernel, dilation, padding, stride] = lists(options);
            let made = col2im::DEF.run(&[
                (&x).into(),
                Arg::Ints(&output_size.into().ints()),
                Arg::Ints(&kernel),
                Arg::Ints(&dilation),
                Arg::Ints(&padding),
                Arg::Ints(&stride),
            ])?;
            unbatched(made, had_batch)
        })
    }
}

fn lists(options: UnfoldOptions) -> [[i64; 2]; 4] {
    let UnfoldOptions { kernel, dilation, padding, stride } = options;
    [kernel, dilation, padding, stride].map(PerDim::ints)
}

fn area(x: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    match *sizes {
        [w] => mean(OP, x, OutputSize::<1>::from([w])),
        [h, w] => mean(OP, x, OutputSize::<2>::from([h, w])),
        [d, h, w] => mean(OP, x, OutputSize::<3>::from([d, h, w])),
        _ => Ok(x.clone()),
    }
}

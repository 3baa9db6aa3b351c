//! The convolution methods of [`Tensor`](crate::Tensor), one per number of spatial dimensions.

use super::options::{ConvOptions, ConvTransposeOptions, Padding};
use super::{conv, conv_input_grad, whole};
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite;
use keyway_dispatcher::Error;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The convolution of signals `[batch, channels, length]`, or of one unbatched signal, with a weight
    /// `[output channels, channels / groups, length]` and a bias `[output channels]`:
    /// `out[n, o, i] = bias[o] + Σ weight[o, c, k] * input[n, c, i + k]`. The output's length is `length - kernel + 1`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0, 4.0, 8.0], (1, 1, 4))?;
    /// let difference = Tensor::from_vec(vec![-1.0f32, 1.0], (1, 1, 2))?;
    /// assert_eq!(x.conv1d(&difference, None)?.to_vec::<f32>()?, [1.0, 2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors of other ranks, incompatible shapes, a dtype that is not a float; a kernel larger than the input.
    pub fn conv1d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        convolve("conv1d", self, weight, bias, ConvOptions::<1>::default())
    }

    /// [`Tensor::conv1d`] with stride, padding, dilation and groups: the output's length is
    /// `(length + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1`, rounded down.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvOptions};
    /// let x = Tensor::ones((1, 1, 9))?;
    /// let weight = Tensor::ones((1, 1, 3))?;
    /// assert_eq!(x.conv1d_with(&weight, None, ConvOptions::default().stride(2))?.shape(), [1, 1, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; channels that the groups do not divide; a stride or dilation of 0; a kernel larger than the padded input;
    /// [`Padding::Same`] with a stride other than 1.
    pub fn conv1d_with(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvOptions<1>,
    ) -> Result<Tensor> {
        convolve("conv1d", self, weight, bias, options)
    }

    /// The convolution of images `[batch, channels, height, width]`, or of one unbatched image, with a weight
    /// `[output channels, channels / groups, height, width]` and a bias `[output channels]`; each dimension as in
    /// [`Tensor::conv1d`]. The result is channels_last if the images or the weight are.
    ///
    /// A kernel as large as its image, without padding and groups, is computed as a [`Tensor::linear`] of both in memory order:
    /// a fully connected layer that does not reorder channels_last images as `flatten` would.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones((1, 1, 3, 3))?;
    /// assert_eq!(x.conv2d(&Tensor::ones((1, 1, 2, 2))?, None)?.to_vec::<f32>()?, [4.0; 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv1d`].
    pub fn conv2d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        convolve("conv2d", self, weight, bias, ConvOptions::<2>::default())
    }

    /// [`Tensor::conv2d`] with the options of [`Tensor::conv1d_with`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::{ConvOptions, Padding}};
    /// let x = Tensor::ones((1, 1, 3, 3))?;
    /// let sums = x.conv2d_with(&x, None, ConvOptions::default().padding(Padding::Same))?;
    /// assert_eq!(sums.to_vec::<f32>()?, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv1d_with`].
    pub fn conv2d_with(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvOptions<2>,
    ) -> Result<Tensor> {
        convolve("conv2d", self, weight, bias, options)
    }

    /// The convolution of volumes `[batch, channels, depth, height, width]`, or of one unbatched volume, with a weight
    /// `[output channels, channels / groups, depth, height, width]` and a bias `[output channels]`; each dimension as in
    /// [`Tensor::conv1d`]. The result is channels_last if the volumes or the weight are.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones((1, 2, 3, 3, 3))?;
    /// assert_eq!(x.conv3d(&x, None)?.to_vec::<f32>()?, [54.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv1d`].
    pub fn conv3d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        convolve("conv3d", self, weight, bias, ConvOptions::<3>::default())
    }

    /// [`Tensor::conv3d`] with the options of [`Tensor::conv1d_with`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvOptions};
    /// let x = Tensor::ones((1, 2, 3, 3, 3))?;
    /// let y = x.conv3d_with(&x, None, ConvOptions::default().stride(2).padding(1))?;
    /// assert_eq!(y.shape(), [1, 1, 2, 2, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv1d_with`].
    pub fn conv3d_with(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvOptions<3>,
    ) -> Result<Tensor> {
        convolve("conv3d", self, weight, bias, options)
    }

    /// The transposed convolution of signals `[batch, channels, length]`, or of one unbatched signal, with a weight
    /// `[channels, output channels / groups, length]` and a bias `[output channels]`: the gradient of a convolution with
    /// respect to its input. The length is `length + kernel - 1`. In f16 and bf16 the sum is rounded before the bias is added.
    /// An infinite or NaN weight may produce NaN in output elements to which it does not contribute, since it is multiplied by
    /// padding zeros.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[[1.0f32, 2.0]]])?;
    /// assert_eq!(x.conv_transpose1d(&x, None)?.to_vec::<f32>()?, [1.0, 4.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors of other ranks, incompatible shapes, a dtype that is not a float; an output without elements.
    pub fn conv_transpose1d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        transpose("conv_transpose1d", self, weight, bias, ConvTransposeOptions::<1>::default())
    }

    /// [`Tensor::conv_transpose1d`] with stride, padding, dilation, groups and output padding: the output's
    /// length is `(length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let x = Tensor::from_vec(vec![1.0f32, 2.0], (1, 1, 2))?;
    /// let twice = Tensor::from_vec(vec![1.0f32, 1.0], (1, 1, 2))?;
    /// let y = x.conv_transpose1d_with(&twice, None, ConvTransposeOptions::default().stride(2))?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; channels that the groups do not divide; a stride or dilation of 0; an output padding that is below neither the
    /// stride nor the dilation.
    pub fn conv_transpose1d_with(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<1>,
    ) -> Result<Tensor> {
        transpose("conv_transpose1d", self, weight, bias, options)
    }

    /// The transposed convolution of images `[batch, channels, height, width]`, or of one unbatched image, with a weight
    /// `[channels, output channels / groups, height, width]`; each dimension as in [`Tensor::conv_transpose1d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones((1, 1, 3, 3))?;
    /// assert_eq!(x.conv_transpose2d(&x, None)?.shape(), [1, 1, 5, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv_transpose1d`].
    pub fn conv_transpose2d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        transpose("conv_transpose2d", self, weight, bias, ConvTransposeOptions::<2>::default())
    }

    /// [`Tensor::conv_transpose2d`] with the options of [`Tensor::conv_transpose1d_with`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let x = Tensor::ones((1, 1, 3, 3))?;
    /// let doubled = ConvTransposeOptions::default().stride(2).padding(1).output_padding(1);
    /// assert_eq!(x.conv_transpose2d_with(&x, None, doubled)?.shape(), [1, 1, 6, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv_transpose1d_with`].
    pub fn conv_transpose2d_with(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<2>,
    ) -> Result<Tensor> {
        transpose("conv_transpose2d", self, weight, bias, options)
    }

    /// The transposed convolution of volumes `[batch, channels, depth, height, width]`, or of one unbatched volume, with a
    /// weight `[channels, output channels / groups, depth, height, width]`; each dimension as in [`Tensor::conv_transpose1d`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::ones((1, 1, 2, 2, 2))?;
    /// assert_eq!(x.conv_transpose3d(&x, None)?.shape(), [1, 1, 3, 3, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv_transpose1d`].
    pub fn conv_transpose3d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        transpose("conv_transpose3d", self, weight, bias, ConvTransposeOptions::<3>::default())
    }

    /// [`Tensor::conv_transpose3d`] with the options of [`Tensor::conv_transpose1d_with`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::ConvTransposeOptions};
    /// let x = Tensor::ones((1, 1, 2, 2, 2))?;
    /// let doubled = ConvTransposeOptions::default().stride(2);
    /// assert_eq!(x.conv_transpose3d_with(&x, None, doubled)?.shape(), [1, 1, 4, 4, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::conv_transpose1d_with`].
    pub fn conv_transpose3d_with(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<3>,
    ) -> Result<Tensor> {
        transpose("conv_transpose3d", self, weight, bias, options)
    }
}

fn wrong_shape(op: &'static str, argument: &'static str, expected: String, got: &[usize]) -> crate::Error {
    Error::Shape { op, argument, expected, got: got.into() }.into()
}

fn wrong_value(op: &'static str, argument: &'static str, expected: String, got: String) -> crate::Error {
    Error::Value { op, argument, expected, got }.into()
}

/// The names of the spatial dimensions.
fn names(rank: usize) -> &'static str {
    match rank {
        1 => "length",
        2 => "height, width",
        _ => "depth, height, width",
    }
}

/// Adds a batch dimension to an unbatched input of `rank` spatial dimensions; also returns whether the input was batched.
pub(crate) fn batched(op: &'static str, input: &Tensor, rank: usize) -> Result<(Tensor, bool)> {
    match input.rank() {
        n if n == rank + 2 => Ok((input.clone(), true)),
        n if n == rank + 1 => Ok((input.unsqueeze(0)?, false)),
        _ => {
            let expected = format!(
                "of {} dimensions, [batch, channels, {}], or of {} without the batch",
                rank + 2,
                names(rank),
                rank + 1
            );
            Err(wrong_shape(op, "input", expected, input.shape()))
        }
    }
}

/// Removes the batch dimension that [`batched`] added.
pub(crate) fn unbatched(made: Tensor, had_batch: bool) -> Result<Tensor> {
    if had_batch { Ok(made) } else { made.squeeze(0) }
}

fn check_rank(op: &'static str, weight: &Tensor, rank: usize, first: &str) -> Result<()> {
    if weight.rank() == rank + 2 {
        return Ok(());
    }
    let expected = format!("of {} dimensions, [{first}, {}]", rank + 2, names(rank));
    Err(wrong_shape(op, "weight", expected, weight.shape()))
}

/// The batched input, padded at the end as [`Padding::Same`] needs; whether the caller's input was batched; and the symmetric
/// padding.
pub(super) fn prepared<const N: usize>(
    op: &'static str,
    input: &Tensor,
    weight: &Tensor,
    options: &ConvOptions<N>,
) -> Result<(Tensor, bool, [i64; N])> {
    let (mut x, had_batch) = batched(op, input, N)?;
    check_rank(op, weight, N, "output channels, channels / groups")?;
    let padding = match options.padding {
        Padding::Valid => [0; N],
        Padding::Each(each) => each.ints(),
        Padding::Same if options.stride.0 != [1; N] => {
            let got = format!("{:?}", options.stride.0);
            return Err(wrong_value(op, "stride", "1 where the padding is `Same`".to_string(), got));
        }
        Padding::Same => {
            let kernel = &weight.shape()[2..];
            let total: [usize; N] =
                std::array::from_fn(|d| options.dilation.0[d].saturating_mul(kernel[d].saturating_sub(1)));
            if total.iter().any(|width| width % 2 == 1) {
                // One more element at the end if the total is odd; the widths start with the last dimension.
                let more: Vec<i64> = total.iter().rev().flat_map(|width| [0, (width % 2) as i64]).collect();
                x = x.constant_pad(&more, 0)?;
            }
            super::PerDim(total.map(|width| width / 2)).ints()
        }
    };
    Ok((x, had_batch, padding))
}

fn convolve<const N: usize>(
    op: &'static str,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: ConvOptions<N>,
) -> Result<Tensor> {
    called(op, &["self", "weight", "bias", "stride", "padding", "dilation", "groups"], || {
        let (x, had_batch, padding) = prepared(op, input, weight, &options)?;
        let still = |d: usize| options.stride.0[d] > 0 && options.dilation.0[d] == 1;
        if options.groups == 1
            && padding == [0; N]
            && (0..N).all(still)
            && let Some(made) = whole::product(&x, weight, bias)?
        {
            return unbatched(made, had_batch);
        }
        let (stride, dilation) = (options.stride.ints(), options.dilation.ints());
        let made = conv::DEF.run(&[
            (&x).into(),
            weight.into(),
            Arg::optional(bias),
            Arg::Ints(&stride),
            Arg::Ints(&padding),
            Arg::Ints(&dilation),
            composite::whole(options.groups),
        ])?;
        unbatched(made, had_batch)
    })
}

fn transpose<const N: usize>(
    op: &'static str,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: ConvTransposeOptions<N>,
) -> Result<Tensor> {
    called(op, &["self", "weight", "bias", "stride", "padding", "dilation", "groups"], || {
        let (mut x, had_batch) = batched(op, input, N)?;
        check_rank(op, weight, N, "channels, output channels / groups")?;
        if x.shape()[1] != weight.shape()[0] {
            let expected = format!("of shape [{}, ..], as many as the input has channels", x.shape()[1]);
            return Err(wrong_shape(op, "weight", expected, weight.shape()));
        }
        if options.groups > 0 && !x.shape()[1].is_multiple_of(options.groups) {
            let expected = format!("a divisor of the {} input channels", x.shape()[1]);
            return Err(wrong_value(op, "groups", expected, options.groups.to_string()));
        }
        let outputs = weight.shape()[1].saturating_mul(options.groups);
        if let Some(bias) = bias.filter(|bias| bias.shape() != [outputs]) {
            let expected = format!("of shape [{outputs}], a number for each output channel");
            return Err(wrong_shape(op, "bias", expected, bias.shape()));
        }
        let (mut sizes, mut more) = ([0i64; N], vec![0i64; 2 * N]);
        for d in 0..N {
            let (stride, dilation) = (options.stride.0[d], options.dilation.0[d]);
            let (padding, added) = (options.padding.0[d], options.output_padding.0[d]);
            if stride == 0 || dilation == 0 {
                let got = format!("{stride} and {dilation}");
                return Err(wrong_value(op, "stride, dilation", "1 or more".to_string(), got));
            }
            if added >= stride.max(dilation) {
                let expected =
                    format!("below the stride {stride} or the dilation {dilation} in spatial dimension {d}");
                return Err(wrong_value(op, "output_padding", expected, added.to_string()));
            }
            if x.shape()[d + 2] == 0 {
                let expected = format!("of 1 or more elements in spatial dimension {d}");
                return Err(wrong_shape(op, "input", expected, x.shape()));
            }
            let [size, kernel] = [x.shape()[d + 2], weight.shape()[d + 2]].map(|size| size as i128);
            let reach = dilation as i128 * (kernel - 1) + 1;
            let made = (size - 1) * stride as i128 - 2 * padding as i128 + reach + added as i128;
            sizes[d] = i64::try_from(made).ok().filter(|&made| made >= 0).ok_or_else(|| {
                let expected = format!(
                    "sizes and options that make an output of 0 or more elements in spatial dimension {d}"
                );
                wrong_value(op, "input", expected, format!("sizes {:?}, which make {made}", x.shape()))
            })?;
            // Appends zeros to the input for the whole strides of output padding: the op itself supports less than one stride.
            more[2 * (N - 1 - d) + 1] = (added / stride) as i64;
        }
        if more.iter().any(|&width| width > 0) {
            x = x.constant_pad(&more, 0)?;
        }
        let [stride, padding, dilation] =
            [options.stride, options.padding, options.dilation].map(super::PerDim::ints);
        let made = conv_input_grad::DEF.run(&[
            (&x).into(),
            weight.into(),
            Arg::Ints(&sizes),
            Arg::Ints(&stride),
            Arg::Ints(&padding),
            Arg::Ints(&dilation),
            composite::whole(options.groups),
        ])?;
        let made = match bias {
            Some(bias) => {
                let mut along = vec![1; N + 1];
                along[0] = outputs;
                made.add(&bias.reshape_as_sizes(&along)?)?
            }
            None => made,
        };
        unbatched(made, had_batch)
    })
}

//! Convolutions and their gradients.

use super::convolved::convolve;
use super::launch::{Dims, Divisor};
use super::nets::{Array, BATCHES, Image, Shape, dim, in_pieces, piece, three, unsupported};
use super::{Kernel, device_of};
use crate::dnn::{Convolution, Kind, Moves};
use crate::driver::Argument;
use keyway_sdk::author::strided::Dim;
use keyway_sdk::author::{Call, Error};

family!("conv");

/// Bytes of the largest accumulator.
const ACCUMULATOR: usize = 8;

/// `Axis` in conv.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Axis {
    shift: i64,
    step: Divisor,
    size: u32,
    stride: i64,
}

/// `Convolution` in conv.cu.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ConvArgument {
    out: u64,
    left: u64,
    image: u64,
    bias: u64,
    out_group: i64,
    left_group: i64,
    image_group: i64,
    bias_group: i64,
    out_row: i64,
    left_row: i64,
    bias_row: i64,
    axis: [Axis; 3],
    first_axis: u32,
    columns: Dims<5>,
    terms: Dims<5>,
    shape: Shape,
}
// SAFETY: `Convolution` has these fields.
unsafe impl Argument for ConvArgument {}

/// Reads stride, padding, dilation and groups from arguments 3 to 6.
fn moves_of(call: &Call<'_>) -> Result<(Moves, usize), Error> {
    let groups = usize::try_from(call.int(6)?).unwrap_or(0).max(1);
    if groups > BATCHES {
        return Err(unsupported(format!("a convolution of more than {BATCHES} groups")));
    }
    let (stride, padding, dilation) =
        (three(call.ints(3)?, 1), three(call.ints(4)?, 0), three(call.ints(5)?, 1));
    Ok((Moves { stride, padding, dilation }, groups))
}

/// A matrix product with an operand that is gathered from an image (implicit GEMM).
pub(super) struct Gathered {
    /// Output, left operand, image and bias: address, group stride, and row stride except for the image.
    pub(super) out: (u64, i64, i64),
    pub(super) left: (u64, i64, i64),
    image: (u64, i64),
    pub(super) bias: (u64, i64, i64),
    pub(super) rows: usize,
    axis: [Axis; 3],
    /// Outermost first.
    pub(super) columns: [Dim<5>; 4],
    pub(super) terms: [Dim<5>; 4],
    /// Whether the sample is the first of the reduction dimensions, not of the columns.
    pub(super) sums_samples: bool,
}

impl ConvArgument {
    /// The parameters for other columns and reduction indices, and for an image that starts `bytes` later; without groups.
    pub(super) fn of_part(self, columns: &[Dim<5>; 4], terms: &[Dim<5>; 4], bytes: i64) -> ConvArgument {
        let (columns, terms) = (Dims::new(columns), Dims::new(terms));
        let image = self.image.wrapping_add(bytes as u64);
        ConvArgument { image, image_group: 0, columns, terms, ..self }
    }
}

impl Gathered {
    fn run(&self, call: &Call<'_>, kernel: Kernel, groups: usize) -> Result<(), Error> {
        let count = |dims: &[Dim<5>]| dims.iter().fold(1usize, |n, dim| n.saturating_mul(dim.size));
        let last = |dims: &[Dim<5>]| dims.iter().rfind(|dim| dim.size > 1).copied();
        let (terms, columns) = (last(&self.terms), last(&self.columns));
        // Image elements are contiguous if the last dimension has step 1.
        let steps = |dim: Option<Dim<5>>| {
            let Some(Dim { strides, .. }) = dim else { return i64::MAX };
            let moved = (0..3).map(|d| strides[2 + d] as i64 * self.axis[d].stride);
            (strides[1] as i64 + moved.sum::<i64>()).abs()
        };
        let left_by_term = terms.is_some_and(|dim| dim.strides[0] == 1) && self.left.2 != 1;
        let by_term = [left_by_term, steps(terms) < steps(columns)];
        let sizes = [self.rows, count(&self.columns), count(&self.terms)];
        let on = (device_of(call)?, call.stream());
        let bytes = Array::output(call, 0)?.bytes;
        let pieces = self.pieces(bytes, by_term);
        let shape = Shape::new(groups, sizes, by_term)?.on_cores(on.0, kernel, pieces);
        let first_axis = self.first_axis()?;
        let argument = |shape| ConvArgument {
            out: self.out.0,
            left: self.left.0,
            image: self.image.0,
            bias: self.bias.0,
            out_group: self.out.1,
            left_group: self.left.1,
            image_group: self.image.1,
            bias_group: self.bias.1,
            out_row: self.out.2,
            left_row: self.left.2,
            bias_row: self.bias.2,
            axis: self.axis,
            first_axis,
            columns: Dims::new(&self.columns),
            terms: Dims::new(&self.terms),
            shape,
        };
        if groups == 1 && self.lowered(on, kernel, bytes, (argument(shape), by_term[1], pieces[1]))? {
            return Ok(());
        }
        shape.launch(on, (kernel, "conv"), (groups, ACCUMULATOR), argument)
    }
}

impl Gathered {
    /// The first axis with more than one position, which becomes the first. Positions are 32-bit integers.
    fn first_axis(&self) -> Result<u32, Error> {
        let along = |d: usize| {
            self.columns.iter().chain(&self.terms).map(move |dim| (dim.size, dim.strides[2 + d] as i64))
        };
        for (d, axis) in self.axis.iter().enumerate() {
            let farthest = along(d).fold(axis.shift.unsigned_abs(), |sum, (size, step)| {
                sum.saturating_add(step.unsigned_abs().saturating_mul(size.saturating_sub(1) as u64))
            });
            if farthest >= 1 << 31 {
                return Err(unsupported("a convolution whose kernel spans 2^31 positions or more"));
            }
        }
        let is_one = |d: &usize| {
            let axis = &self.axis[*d];
            axis.size == 1 && axis.shift == 0 && along(*d).all(|(size, step)| size == 1 || step == 0)
        };
        Ok((0..3).take_while(is_one).count() as u32)
    }

    /// Whether tensor cores may load 16-byte pieces of each operand, whose elements have `bytes` bytes: the left one along
    /// the reduction dimension or the rows, the image along the reduction dimension if that is a dimension of contiguous
    /// channels.
    fn pieces(&self, bytes: usize, [left_by_term, right_by_term]: [bool; 2]) -> [bool; 2] {
        let strides = |dims: &[Dim<5>], k: usize| {
            dims.iter().filter(|dim| dim.size > 1).map(move |dim| dim.strides[k] as i64).collect::<Vec<i64>>()
        };
        let whole = |dim: &Dim<5>| dim.size.is_multiple_of(piece(bytes));
        let Some(at) = self.terms.iter().rposition(|dim| dim.size > 1) else { return [false; 2] };
        let (inner, outer) = (self.terms[at], &self.terms[..at]);
        let left_steps = match left_by_term {
            true => [strides(outer, 0), vec![self.left.1, self.left.2]].concat(),
            false => [strides(&self.terms, 0), vec![self.left.1]].concat(),
        };
        let along = if left_by_term { whole(&inner) && inner.strides[0] == 1 } else { self.left.2 == 1 };
        let of_image = [strides(outer, 1), strides(&self.columns, 1), vec![self.image.1]].concat();
        let axes = self.axis.iter().filter(|axis| axis.size > 1).map(|axis| axis.stride);
        let channels = right_by_term && whole(&inner) && inner.strides[1..] == [1, 0, 0, 0];
        [
            along && in_pieces(self.left.0, bytes, &left_steps),
            channels && in_pieces(self.image.0, bytes, &[of_image, axes.collect()].concat()),
        ]
    }
}

/// One of three spatial dimensions, with the strides of two operands, and the step of the position.
fn spatial(d: usize, size: usize, first: i64, moves: i64) -> Dim<5> {
    let mut strides = [first, 0, 0, 0, 0];
    strides[2 + d] = moves;
    dim(size, strides)
}

/// Channels and kernel taps: channels innermost if they are innermost in the kernel, as they then are in the image.
fn in_order_of(step: i64, channels: Dim<5>, [first, second, third]: [Dim<5>; 3]) -> [Dim<5>; 4] {
    match step {
        1 => [first, second, third, channels],
        _ => [channels, first, second, third],
    }
}

/// The axes of an image whose positions are divided by `steps`.
fn axes(image: &Image, shift: [i64; 3], steps: [i64; 3]) -> Result<[Axis; 3], Error> {
    let mut made = [Axis { shift: 0, step: Divisor::default(), size: 0, stride: 0 }; 3];
    for (d, axis) in made.iter_mut().enumerate() {
        let step = u32::try_from(steps[d]).ok().filter(|step| (1..1 << 31).contains(step));
        *axis = Axis {
            shift: shift[d],
            step: Divisor::new(step.ok_or_else(|| unsupported("a stride of 2^31 or more"))?),
            size: super::nets::counted(image.sizes[d + 2])?,
            stride: image.strides[d + 2],
        };
    }
    Ok(made)
}

/// The complete convolution, of input, kernel and result.
fn whole(
    kind: Kind,
    kernel: Kernel,
    [input, weight, result]: [Image; 3],
    moves: Moves,
) -> Convolution<'static> {
    Convolution { kind, dtype: kernel.dtype, rounds: false, adds: false, input, weight, result, moves }
}

/// Implicit GEMM: rows are the result's channels, columns the output positions, the reduction dimension the channels of the group
/// and the kernel taps.
fn conv(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (input, weight, out) =
        (Image::argument(call, 0)?, Image::argument(call, 1)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    let (moves, groups) = moves_of(call)?;
    let bias = Array::optional(call, 2)?;
    if convolve(call, whole(Kind::Forward, kernel, [input, weight, out], moves), bias)? {
        return Ok(());
    }
    let (rows, channels) = (weight.sizes[0] / groups, weight.sizes[1]);
    let bias = match bias {
        Some(bias) => {
            let step = bias.strides.first().copied().unwrap_or(0);
            (bias.data, rows as i64 * step, step)
        }
        None => (0, 0, 0),
    };
    let taps = |d: usize| spatial(d, weight.sizes[d + 2], weight.strides[d + 2], moves.dilation[d]);
    let places = |d: usize| spatial(d, out.sizes[d + 2], out.strides[d + 2], moves.stride[d]);
    let of_channels = dim(channels, [weight.strides[1], input.strides[1], 0, 0, 0]);
    let samples = dim(out.sizes[0], [out.strides[0], input.strides[0], 0, 0, 0]);
    Gathered {
        out: (out.data, rows as i64 * out.strides[1], out.strides[1]),
        left: (weight.data, rows as i64 * weight.strides[0], weight.strides[0]),
        image: (input.data, channels as i64 * input.strides[1]),
        bias,
        rows,
        axis: axes(&input, moves.padding.map(|padding| -padding), [1; 3])?,
        columns: [samples, places(0), places(1), places(2)],
        terms: in_order_of(weight.strides[1], of_channels, [taps(0), taps(1), taps(2)]),
        sums_samples: false,
    }
    .run(call, kernel, groups)
}

/// Implicit GEMM: rows are the input's channels, columns its positions, the reduction dimension the result's channels of the
/// group and the kernel taps; the gradient has an element for a tap only if the stride divides the distance.
fn conv_input_grad(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, weight, out) = (Image::argument(call, 0)?, Image::argument(call, 1)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    let (moves, groups) = moves_of(call)?;
    if convolve(call, whole(Kind::Data, kernel, [out, weight, grad], moves), None)? {
        return Ok(());
    }
    let (channels, rows) = (weight.sizes[0] / groups, weight.sizes[1]);
    let taps = |d: usize| spatial(d, weight.sizes[d + 2], weight.strides[d + 2], -moves.dilation[d]);
    let places = |d: usize| spatial(d, out.sizes[d + 2], out.strides[d + 2], 1);
    let of_channels = dim(channels, [weight.strides[0], grad.strides[1], 0, 0, 0]);
    let samples = dim(out.sizes[0], [out.strides[0], grad.strides[0], 0, 0, 0]);
    Gathered {
        out: (out.data, rows as i64 * out.strides[1], out.strides[1]),
        left: (weight.data, channels as i64 * weight.strides[0], weight.strides[1]),
        image: (grad.data, channels as i64 * grad.strides[1]),
        bias: (0, 0, 0),
        rows,
        axis: axes(&grad, moves.padding, moves.stride)?,
        columns: [samples, places(0), places(1), places(2)],
        terms: [of_channels, taps(0), taps(1), taps(2)],
        sums_samples: false,
    }
    .run(call, kernel, groups)
}

/// Implicit GEMM: rows are the result's channels, columns the channels of the group and the kernel taps, the reduction dimension
/// the positions of all samples.
fn conv_weight_grad(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (grad, input, out) = (Image::argument(call, 0)?, Image::argument(call, 1)?, Image::output(call, 0)?);
    if out.is_empty() {
        return Ok(());
    }
    let (moves, groups) = moves_of(call)?;
    if convolve(call, whole(Kind::Filter, kernel, [input, out, grad], moves), None)? {
        return Ok(());
    }
    let (rows, channels) = (out.sizes[0] / groups, out.sizes[1]);
    let taps = |d: usize| spatial(d, out.sizes[d + 2], out.strides[d + 2], moves.dilation[d]);
    let places = |d: usize| spatial(d, grad.sizes[d + 2], grad.strides[d + 2], moves.stride[d]);
    let of_channels = dim(channels, [out.strides[1], input.strides[1], 0, 0, 0]);
    let samples = dim(grad.sizes[0], [grad.strides[0], input.strides[0], 0, 0, 0]);
    Gathered {
        out: (out.data, rows as i64 * out.strides[0], out.strides[0]),
        left: (grad.data, rows as i64 * grad.strides[1], grad.strides[1]),
        image: (input.data, channels as i64 * input.strides[1]),
        bias: (0, 0, 0),
        rows,
        axis: axes(&input, moves.padding.map(|padding| -padding), [1; 3])?,
        columns: in_order_of(out.strides[1], of_channels, [taps(0), taps(1), taps(2)]),
        terms: [samples, places(0), places(1), places(2)],
        sums_samples: true,
    }
    .run(call, kernel, groups)
}

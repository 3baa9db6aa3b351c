//! Normalisations by mean and variance, and their gradients.

use super::launch::{Dims, launch};
use super::nets::{Array, Sharing, by_pieces, piece, unsupported, wide_bytes};
use super::scratch::Scratch;
use super::{Kernel, device_of};
use crate::driver::Argument;
use keyway_sdk::author::strided::{Dim, Strided, row_major};
use keyway_sdk::author::{Call, Error, dtype_name};

family!("norms");

/// Maximum bytes of a scalar; the partial result of a row has three of them.
const NUMBER: usize = 8;
const PART: usize = 3 * NUMBER;
/// Maximum bytes of the partial gradient sums of blocks that share a row: a `GradientSums`.
const SUMS: usize = 5 * NUMBER;

/// `Normalise` in norms.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct NormaliseArgument {
    out: u64,
    input: u64,
    weight: u64,
    bias: u64,
    mean: u64,
    var: u64,
    parts: u64,
    eps: u64,
    sharing: Sharing,
    given: u32,
    narrow: u32,
    splits: u32,
    centred: u32,
    rows: Dims<5>,
    terms: Dims<4>,
}
// SAFETY: `Normalise` has these fields.
unsafe impl Argument for NormaliseArgument {}

/// `Gradient` in norms.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct GradientArgument {
    out: u64,
    grad: u64,
    input: u64,
    weight: u64,
    mean: u64,
    var: u64,
    parts: u64,
    sums: u64,
    of_weight: u64,
    of_bias: u64,
    eps: u64,
    sharing: Sharing,
    given: u32,
    narrow: u32,
    centred: u32,
    rows: Dims<8>,
    terms: Dims<4>,
}
// SAFETY: `Gradient` has these fields.
unsafe impl Argument for GradientArgument {}

/// `AffineGradient` in norms.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct AffineArgument {
    weight: u64,
    bias: u64,
    grad: u64,
    input: u64,
    parts: u64,
    pairs: u64,
    sharing: Sharing,
    narrow: u32,
    splits: u32,
    rows: Dims<5>,
    terms: Dims<3>,
}
// SAFETY: `AffineGradient` has these fields.
unsafe impl Argument for AffineArgument {}

/// A dimension of the input: its strides in all operands that have it, and whether it is a dimension of the rows and of the
/// weight.
#[derive(Clone, Copy, Default, Debug)]
struct Axis {
    size: i64,
    out: i64,
    grad: i64,
    input: i64,
    weight: i64,
    bias: i64,
    statistics: i64,
    /// Stride between rows along this dimension.
    number: i64,
    /// Strides of the gradients of weight and bias.
    of_weight: [i64; 2],
    is_row: bool,
    is_affine: bool,
}

/// The operands of a call without its statistics.
struct Operands<'a> {
    input: Array<'a>,
    out: Array<'a>,
    grad: Option<Array<'a>>,
    weight: Option<Array<'a>>,
    bias: Option<Array<'a>>,
    axes: Vec<Axis>,
}

/// Mean and variance, given or requested; and whether rows are centred.
#[derive(Clone, Copy)]
struct Statistics {
    mean: u64,
    var: u64,
    given: bool,
    narrow: bool,
    centred: bool,
}

/// The statistics of each row, not requested as outputs.
const OWN: Statistics = Statistics { mean: 0, var: 0, given: false, narrow: false, centred: true };
/// As [`OWN`], for rows that are divided by their root mean square.
const ROOT: Statistics = Statistics { centred: false, ..OWN };

/// The space of the axes that satisfy a predicate.
fn space<const N: usize>(
    axes: &[Axis],
    of: impl Fn(&Axis) -> bool,
    strides: impl Fn(&Axis) -> [i64; N],
) -> Result<Strided<N>, Error> {
    let some: Vec<&Axis> = axes.iter().filter(|axis| of(axis)).collect();
    let sizes: Vec<i64> = some.iter().map(|axis| axis.size).collect();
    let lists: Vec<Vec<i64>> = (0..N).map(|k| some.iter().map(|axis| strides(axis)[k]).collect()).collect();
    Strided::new(&sizes, std::array::from_fn(|k| lists[k].as_slice()))
}

/// The dimensions of the reduced space, in [pieces](by_pieces) if possible.
fn dims_of<const N: usize>(terms: &Strided<N>, pieces: Option<Vec<Dim<N>>>) -> Result<Dims<N>, Error> {
    let whole = Dims::of(terms)?;
    Ok(pieces.map_or(whole, |dims| Dims::new(&dims)))
}

/// A float as bits in the compute type of a dtype.
fn wide(dtype: &str, number: f64) -> u64 {
    if dtype == "f64" { number.to_bits() } else { u64::from((number as f32).to_bits()) }
}

fn data(array: Option<&Array<'_>>) -> u64 {
    array.map_or(0, |array| array.data)
}

impl<'a> Operands<'a> {
    /// The operands with the input, weight and bias in these arguments, and for a gradient the incoming gradient.
    fn of(call: &Call<'a>, [input, weight, bias]: [Option<usize>; 3], grad: bool) -> Result<Self, Error> {
        let optional = |at: Option<usize>| at.map_or(Ok(None), |at| Array::optional(call, at));
        let (input, out) = (Array::argument(call, input.unwrap_or(0))?, Array::output(call, 0)?);
        let grad = if grad { Some(Array::argument(call, 0)?) } else { None };
        let axes = (0..input.sizes.len())
            .map(|d| Axis {
                size: input.sizes[d],
                out: out.strides[d],
                grad: grad.map_or(0, |grad| grad.strides[d]),
                input: input.strides[d],
                ..Axis::default()
            })
            .collect();
        Ok(Operands { input, out, grad, weight: optional(weight)?, bias: optional(bias)?, axes })
    }

    /// Makes a row of the last `normalized` dimensions, those of weight and bias, for each index of the others.
    fn by_sample(&mut self, normalized: usize) -> Result<(), Error> {
        let lead = self.axes.len().saturating_sub(normalized);
        let step = |of: Option<&Array<'_>>, d: usize| of.and_then(|of| of.strides.get(d)).map_or(0, |s| *s);
        for (d, axis) in self.axes.iter_mut().enumerate() {
            axis.is_row = d < lead;
            axis.is_affine = d >= lead;
            if let Some(own) = d.checked_sub(lead) {
                (axis.weight, axis.bias) = (step(self.weight.as_ref(), own), step(self.bias.as_ref(), own));
            }
        }
        self.count_rows()
    }

    /// Makes a row of each channel (dimension 1), or of each channel of each sample.
    fn by_channel(&mut self, per_sample: bool) -> Result<(), Error> {
        if self.axes.len() < 2 {
            return Err(unsupported("an input of fewer than 2 dimensions"));
        }
        let step = |of: Option<&Array<'_>>| of.and_then(|of| of.strides.first()).map_or(0, |s| *s);
        self.axes[0].is_row = per_sample;
        self.axes[1].is_row = true;
        self.axes[1].is_affine = true;
        (self.axes[1].weight, self.axes[1].bias) = (step(self.weight.as_ref()), step(self.bias.as_ref()));
        self.count_rows()
    }

    /// Makes a row of each group of channels of each sample.
    fn by_group(&mut self, groups: i64) -> Result<(), Error> {
        self.by_channel(true)?;
        let (groups, all) = (groups.max(1), self.axes[1]);
        let each = all.size / groups;
        let group = Axis {
            size: groups,
            out: all.out * each,
            grad: all.grad * each,
            input: all.input * each,
            weight: all.weight * each,
            bias: all.bias * each,
            ..all
        };
        self.axes[1] = Axis { size: each, is_row: false, number: 0, ..all };
        self.axes.insert(1, group);
        self.count_rows()
    }

    /// Numbers the rows.
    fn count_rows(&mut self) -> Result<(), Error> {
        let sizes: Vec<i64> = self.axes.iter().filter(|axis| axis.is_row).map(|axis| axis.size).collect();
        let rows = self.axes.iter_mut().filter(|axis| axis.is_row);
        rows.zip(row_major(&sizes)?).for_each(|(axis, number)| axis.number = number);
        Ok(())
    }

    fn normalise(&self, call: &Call<'_>, kernel: Kernel, eps: f64, of: Statistics) -> Result<(), Error> {
        let rows =
            space(&self.axes, |axis| axis.is_row, |a| [a.out, a.input, a.weight, a.bias, a.statistics])?;
        let terms = space(&self.axes, |axis| !axis.is_row, |a| [a.out, a.input, a.weight, a.bias])?;
        let (bytes, on) = (self.input.bytes, (device_of(call)?, call.stream()));
        let sharing = Sharing::new((&rows, 1), (&terms, 1))?;
        // Output and input; weight and bias.
        let images = [(self.out.data, 0, 0), (self.input.data, 1, 1)];
        let affine = [(self.weight.as_ref(), 2), (self.bias.as_ref(), 3)];
        let all: Vec<_> =
            affine.iter().filter_map(|(of, k)| Some((of.as_ref()?.data, *k, *k))).chain(images).collect();
        let one_piece = terms.dims().len() == 1 && by_pieces((&rows, &terms), &all, &[], bytes).is_some();
        let kept = sharing.kept(bytes, wide_bytes(bytes)).filter(|_| !of.given && one_piece);
        let pieces = by_pieces((&rows, &terms), &images, &[2, 3], bytes).filter(|_| kept.is_none());
        let at_once = if pieces.is_some() { piece(bytes) } else { 1 };
        let sharing = kept.unwrap_or(sharing.taken(at_once));
        let splits = if kept.is_some() { 1 } else { sharing.splits(at_once) };
        let end = if pieces.is_some() { "_pieces" } else { "" };
        let mut argument = NormaliseArgument {
            out: self.out.data,
            input: self.input.data,
            weight: data(self.weight.as_ref()),
            bias: data(self.bias.as_ref()),
            mean: of.mean,
            var: of.var,
            parts: 0,
            eps: wide(kernel.dtype, eps),
            sharing,
            given: u32::from(of.given),
            narrow: u32::from(of.narrow),
            splits: splits as u32,
            centred: u32::from(of.centred),
            rows: Dims::of(&rows)?,
            terms: dims_of(&terms, pieces)?,
        };
        let parts = Scratch::new(on, if splits > 1 && !of.given { rows.numel() * splits } else { 0 }, PART)?;
        argument.parts = parts.at();
        let grid = ([sharing.blocks(), splits], sharing.threads());
        if splits > 1 && !of.given {
            launch(on.0, kernel, format_args!("statistics_{}{end}", kernel.dtype), grid, &argument, on.1)?;
        }
        let end = if kept.is_some() { "_kept" } else { end };
        launch(on.0, kernel, format_args!("normalise_{}{end}", kernel.dtype), grid, &argument, on.1)
    }

    /// The gradients of the input, weight and bias; those of weight and bias have the elements' type if `narrow`.
    fn gradients(
        &mut self,
        call: &Call<'_>,
        kernel: Kernel,
        eps: f64,
        of: Statistics,
        narrow: bool,
    ) -> Result<(), Error> {
        let weight_out = Array::output(call, 1)?;
        // A row that is not centred has no bias.
        let bias_out = if of.centred { Some(Array::output(call, 2)?) } else { None };
        let of_bias = bias_out.as_ref().map_or(weight_out.strides, |bias| bias.strides);
        let steps: Vec<[i64; 2]> =
            weight_out.strides.iter().zip(of_bias).map(|(&weight, &bias)| [weight, bias]).collect();
        let affine: Vec<&mut Axis> = self.axes.iter_mut().filter(|axis| axis.is_affine).collect();
        match (&steps[..], affine) {
            // Groups of channels.
            ([step], affine) if affine.len() == 2 => {
                let each = affine[1].size;
                affine
                    .into_iter()
                    .zip([each, 1])
                    .for_each(|(axis, n)| axis.of_weight = step.map(|step| step * n));
            }
            (steps, affine) => affine.into_iter().zip(steps).for_each(|(axis, step)| axis.of_weight = *step),
        }
        let numbered = |a: &Axis| {
            let [weight, bias] = a.of_weight;
            [a.number, a.out, a.grad, a.input, a.weight, a.statistics, weight, bias]
        };
        let rows = space(&self.axes, |axis| axis.is_row, numbered)?;
        let terms = space(&self.axes, |axis| !axis.is_row, |a| [a.out, a.grad, a.input, a.weight])?;
        let grad = data(self.grad.as_ref());
        let (gpu, stream, bytes) = (device_of(call)?, call.stream(), self.input.bytes);
        let on = (gpu, stream);
        // The partial sums of the rows' launches suffice for the channels' gradients.
        let by_rows = !narrow && self.axes.iter().all(|axis| axis.is_row == axis.is_affine);
        let parts = Scratch::new(on, if by_rows { 0 } else { rows.numel() }, PART)?;
        if rows.numel() > 0 && terms.numel() > 0 {
            let images = [(self.out.data, 1, 0), (grad, 2, 1), (self.input.data, 3, 2)];
            let pieces = by_pieces((&rows, &terms), &images, &[3], bytes);
            let (at_once, end) = if pieces.is_some() { (piece(bytes), "_pieces") } else { (1, "") };
            let sharing = Sharing::new((&rows, 3), (&terms, 2))?.taken(at_once);
            let splits = if of.given { sharing.splits(at_once) } else { 1 };
            let sums = Scratch::new(on, if splits > 1 { rows.numel() * splits } else { 0 }, SUMS)?;
            let own = |out: Option<&Array<'_>>| data(out.filter(|_| by_rows));
            let (of_weight, of_bias) = (own(Some(&weight_out)), own(bias_out.as_ref()));
            let argument = GradientArgument {
                out: self.out.data,
                grad,
                input: self.input.data,
                weight: data(self.weight.as_ref()),
                mean: of.mean,
                var: of.var,
                parts: parts.at(),
                sums: sums.at(),
                of_weight,
                of_bias,
                eps: wide(kernel.dtype, eps),
                sharing,
                given: u32::from(of.given),
                narrow: u32::from(of.narrow),
                centred: u32::from(of.centred),
                rows: Dims::of(&rows)?,
                terms: dims_of(&terms, pieces)?,
            };
            let stages: &[&str] = if splits > 1 { &["_sums", "_results"] } else { &[""] };
            for stage in stages {
                let entry = format_args!("input_gradient_{}{stage}{end}", kernel.dtype);
                let grid = ([sharing.blocks(), splits], sharing.threads());
                launch(gpu, kernel, entry, grid, &argument, stream)?;
            }
        }
        if by_rows {
            return Ok(());
        }
        let of_results = |a: &Axis| [a.of_weight[0], a.of_weight[1], a.grad, a.input, a.number];
        let rows = space(&self.axes, |axis| axis.is_affine, of_results)?;
        let terms = space(&self.axes, |axis| !axis.is_affine, |a| [a.grad, a.input, a.number])?;
        if rows.numel() == 0 {
            return Ok(());
        }
        let pieces = by_pieces((&rows, &terms), &[(grad, 2, 0), (self.input.data, 3, 1)], &[2], bytes);
        let (at_once, end) = if pieces.is_some() { (piece(bytes), "_pieces") } else { (1, "") };
        let sharing = Sharing::new((&rows, 3), (&terms, 1))?.taken(at_once);
        let splits = sharing.splits(at_once);
        let pairs = Scratch::new(on, if splits > 1 { rows.numel() * splits } else { 0 }, 2 * NUMBER)?;
        let argument = AffineArgument {
            weight: weight_out.data,
            bias: data(bias_out.as_ref()),
            grad,
            input: self.input.data,
            parts: parts.at(),
            pairs: pairs.at(),
            sharing,
            narrow: u32::from(narrow),
            splits: splits as u32,
            rows: Dims::of(&rows)?,
            terms: dims_of(&terms, pieces)?,
        };
        let first = format_args!("affine_gradient_{}{end}", kernel.dtype);
        launch(gpu, kernel, first, ([sharing.blocks(), splits], sharing.threads()), &argument, stream)?;
        if splits == 1 {
            return Ok(());
        }
        let second = format_args!("affine_gradient_{}_finish", kernel.dtype);
        launch(gpu, kernel, second, ([sharing.blocks(), 1], sharing.threads()), &argument, stream)
    }
}

fn layer_norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(0), Some(2), Some(3)], false)?;
    if operands.input.numel() == 0 {
        return Ok(());
    }
    operands.by_sample(call.ints(1)?.len())?;
    operands.normalise(call, kernel, call.scalar(4)?, OWN)
}

fn layer_norm_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(1), Some(3), None], true)?;
    operands.by_sample(call.ints(2)?.len())?;
    operands.gradients(call, kernel, call.scalar(4)?, OWN, true)
}

/// Argument `i`, or the machine epsilon of the compute type.
fn epsilon(call: &Call<'_>, kernel: Kernel, i: usize) -> Result<f64, Error> {
    match call.is_none(i)? {
        true if kernel.dtype == "f64" => Ok(f64::EPSILON),
        true => Ok(f64::from(f32::EPSILON)),
        false => call.float(i),
    }
}

fn rms_norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(0), Some(2), None], false)?;
    if operands.input.numel() == 0 {
        return Ok(());
    }
    operands.by_sample(call.ints(1)?.len())?;
    operands.normalise(call, kernel, epsilon(call, kernel, 3)?, ROOT)
}

fn rms_norm_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(1), Some(3), None], true)?;
    operands.by_sample(call.ints(2)?.len())?;
    operands.gradients(call, kernel, epsilon(call, kernel, 4)?, ROOT, true)
}

fn group_norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(0), Some(2), Some(3)], false)?;
    if operands.input.numel() == 0 {
        return Ok(());
    }
    operands.by_group(call.int(1)?)?;
    operands.normalise(call, kernel, call.float(4)?, OWN)
}

fn group_norm_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(1), Some(3), None], true)?;
    if operands.input.numel() == 0 {
        return Err(unsupported("an empty input"));
    }
    operands.by_group(call.int(2)?)?;
    operands.gradients(call, kernel, call.float(4)?, OWN, false)
}

/// The statistics of channels, or of channels of samples, in arguments or outputs.
fn statistics(kernel: Kernel, [mean, var]: [keyway_sdk::author::Tensor<'_>; 2]) -> Result<Statistics, Error> {
    let dtypes = [mean.dtype(), var.dtype()].map(dtype_name);
    let narrow = dtypes[0] == kernel.dtype;
    let is_wide = dtypes[0] == "f32" && matches!(kernel.dtype, "f16" | "bf16");
    if dtypes[0] != dtypes[1] || !(narrow || is_wide) || !mean.is_contiguous() || !var.is_contiguous() {
        return Err(unsupported("statistics of another dtype, or that are not contiguous"));
    }
    let [mean, var] = [Array::new(&mean)?.data, Array::new(&var)?.data];
    Ok(Statistics { mean, var, given: true, narrow, ..OWN })
}

/// `batch_norm` and `instance_norm`, unless they update running statistics.
fn running(call: &Call<'_>, kernel: Kernel, per_sample: bool) -> Result<(), Error> {
    let (from_input, given) = (call.bool(5)?, !call.is_none(1)?);
    if from_input && given {
        return Err(unsupported("a change of running statistics"));
    }
    let mut operands = Operands::of(call, [Some(0), Some(3), Some(4)], false)?;
    if operands.input.numel() == 0 {
        return Err(unsupported("an empty input"));
    }
    operands.by_channel(per_sample && from_input)?;
    let of = match from_input {
        true => OWN,
        false => statistics(kernel, [call.tensor(1)?, call.tensor(2)?])?,
    };
    operands.axes[1].statistics = 1;
    operands.normalise(call, kernel, call.float(7)?, of)
}

fn batch_norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    running(call, kernel, false)
}

fn instance_norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    running(call, kernel, true)
}

/// `batch_norm` with given statistics, with the arguments of `frozen_norm`.
fn frozen_norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(0), Some(3), Some(4)], false)?;
    if operands.input.numel() == 0 {
        return Err(unsupported("an empty input"));
    }
    operands.by_channel(false)?;
    operands.axes[1].statistics = 1;
    let of = statistics(kernel, [call.tensor(1)?, call.tensor(2)?])?;
    operands.normalise(call, kernel, call.float(5)?, of)
}

fn channel_norm(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(0), Some(1), Some(2)], false)?;
    if operands.input.numel() == 0 {
        return Err(unsupported("an empty input"));
    }
    operands.by_channel(call.bool(3)?)?;
    let [mean, var] = [Array::output(call, 1)?, Array::output(call, 2)?];
    if mean.strides != var.strides {
        return Err(unsupported("a mean and a variance of different strides"));
    }
    let rows = operands.axes.iter_mut().zip(mean.strides).filter(|(axis, _)| axis.is_row);
    rows.for_each(|(axis, stride)| axis.statistics = *stride);
    let of = Statistics { mean: mean.data, var: var.data, ..OWN };
    operands.normalise(call, kernel, call.float(4)?, of)
}

fn channel_norm_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let mut operands = Operands::of(call, [Some(1), Some(4), None], true)?;
    if operands.input.numel() == 0 {
        return Err(unsupported("an empty input"));
    }
    operands.by_channel(call.bool(5)?)?;
    operands.axes.iter_mut().for_each(|axis| axis.statistics = axis.number);
    let of = statistics(kernel, [call.tensor(2)?, call.tensor(3)?])?;
    operands.gradients(call, kernel, call.float(6)?, of, false)
}

//! Losses with class indices as targets.

use super::elements::Taken;
use super::indices::{Checked, checked};
use super::launch::{Dims, launch};
use super::nets::{Array, ROW_THREADS, unsupported};
use super::space::Laid;
use super::{Kernel, device_of};
use crate::checks::{Bounds, What};
use crate::driver::Argument;
use keyway_sdk::author::strided::Strided;
use keyway_sdk::author::{Call, Error};

family!("losses");

/// The maximum number of targets, since a single block reduces them; more use the decomposition.
const MOST: usize = 1 << 16;

/// `Losses` in losses.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct LossesArgument {
    out: u64,
    weights: u64,
    input: u64,
    targets: u64,
    weight: u64,
    class_step: i64,
    weight_step: i64,
    count: u64,
    ignored: i64,
    mean: u32,
    dims: Dims<5>,
}
// SAFETY: `Losses` has these fields.
unsafe impl Argument for LossesArgument {}

/// The dimension of the classes among these.
fn class_dim(ndim: usize) -> usize {
    usize::from(ndim > 1)
}

/// The targets of a call, argument 1: class indices, or the ignored value.
fn targets(call: &Call<'_>, kernel: Kernel, classes: i64, ignored: i64) -> Result<Checked, Error> {
    // A host scalar is unsupported.
    Array::argument(call, 1)?;
    let given = Laid::argument(call, 1, Taken::Raw)?;
    let bounds = Bounds {
        op: kernel.name,
        argument: "target",
        low: 0,
        size: classes.max(0),
        what: What::Classes(ignored),
    };
    checked((device_of(call)?, call.stream()), given, bounds)
}

/// Computes the losses of a call, each written to `out` and `weights`, or their reduction to `out`; returns the targets,
/// which must be retained until the kernel has read them.
fn losses(
    call: &Call<'_>,
    kernel: Kernel,
    out: Option<&Array<'_>>,
    weights: Option<&Array<'_>>,
) -> Result<(LossesArgument, Checked), Error> {
    let input = Array::argument(call, 0)?;
    let (weight, ignored) = (Array::optional(call, 2)?, call.int(3)?);
    let classes = class_dim(input.sizes.len());
    let class_step = input.strides.get(classes).copied().unwrap_or(0);
    let checked = targets(call, kernel, input.sizes.get(classes).copied().unwrap_or(0), ignored)?;
    let targets = &checked.laid;
    let others: Vec<i64> =
        input.strides.iter().enumerate().filter(|(d, _)| *d != classes).map(|(_, &step)| step).collect();
    let none = vec![0; targets.sizes.len()];
    let steps = |of: Option<&Array<'_>>| of.map_or(none.clone(), |of| of.strides.to_vec());
    let strides = [&steps(out)[..], &steps(weights), &others, &targets.strides, &none];
    let space = Strided::new(&targets.sizes, strides)?;
    let argument = LossesArgument {
        out: out.map_or(0, |out| out.data),
        weights: weights.map_or(0, |weights| weights.data),
        input: input.data,
        targets: targets.operand.data,
        weight: weight.map_or(0, |weight| weight.data),
        class_step,
        weight_step: weight.and_then(|weight| weight.strides.first().copied()).unwrap_or(0),
        count: space.numel() as u64,
        ignored,
        mean: 0,
        dims: Dims::of(&space)?,
    };
    Ok((argument, checked))
}

fn run(call: &Call<'_>, kernel: Kernel, argument: &LossesArgument, blocks: usize) -> Result<(), Error> {
    if blocks == 0 {
        return Ok(());
    }
    let entry = format_args!("{}_{}", kernel.name, kernel.dtype);
    launch(device_of(call)?, kernel, entry, ([blocks, 1], ROW_THREADS as u32), argument, call.stream())
}

fn each(argument: &LossesArgument) -> usize {
    (argument.count as usize).div_ceil(ROW_THREADS)
}

fn nll_loss_forward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (out, weights) = (Array::output(call, 0)?, Array::output(call, 1)?);
    let (argument, _targets) = losses(call, kernel, Some(&out), Some(&weights))?;
    run(call, kernel, &argument, each(&argument))
}

fn nll_loss(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let (out, how) = (Array::output(call, 0)?, call.str(4)?);
    if how == "none" {
        let (argument, _targets) = losses(call, kernel, Some(&out), None)?;
        return run(call, kernel.variant("nll_loss_forward"), &argument, each(&argument));
    }
    if call.tensor(1)?.sizes().iter().product::<i64>() > MOST as i64 {
        return Err(unsupported(format!("a sum of more than {MOST} losses by one kernel")));
    }
    let (mut argument, _targets) = losses(call, kernel, None, None)?;
    (argument.out, argument.mean) = (out.data, u32::from(how == "mean"));
    run(call, kernel, &argument, 1)
}

fn nll_loss_backward(call: &Call<'_>, kernel: Kernel) -> Result<(), Error> {
    let out = Array::output(call, 0)?;
    let (grad, weights) = (Array::argument(call, 0)?, Array::argument(call, 2)?);
    let classes = class_dim(out.sizes.len());
    let ignored = call.int(4)?;
    let checked = targets(call, kernel, out.sizes.get(classes).copied().unwrap_or(0), ignored)?;
    let targets = &checked.laid;
    // The other operands have no class dimension: their stride along it is 0.
    let with = |strides: &[i64], class: i64| {
        let mut made = strides.to_vec();
        made.insert(classes.min(made.len()), class);
        made
    };
    let none = vec![0; targets.sizes.len()];
    let strides = [
        out.strides,
        &with(weights.strides, 0),
        &with(grad.strides, 0),
        &with(&targets.strides, 0),
        &with(&none, 1),
    ];
    let space = Strided::new(out.sizes, strides)?;
    let argument = LossesArgument {
        out: out.data,
        weights: 0,
        input: grad.data,
        targets: targets.operand.data,
        weight: weights.data,
        class_step: 0,
        weight_step: 0,
        count: space.numel() as u64,
        ignored,
        mean: 0,
        dims: Dims::of(&space)?,
    };
    run(call, kernel, &argument, each(&argument))
}

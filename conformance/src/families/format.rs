//! The memory format is kept: channels_last in, channels_last out, whatever the order of the arguments.

use super::{Context, Family, Scope, factor, is_in, preferred};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::memory::Arrangement;
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::tensor::Format;
use keyway::ops::def::{Facts, OpDef};
use keyway::ops::sample::{Role, Sample, SampleArg};
use keyway::ops::{conv, image, index, memory, norm, pointwise, pool, random, reduce};
use std::cell::Cell;

/// The family.
pub const FAMILY: Family = Family {
    name: "format",
    about: "channels_last is kept, whatever the order of the arguments",
    cases,
    run,
};

/// Batch, channels, height, width; none is 1, so that the two formats differ.
const SIZES: [usize; 4] = [2, 3, 4, 5];

/// Ops that work on the tensor as it stands. Products, views and those that make a tensor from nothing have no
/// format to keep.
fn concerned(def: &OpDef) -> bool {
    let families = [
        pointwise::ALL,
        random::ALL,
        memory::ALL,
        norm::ALL,
        index::ALL,
        reduce::ALL,
        conv::ALL,
        pool::ALL,
        image::ALL,
    ];
    is_in(def, &families) && !def.is(Facts::SETS_FORMAT)
}

/// The sample in four dimensions: as it is, or an element-wise one whose tensors are made so.
fn in_four_dims(def: &OpDef, sample: &Sample) -> Option<Sample> {
    let first = super::tensors(sample).next()?;
    if first.role == Role::Tested && first.sizes.len() == 4 && first.sizes[1..].iter().all(|&s| s > 1) {
        return Some(sample.clone());
    }
    let alike = super::tensors(sample).all(|t| t.sizes == first.sizes);
    if !is_in(def, &[pointwise::ALL]) || !alike || first.sizes.is_empty() || first.sizes.contains(&0) {
        return None;
    }
    let mut sample = sample.clone();
    for arg in &mut sample.args {
        match arg {
            SampleArg::Tensor(t) => t.sizes = SIZES.to_vec(),
            SampleArg::Tensors(list) => list.iter_mut().for_each(|t| t.sizes = SIZES.to_vec()),
            _ => {}
        }
    }
    Some(sample)
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| concerned(op.def)) {
        let Some(dtype) = preferred(op.def) else { continue };
        let mut seen = 0;
        for (nth, sample) in op.samples.iter().enumerate() {
            let Some(sample) = in_four_dims(op.def, sample) else { continue };
            seen += 1;
            if seen > 3 {
                break;
            }
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, "all"));
            let full = super::tensors(&sample).filter(|t| t.sizes == SIZES).count();
            for argument in 0..if full > 1 { full } else { 0 } {
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, format!("only-{argument}")));
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let sample = context.sample()?;
    let sample = in_four_dims(def, &sample)
        .ok_or_else(|| Stop::Skipped("the sample has no form in four dimensions".to_string()))?;
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let expected = context.expected(&inputs)?;
    let only: Option<usize> = context.case.variant.strip_prefix("only-").and_then(|n| n.parse().ok());
    let turn = Cell::new(0);
    let prepared = Prepared::new(&inputs, context.target.device, |sizes| {
        let this = turn.replace(turn.get() + 1);
        let wanted =
            only.is_none_or(|n| n == this) && Arrangement::ChannelsLast.suits(sizes) && sizes.len() == 4;
        if wanted { Arrangement::ChannelsLast } else { Arrangement::Contiguous }
    })?;
    let got = context.call(&prepared)?;
    compare::outputs(&expected, &got, factor(def, &sample))?;
    let sizes = prepared.placed.first().map(|p| p.tensor.sizes().to_vec()).unwrap_or_default();
    // Later outputs are places and counts, whose sizes may agree by chance.
    for (nth, output) in got.iter().enumerate().take(1).filter(|(_, o)| o.sizes() == sizes) {
        if !matches!(output.format(), Format::ChannelsLast | Format::Either) {
            let strides = format!("strides {:?} for sizes {:?}", output.strides(), output.sizes());
            return Err(
                Failure::new(format!("output {nth} lost the format"), "channels_last", strides).into()
            );
        }
    }
    Ok(())
}

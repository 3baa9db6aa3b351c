//! The memory format is preserved: channels_last inputs have channels_last outputs, for any order of the arguments, with or
//! without gaps, with one channel, and in the backward pass.

use super::gradients::{gradients, incoming, same};
use super::samples::leaves;
use super::{Context, Family, Scope, factor, has_out, is_in, preferred, tensors};
use crate::call::Prepared;
use crate::case::Case;
use crate::compare;
use crate::inputs;
use crate::memory::{Arrangement, Placed};
use crate::outcome::{Failure, Steps, Stop};
use keyway::dispatcher::dims::{channels_last_strides, contiguous_strides, may_self_overlap};
use keyway::dispatcher::op::Out;
use keyway::ops::def::{Derivative, OpDef, OpFlags};
use keyway::ops::sample::{Role, Sample, SampleArg};
use keyway::ops::{conv, create, image, index, loss, memory, norm, pointwise, pool, random, reduce};
use keyway::{DType, Tensor};
use std::cell::Cell;

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "format",
    about: "channels_last is preserved, whatever the order of the arguments, of slices, of one channel, by out= and by gradients from any order",
    cases,
    run,
};

/// Sizes of images, sequences and volumes; none is 1, so that the two formats differ.
const SIZES: [&[usize]; 3] = [&[2, 3, 4, 5], &[2, 3, 4], &[2, 3, 2, 4, 3]];
/// Images of one channel, which are contiguous in both formats.
const GRAY: &[usize] = &[2, 1, 4, 5];
/// The maximum number of an op's samples for each rank.
const SAMPLES: usize = 3;

/// The form of a sample's call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// Every image in channels_last.
    All,
    /// One tensor is channels_last, the others are row-major.
    Only(usize),
    /// Channels of wider images in channels_last.
    Slice,
    /// Images of one channel with the strides of channels_last.
    Meant,
    /// A target in channels_last, the arguments row-major.
    OutLast,
    /// The reverse.
    OutRows,
    /// The gradients of a channels_last tensor.
    Gradient,
    /// The same from a row-major gradient.
    GradientRows,
}

impl Variant {
    fn name(self) -> String {
        match self {
            Variant::All => "all".to_string(),
            Variant::Only(nth) => format!("only-{nth}"),
            Variant::Slice => "slice".to_string(),
            Variant::Meant => "meant".to_string(),
            Variant::OutLast => "out-last".to_string(),
            Variant::OutRows => "out-rows".to_string(),
            Variant::Gradient => "gradient".to_string(),
            Variant::GradientRows => "gradient-rows".to_string(),
        }
    }

    fn of(name: &str) -> Option<Variant> {
        let fixed = [
            Variant::All,
            Variant::Slice,
            Variant::Meant,
            Variant::OutLast,
            Variant::OutRows,
            Variant::Gradient,
            Variant::GradientRows,
        ];
        let only = || name.strip_prefix("only-")?.parse().ok().map(Variant::Only);
        fixed.into_iter().find(|v| v.name() == name).or_else(only)
    }

    /// The arrangement of tensor `nth` with these sizes; the others are row-major.
    fn arrangement(self, nth: usize, sizes: &[usize], rank: usize) -> Arrangement {
        let wanted = match self {
            Variant::All | Variant::Meant | Variant::OutRows | Variant::Gradient | Variant::GradientRows => {
                Arrangement::ChannelsLast
            }
            Variant::Slice => Arrangement::ChannelsSlice,
            Variant::Only(only) if only == nth => Arrangement::ChannelsLast,
            Variant::Only(_) | Variant::OutLast => Arrangement::Contiguous,
        };
        if sizes.len() == rank { wanted.where_it_suits(sizes) } else { Arrangement::Contiguous }
    }
}

/// Ops with a memory format to preserve: not products, views and factories.
fn concerned(def: &OpDef) -> bool {
    let families = [
        pointwise::ALL,
        random::ALL,
        memory::ALL,
        norm::ALL,
        index::ALL,
        reduce::ALL,
        loss::ALL,
        create::ALL,
        conv::ALL,
        pool::ALL,
        image::ALL,
    ];
    is_in(def, &families) && !def.is(OpFlags::SETS_FORMAT)
}

/// The sample, if its first tensor has a shape in which the formats differ.
fn of_images(sample: &Sample) -> Option<Sample> {
    let first = tensors(sample).next()?;
    let differ = || channels_last_strides(&first.sizes) != contiguous_strides(&first.sizes);
    let full = !first.sizes.contains(&0) && first.sizes.iter().filter(|&&n| n > 1).count() > 1;
    ((3..=5).contains(&first.sizes.len()) && full && differ() && first.role == Role::Tested)
        .then(|| sample.clone())
}

/// An element-wise sample resized to these sizes.
fn resized(def: &OpDef, sample: &Sample, sizes: &[usize]) -> Option<Sample> {
    if !is_in(def, &[pointwise::ALL]) || def.decomposition.is_some() && tensors(sample).count() > 3 {
        return None;
    }
    super::with_sizes(sample, sizes)
}

/// The sample of a case: the variant specifies its sizes, as `slice/1`.
fn made(def: &OpDef, sample: &Sample, variant: Variant, form: Option<usize>) -> Option<Sample> {
    match form {
        None => of_images(sample),
        Some(_) if variant == Variant::Meant => resized(def, sample, GRAY),
        Some(form) => resized(def, sample, SIZES.get(form)?),
    }
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| concerned(op.def)) {
        let Some(dtype) = preferred(op.def) else { continue };
        // One sample of each form: unchanged with 3 to 5 dimensions, or resized.
        let mut seen = [0; 9];
        for (nth, sample) in op.samples.iter().enumerate() {
            let natural = of_images(sample).map(|s| (s, None));
            let forms = (0..SIZES.len()).filter_map(|f| Some((resized(op.def, sample, SIZES[f])?, Some(f))));
            for (sample, form) in natural.into_iter().chain(forms) {
                let rank = tensors(&sample).next().map_or(0, |t| t.sizes.len());
                let counted = &mut seen[form.map_or(rank, |form| 6 + form)];
                *counted += 1;
                // For samples resized to three and to five dimensions one suffices.
                if *counted > if matches!(form, Some(1..)) { 1 } else { SAMPLES } {
                    continue;
                }
                for variant in variants(op.def, dtype, &sample, form) {
                    let name = match form {
                        None => variant.name(),
                        Some(form) => format!("{}/{form}", variant.name()),
                    };
                    cases.push(Case::of(FAMILY.name, op.def, dtype, nth, name));
                }
            }
        }
    }
}

fn variants(def: &OpDef, dtype: DType, sample: &Sample, form: Option<usize>) -> Vec<Variant> {
    let mut variants = vec![Variant::All];
    if matches!(form, Some(1..)) {
        return variants;
    }
    let first = tensors(sample).next().map(|t| &t.sizes);
    let alike = tensors(sample).filter(|t| Some(&t.sizes) == first).count();
    let lists = matches!(sample.args.first(), Some(SampleArg::Tensors(_)));
    if alike > 1 && alike == tensors(sample).count() && (form.is_some() || lists) {
        variants.extend((0..alike).map(Variant::Only));
    }
    variants.push(Variant::Slice);
    if form.is_some() {
        variants.push(Variant::Meant);
    }
    if has_out(def) {
        variants.extend([Variant::OutLast, Variant::OutRows]);
    }
    let differentiable = matches!(def.derivative, Derivative::Formula { .. } | Derivative::Composite);
    if differentiable && dtype.is_float() && sample.smooth {
        variants.extend([Variant::Gradient, Variant::GradientRows]);
    }
    variants
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let unknown = || Stop::Skipped(format!("there is no variant `{}`", context.case.variant));
    let (name, form) = match context.case.variant.split_once('/') {
        Some((name, form)) => (name, Some(form.parse().map_err(|_| unknown())?)),
        None => (context.case.variant.as_str(), None),
    };
    let variant = Variant::of(name).ok_or_else(unknown)?;
    let sample = made(def, &context.sample()?, variant, form)
        .ok_or_else(|| Stop::Skipped("the sample is not one of images".to_string()))?;
    let rank = tensors(&sample).next().map_or(0, |t| t.sizes.len());
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let expected = context.expected(&inputs)?;
    let turn = Cell::new(0);
    let arrange = |sizes: &[usize]| variant.arrangement(turn.replace(turn.get() + 1), sizes, rank);
    let device = context.target.device;
    match variant {
        Variant::OutLast | Variant::OutRows => {
            let prepared = Prepared::new(&inputs, device, arrange)?;
            let arrangement_of = match variant {
                Variant::OutLast => Arrangement::ChannelsLast,
                _ => Arrangement::Contiguous,
            };
            let outs = expected
                .iter()
                .map(|e| Placed::garbage(&e.sizes, e.dtype, arrangement_of.where_it_suits(&e.sizes), device))
                .collect::<Result<Vec<_>, _>>()?;
            let given: Vec<_> = outs.iter().map(|o| o.tensor.as_ref()).collect();
            let made = prepared.call_watched(def.entry()?, Out::Given(&given), &outs)?;
            made.map_err(|e| context.refused(e))?;
            let got: Vec<Tensor> = outs.iter().map(|o| o.tensor.clone()).collect();
            Ok(compare::outputs(&expected, &got, factor(def, &sample))?)
        }
        Variant::Gradient | Variant::GradientRows => {
            let prepared = Prepared::bare_in(&inputs, device, arrange)?;
            let leaves = leaves(prepared.tensors(), &sample)?;
            let outputs = prepared.call_with(def, &leaves, Out::New).map_err(|e| context.refused(e))?;
            let Some(output) = outputs.first().filter(|o| o.requires_grad()) else { return Ok(()) };
            let by = |incoming: Tensor| {
                gradients(std::slice::from_ref(output), &leaves, vec![incoming])
                    .map_err(|e| context.refused(e))
            };
            if variant == Variant::Gradient {
                let made = by(output.detach().ones_like()?)?;
                return if output.rank() == rank { check_gradients(def, &leaves, made) } else { Ok(()) };
            }
            if !output.as_ref().is_in_channels_last_order() {
                return Ok(());
            }
            // Values that differ between positions, so that wrong positions are detected.
            let values = incoming(output, false);
            let arrangement_of = |arrangement: Arrangement| {
                Ok::<_, Stop>(Placed::new(&values, arrangement.where_it_suits(&values.sizes), device)?.tensor)
            };
            let own = by(arrangement_of(Arrangement::ChannelsLast)?)?;
            let made = by(arrangement_of(Arrangement::Contiguous)?)?;
            same("with a row-major incoming gradient", &own, &made)?;
            check_gradients(def, &leaves, made)
        }
        _ => {
            let prepared = Prepared::new(&inputs, device, arrange)?;
            let got = context.call(&prepared)?;
            compare::outputs(&expected, &got, factor(def, &sample))?;
            // Later outputs are indices and counts.
            match got.first().filter(|output| output.rank() == rank) {
                Some(output) => check("output 0", output),
                None => Ok(()),
            }
        }
    }
}

/// Refuses gradients of images in channels_last that are not.
fn check_gradients(def: &OpDef, leaves: &[Tensor], made: Vec<Option<Tensor>>) -> Steps {
    let wanted = leaves.iter().filter(|t| t.requires_grad());
    for (nth, (leaf, gradient)) in wanted.zip(made).enumerate() {
        let Some(gradient) = gradient else { continue };
        // An expanded scalar has no order.
        let repeats = may_self_overlap(gradient.shape(), gradient.strides());
        // Other inputs are images if they have the first one's shape, as in kernels of convolutions.
        let image = nth == 0 || leaf.shape() == leaves[0].shape() || is_in(def, &[conv::ALL]);
        if image && !repeats && leaf.as_ref().is_in_channels_last_order() {
            check(&format!("the gradient of input {nth}"), &gradient)?;
        }
    }
    Ok(())
}

/// Fails for a tensor that is not channels_last, as far as its sizes distinguish the formats.
fn check(what: &str, made: &Tensor) -> Steps {
    let wanted = channels_last_strides(made.shape());
    let is_distinct = wanted != contiguous_strides(made.shape()) && !made.shape().contains(&0);
    if is_distinct && !made.as_ref().is_in_channels_last_order() {
        let strides = format!("strides {:?} for sizes {:?}", made.strides(), made.shape());
        return Err(Failure::new(format!("{what} lost the format"), "channels_last", strides).into());
    }
    Ok(())
}

//! Calls of the sizes at which kernels split their work, go from block to block or leave the vectors: long rows, thousands
//! of rows, images of many channels and pixels, in row-major order and in channels_last, in place too. Samples are small, and
//! a kernel may be right on all of them that drops the 17th channel.

mod calls;

use super::{Context, Family, Op, Scope, factor, is_in, tensors, with_sizes};
use crate::array::{Array, Number};
use crate::call::{self, Prepared};
use crate::case::Case;
use crate::memory::Arrangement;
use crate::outcome::{Steps, Stop};
use crate::{compare, inputs, oracle};
use keyway::Tensor;
use keyway::dispatcher::op::{Out, Rule};
use keyway::ops::def::{Facts, Forms, OpDef};
use keyway::ops::sample::{Role, Sample, SampleArg};
use keyway::ops::{norm, pointwise, reduce};

/// The family.
pub const FAMILY: Family = Family {
    name: "sizes",
    about: "the sizes at which kernels split, block and vectorise; large broadcasts; large images in both formats",
    cases,
    run,
};

/// How many times the usual tolerance results of so many terms may be off: it is wrong pieces that are looked for.
const LOOSE: f64 = 100.0;

/// The variants of samples whose tensors are all alike, with the sizes that they are given.
const ALIKE: [(&str, &[usize]); 6] = [
    ("vector", &[140_003]),
    ("few_rows", &[2, 70_001]),
    ("many_rows", &[5_003, 7]),
    ("images", &[2, 67, 9, 17]),
    ("planes", &[3, 130, 5]),
    ("volumes", &[2, 35, 4, 5, 3]),
];
/// Those in which images lie in channels_last, and in which one tensor is broadcast: the name of a variant, then this.
const LAST: &str = "-channels_last";
const IN_PLACE: &str = "-in_place";
/// The sizes of the second and of the first tensor, where the other is a large matrix.
const BROADCAST: [(&str, usize, &[usize]); 4] =
    [("row", 1, &[1, 101]), ("column", 1, &[100, 1]), ("left_row", 0, &[101]), ("left_element", 0, &[1, 1])];
const MATRIX: [usize; 2] = [100, 101];
/// A call of the op's own; its number follows.
const CALL: &str = "call";

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let host = op.def.rule.is_view() || matches!(op.def.rule, Rule::Host(_));
        let Some(dtype) = scope.served(op.def) else { continue };
        if host || op.def.is(Facts::MAY_OVERFLOW) || oracle::find(op.def.name()).is_none() {
            continue;
        }
        let mut push = |nth, variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        if let Some(nth) = alike(op) {
            let in_place = op.def.forms == Forms::InPlace;
            for (name, sizes) in ALIKE {
                push(nth, name.to_string());
                let last = Arrangement::ChannelsLast.suits(sizes);
                if last {
                    push(nth, format!("{name}{LAST}"));
                }
                if last && in_place {
                    push(nth, format!("{name}{LAST}{IN_PLACE}"));
                }
            }
            if is_in(op.def, &[pointwise::ALL]) && tensors(&op.samples[nth]).count() == 2 {
                BROADCAST.iter().for_each(|(name, ..)| push(nth, (*name).to_string()));
            }
        }
        for (nth, sample) in calls::of(op.def.name()).iter().enumerate() {
            push(0, format!("{CALL}{nth}"));
            if tensors(sample).any(|t| t.sizes.len() == 4) {
                push(0, format!("{CALL}{nth}{LAST}"));
            }
        }
    }
}

/// The first sample whose tensors can all be given any sizes.
fn alike(op: &Op) -> Option<usize> {
    let each = is_in(op.def, &[pointwise::ALL, reduce::ALL, norm::ALL]);
    let full = |s: &Sample| tensors(s).all(|t| !t.sizes.contains(&0));
    let suits = |s: &Sample| full(s) && with_sizes(s, &MATRIX).is_some();
    each.then(|| op.samples.iter().position(suits)).flatten()
}

fn run(context: &Context<'_>) -> Steps {
    let def = context.def()?;
    let given = context.sample()?;
    let (variant, in_place) = match context.case.variant.strip_suffix(IN_PLACE) {
        Some(rest) => (rest, true),
        None => (context.case.variant.as_str(), false),
    };
    let (name, arrangement) = match variant.strip_suffix(LAST) {
        Some(rest) => (rest, Arrangement::ChannelsLast),
        None => (variant, Arrangement::Contiguous),
    };
    let none = || Stop::Skipped(format!("there is no variant `{variant}`"));
    let sample = if let Some(nth) = name.strip_prefix(CALL) {
        let nth: usize = nth.parse().map_err(|_| none())?;
        calls::of(def.name()).into_iter().nth(nth).ok_or_else(none)?
    } else if let Some((_, place, sizes)) = BROADCAST.iter().find(|(known, ..)| *known == name) {
        broadcast(&given, *place, sizes).ok_or_else(none)?
    } else {
        let (_, sizes) = ALIKE.iter().find(|(known, _)| *known == name).ok_or_else(none)?;
        with_sizes(&given, sizes).ok_or_else(none)?
    };
    let mut inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    if is_in(def, &[reduce::ALL]) {
        // Sums of so many numbers that differ in sign are near 0, where every order of adding them differs.
        inputs::map_arrays(&mut inputs, |array| {
            array.values.iter_mut().for_each(|value| {
                if let Number::Float(v) = value {
                    *v = v.abs();
                }
            });
        });
    }
    let prepared =
        Prepared::bare_in(&inputs, context.target.device, |sizes| arrangement.where_it_suits(sizes))?;
    let out = if in_place { Out::InPlace } else { Out::New };
    let result = prepared.call(def, out);
    if matches!(&result, Err(error) if call::is_of_arguments(error)) && !name.starts_with(CALL) {
        return Err(Stop::Skipped("the op takes the sample's arguments with no such sizes".to_string()));
    }
    let expected = context.expected(&inputs)?;
    let same = |e: &Array, t: &Tensor| e.dtype == t.dtype() && e.sizes == t.sizes();
    if in_place && !prepared.tensors().first().zip(expected.first()).is_some_and(|(t, e)| same(e, t)) {
        return Err(Stop::Skipped("the result does not fit into the first argument".to_string()));
    }
    let mut got = result.map_err(|e| context.refused(e))?;
    if in_place {
        got = prepared.tensors().into_iter().take(1).collect();
    }
    Ok(compare::outputs(&expected, &got, allowed(def, &sample))?)
}

fn allowed(def: &OpDef, sample: &Sample) -> f64 {
    let each = is_in(def, &[pointwise::ALL]);
    factor(def, sample) * if each { 1.0 } else { LOOSE }
}

/// The sample with large matrices, of which tensor `place` has other sizes.
fn broadcast(sample: &Sample, place: usize, sizes: &[usize]) -> Option<Sample> {
    let mut sample = with_sizes(sample, &MATRIX)?;
    let tensors = sample.args.iter_mut().filter_map(|arg| match arg {
        SampleArg::Tensor(t) if t.role == Role::Tested => Some(t),
        _ => None,
    });
    tensors.into_iter().nth(place)?.sizes = sizes.to_vec();
    Some(sample)
}

//! Calls with the sizes at which kernels split their work, use several blocks or have a tail: long rows, thousands of rows,
//! images of many channels and pixels, contiguous and channels_last, also in place. Samples are small, and a kernel that
//! drops the 17th channel may be correct on all of them.

pub(super) mod calls;

use super::{Context, Family, Op, Scope, composites, factor, is_computed, is_in, tensors, with_sizes};
use crate::array::{Array, Number};
use crate::call::{self, Prepared};
use crate::case::Case;
use crate::growth::{self, Named};
use crate::memory::Arrangement;
use crate::outcome::{Steps, Stop};
use crate::target::Service;
use crate::{compare, inputs, oracle};
use keyway::dispatcher::op::Out;
use keyway::ops::def::{Forms, OpFlags};
use keyway::ops::sample::{Role, Sample, SampleArg};
use keyway::ops::{attention, conv, linalg, loss, norm, pointwise, reduce};
use keyway::{DType, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "sizes",
    about: "the sizes at which kernels split, block and vectorise, up to a million terms; large broadcasts; large images in both formats; composite layouts",
    cases,
    run,
};

/// The factor of the usual tolerance for results with that many addends: the test detects missing or duplicated addends.
const LOOSE: f64 = 100.0;
/// The same for a million addends, which may be accumulated in f32 sequentially.
const LOOSE_MILLION: f64 = 1000.0;
/// The same for f16 and bf16, where the final rounding dominates.
const LOOSE_HALF: f64 = 4.0;

/// The variants of samples whose tensors have one shape, with the new sizes.
const ALIKE: [(&str, &[usize]); 6] = [
    ("vector", &[140_003]),
    ("few_rows", &[2, 70_001]),
    ("many_rows", &[5_003, 7]),
    ("images", &[2, 67, 9, 17]),
    ("planes", &[3, 130, 5]),
    ("volumes", &[2, 35, 4, 5, 3]),
];
/// Variants in dtypes of other kinds.
const OTHERS: [(&str, &[usize]); 2] = [("long_rows", &[2, 17_003]), ("images", &[2, 67, 9, 17])];
/// The number of elements of the variants of full reductions and losses: sums that are split into several stages, and
/// counts that f16 does not represent.
const MILLION: (&str, &[usize]) = ("million", &[1_048_613]);
const TARGETS: (&str, usize) = ("targets", 70_003);
/// Suffixes of variants with images in channels_last, and with one broadcast tensor.
const LAST: &str = "-channels_last";
const IN_PLACE: &str = "-in_place";
/// The variant that runs the op's decomposition, although there is a kernel.
const PARTS: &str = "-parts";
/// Products with column-major matrices.
const TRANSPOSED: &str = "-transposed";
/// The sizes of the second and of the first tensor, if the other is a large matrix.
const BROADCAST: [(&str, usize, &[usize]); 4] =
    [("row", 1, &[1, 101]), ("column", 1, &[100, 1]), ("left_row", 0, &[101]), ("left_element", 0, &[1, 1])];
const MATRIX: [usize; 2] = [100, 101];
/// A call defined for the op, by index. Calls with at least this many elements are made in one dtype.
const CALL: &str = "call";
const MANY: usize = 400_000;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let Some(dtype) = scope.served(op.def) else { continue };
        if !is_computed(op.def) || op.def.is(OpFlags::MAY_OVERFLOW) {
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
        // Each dtype has its own loops, with different tails and splits.
        for (other, nth) in scope.others(op.def).into_iter().zip(alike(op).into_iter().cycle()) {
            OTHERS.iter().for_each(|(name, _)| cases.push(Case::of(FAMILY.name, op.def, other, nth, *name)));
        }
        let mut push = |nth, variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        if let Some(nth) = alike(op).filter(|&nth| makes_one(op, &op.samples[nth], dtype)) {
            push(nth, MILLION.0.to_string());
        }
        if is_in(op.def, &[loss::ALL]) {
            targets_cases(scope, op, dtype, cases);
        }
        for (nth, sample) in calls::of(op.def.name()).iter().enumerate() {
            let mut push = |nth, variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
            push(0, format!("{CALL}{nth}"));
            if tensors(sample).any(|t| t.sizes.len() == 4) {
                push(0, format!("{CALL}{nth}{LAST}"));
            }
            if is_in(op.def, &[linalg::ALL]) && tensors(sample).any(|t| t.sizes.len() > 1) {
                push(0, format!("{CALL}{nth}{TRANSPOSED}"));
            }
            // Tensor cores have separate kernels for f16 and bf16.
            let halves = [DType::F16, DType::BF16];
            let by_tiles = halves.into_iter().filter(|_| is_in(op.def, &[attention::ALL, conv::ALL]));
            // Attention has the same code path in each of the wide dtypes, and the oracle is slow for it.
            let few = tensors(sample).all(|t| t.sizes.iter().product::<usize>() < MANY);
            let once = few && (nth == 0 || !is_in(op.def, &[attention::ALL]));
            let wide = scope.others(op.def).into_iter().filter(|other| once && !halves.contains(other));
            let more = wide.chain(by_tiles).filter(|&other| other != dtype);
            more.for_each(|other| {
                cases.push(Case::of(FAMILY.name, op.def, other, 0, format!("{CALL}{nth}")))
            });
        }
    }
    composites::cases(scope, FAMILY.name, composites::Dtypes::Usual, cases);
}

/// Whether the op reduces all elements to one.
fn makes_one(op: &Op, sample: &Sample, dtype: DType) -> bool {
    let made = || {
        let few = with_sizes(sample, &[3])?;
        oracle::find(op.def.name())?(&inputs::of_sample(&few.args, dtype, 0)).ok()
    };
    is_in(op.def, &[reduce::ALL]) && matches!(made().as_deref(), Some([one]) if one.numel() == 1)
}

/// Mean losses of many targets, each with other arguments, by kernel and by decomposition, also in f16 and bf16.
fn targets_cases(scope: &Scope<'_>, op: &Op, dtype: DType, cases: &mut Vec<Case>) {
    let Ok(entry) = op.def.entry() else { return };
    let mut seen = Vec::new();
    for (nth, sample) in op.samples.iter().enumerate().filter(|(_, s)| many_targets(s).is_some()) {
        let others = sample.args.iter().filter(|arg| !matches!(arg, SampleArg::Tensor(_)));
        let others: Vec<&SampleArg> = others.collect();
        if seen.contains(&others) {
            continue;
        }
        seen.push(others);
        let halves = [DType::F16, DType::BF16].into_iter().filter(|&half| half != dtype);
        for dtype in [dtype].into_iter().chain(halves) {
            cases.push(Case::of(FAMILY.name, op.def, dtype, nth, TARGETS.0));
            let fused = scope.target.service(entry, dtype) == Service::Kernel;
            if fused && op.def.decomposition.is_some() {
                cases.push(Case::of(FAMILY.name, op.def, dtype, nth, format!("{}{PARTS}", TARGETS.0)));
            }
        }
    }
}

/// The sample of a mean loss with many targets, or many elements if each element is a target.
fn many_targets(sample: &Sample) -> Option<Sample> {
    if !sample.args.contains(&SampleArg::Str("mean")) {
        return None;
    }
    let first = tensors(sample).next()?;
    // Classes and their targets: `[targets, classes]` and `[targets]`.
    let classes = || {
        let fits = first.sizes.len() == 2 && tensors(sample).nth(1)?.sizes == first.sizes[..1];
        fits.then(|| growth::resized(sample, &[(first.sizes[0], TARGETS.1)], Named::Limits))
    };
    with_sizes(sample, &[TARGETS.1]).or_else(classes)
}

/// The index of the first sample whose tensors can all be resized.
fn alike(op: &Op) -> Option<usize> {
    let each = is_in(op.def, &[pointwise::ALL, reduce::ALL, norm::ALL]);
    let full = |s: &Sample| tensors(s).all(|t| !t.sizes.contains(&0));
    let suits = |s: &Sample| full(s) && with_sizes(s, &MATRIX).is_some();
    each.then(|| op.samples.iter().position(suits)).flatten()
}

fn run(context: &Context<'_>) -> Steps {
    if composites::is_about(context.case) {
        return composites::sizes::run(context);
    }
    let def = context.def()?;
    let given = context.sample()?;
    let (variant, by_parts) = match context.case.variant.strip_suffix(PARTS) {
        Some(rest) => (rest, true),
        None => (context.case.variant.as_str(), false),
    };
    let (variant, in_place) = match variant.strip_suffix(IN_PLACE) {
        Some(rest) => (rest, true),
        None => (variant, false),
    };
    let (name, arrangement) = match variant.strip_suffix(LAST) {
        Some(rest) => (rest, Arrangement::ChannelsLast),
        None => match variant.strip_suffix(TRANSPOSED) {
            Some(rest) => (rest, Arrangement::Transposed),
            None => (variant, Arrangement::Contiguous),
        },
    };
    let none = || Stop::Skipped(format!("there is no variant `{variant}`"));
    let sample = if let Some(nth) = name.strip_prefix(CALL) {
        let nth: usize = nth.parse().map_err(|_| none())?;
        calls::of(def.name()).into_iter().nth(nth).ok_or_else(none)?
    } else if let Some((_, argument, sizes)) = BROADCAST.iter().find(|(known, ..)| *known == name) {
        broadcast(&given, *argument, sizes).ok_or_else(none)?
    } else if name == TARGETS.0 {
        many_targets(&given).ok_or_else(none)?
    } else {
        let (_, sizes) = ALIKE
            .iter()
            .chain(&OTHERS)
            .chain([&MILLION])
            .find(|(known, _)| *known == name)
            .ok_or_else(none)?;
        with_sizes(&given, sizes).ok_or_else(none)?
    };
    let mut inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    if is_in(def, &[reduce::ALL]) {
        // Sums of that many values of both signs are near 0, where the order of addition matters.
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
    let result = if by_parts { prepared.call_parts(def.entry()?) } else { prepared.call(def, out) };
    if matches!(&result, Err(error) if call::is_of_arguments(error)) && !name.starts_with(CALL) {
        return Err(Stop::Skipped("the op takes the sample's arguments with no such sizes".to_string()));
    }
    let expected = context.expected(&inputs)?;
    let same = |e: &Array, t: &Tensor| e.dtype == t.dtype() && e.sizes == t.shape();
    if in_place && !prepared.tensors().first().zip(expected.first()).is_some_and(|(t, e)| same(e, t)) {
        return Err(Stop::Skipped("the result does not fit into the first argument".to_string()));
    }
    let mut got = result.map_err(|e| context.refused(e))?;
    if in_place {
        got = prepared.tensors().into_iter().take(1).collect();
    }
    let loose = match context.dtype() {
        _ if is_in(def, &[pointwise::ALL]) => 1.0,
        DType::F16 | DType::BF16 => LOOSE_HALF,
        _ if tensors(&sample).any(|t| t.sizes == MILLION.1) => LOOSE_MILLION,
        _ => LOOSE,
    };
    let rounds = is_in(def, &[attention::ALL]) && matches!(context.dtype(), DType::F16 | DType::BF16);
    let compared = if rounds { compare::of_rounded } else { compare::pieces };
    Ok(compared(&expected, &got, factor(def, &sample), loose)?)
}

/// The sample with large matrices, in which tensor `argument` has other sizes.
fn broadcast(sample: &Sample, argument: usize, sizes: &[usize]) -> Option<Sample> {
    let mut sample = with_sizes(sample, &MATRIX)?;
    let tensors = sample.args.iter_mut().filter_map(|arg| match arg {
        SampleArg::Tensor(t) if t.role == Role::Tested => Some(t),
        _ => None,
    });
    tensors.into_iter().nth(argument)?.sizes = sizes.to_vec();
    Some(sample)
}

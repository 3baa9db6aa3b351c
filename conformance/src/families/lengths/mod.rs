//! One-dimensional contiguous calls of many lengths: every length next to a power of two, others that a seed draws for each
//! run, and more than four and twenty million elements.
//!
//! A kernel selects vector widths, tails, thread counts and non-temporal stores by the number of elements, so it may be wrong for
//! one number only, or above a number that no other family reaches.

mod elements;
mod full;
pub(super) mod numbers;
mod vectors;

use super::drawn::source::Source;
use super::{Context, Family, Op, Scope, factor, is_computed, is_in};
use crate::call;
use crate::case::Case;
use crate::outcome::{Steps, Stop};
use crate::target::Service;
use crate::{compare, inputs, oracle};
use keyway::DType;
use keyway::dispatcher::op::Out;
use keyway::ops::def::OpFlags;
use keyway::ops::sample::Sample;
use keyway::ops::{loss, memory, norm, pointwise, reduce};
use vectors::{at, positive, vectors};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "lengths",
    about: "vectors of every length next to a power of two, of lengths that a seed draws, of more than four and of more than twenty million elements",
    cases,
    run,
};

/// The variant with all lengths of the list and of the seed.
const VECTORS: &str = "vectors";
/// The variant with [`MILLIONS`] elements, or half as many of 8 bytes.
const MANY: &str = "millions";
/// More than 20 million elements and than 2^24, the largest integer below which f32 represents all; no multiple of a block.
const MILLIONS: usize = (5 << 22) + 12_289;
/// The longest of [`VECTORS`]: more than 2^22, and no multiple of a block.
const LONGEST: usize = (1 << 22) + 12_289;
/// The length from which only [`elements`] and [`full`] compute expected values.
const LONG: usize = 1 << 22;
/// The exponents of the powers of two of element-wise ops, of other ops, and of those in the usual dtype.
const POWERS: std::ops::RangeInclusive<u32> = 1..=16;
const POWERS_OF_OTHERS: std::ops::RangeInclusive<u32> = 1..=13;
const POWERS_OF_USUAL: std::ops::RangeInclusive<u32> = 17..=21;
/// The number of lengths that the seed draws, and the largest exponent of the power of two above them; also for other ops.
const DRAWN: (usize, usize) = (24, 18);
const DRAWN_OF_OTHERS: (usize, usize) = (8, 14);
/// The factor of the usual tolerance for results with many addends; and for f16 and bf16.
const LOOSE: f64 = 100.0;
const LOOSE_HALF: f64 = 4.0;

/// Whether the op is called on vectors.
fn is_of_vectors(op: &Op) -> bool {
    is_computed(op.def)
        && !op.def.is(OpFlags::MAY_OVERFLOW)
        && is_in(op.def, &[pointwise::ALL, memory::ALL, reduce::ALL, norm::ALL, loss::ALL])
}

/// The first sample whose tensors can all be vectors of one length.
fn suiting(op: &Op, dtype: DType) -> Option<usize> {
    let oracle = oracle::find(op.def.name())?;
    let answers = |sample: &Sample| oracle(&inputs::of_sample(&sample.args, dtype, 0)).is_ok();
    op.samples.iter().position(|sample| vectors(sample, 3).is_ok_and(|sample| answers(&sample)))
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| is_of_vectors(op)) {
        let (Some(served), Ok(entry)) = (scope.served(op.def), op.def.entry()) else { continue };
        let Some(nth) = suiting(op, served) else { continue };
        let kernel = |dtype: &DType| {
            op.def.dtypes.has(*dtype) && scope.target.service(entry, *dtype) == Service::Kernel
        };
        let others = || DType::REAL.into_iter().filter(|dtype| *dtype != served && kernel(dtype));
        let each = is_in(op.def, &[pointwise::ALL]);
        let mut push = |dtype, variant: &str| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        push(served, VECTORS);
        match (scope.quick, each) {
            (true, _) => others().filter(|&d| [DType::I64, DType::F64].contains(&d)).take(1).collect(),
            (false, true) => others().collect::<Vec<_>>(),
            (false, false) => scope.others(op.def),
        }
        .into_iter()
        .for_each(|dtype| push(dtype, VECTORS));
        let elementwise = each || is_in(op.def, &[memory::ALL]);
        if scope.quick || !(elementwise || full::has_law(op.def, &op.samples[nth], served)) {
            continue;
        }
        if kernel(&served) {
            push(served, MANY);
        }
        let more = if scope.draws.thorough { others().collect() } else { scope.others(op.def) };
        more.into_iter().for_each(|dtype| push(dtype, MANY));
    }
    cases.extend(scope.draws.ids.iter().filter_map(|id| single(scope, id)));
}

/// The case of an id with one length.
fn single(scope: &Scope<'_>, id: &str) -> Option<Case> {
    let parts: Vec<&str> = id.split('/').collect();
    let &[family, op, dtype, nth, variant] = &parts[..] else { return None };
    let op = scope.ops.iter().find(|known| known.def.name() == op && family == FAMILY.name)?;
    let dtype = DType::REAL.into_iter().find(|d| d.name() == dtype && op.def.dtypes.has(*d))?;
    length(variant).map(|_| Case::of(FAMILY.name, op.def, dtype, nth.parse().unwrap_or(0), variant))
}

fn length(variant: &str) -> Option<usize> {
    variant.strip_prefix(vectors::AT)?.parse().ok().filter(|length| (1..1 << 31).contains(length))
}

/// The lengths of a case.
fn lengths(context: &Context<'_>, each: bool) -> Steps<Vec<usize>> {
    let variant = context.case.variant.as_str();
    if let Some(length) = length(variant) {
        return Ok(vec![length]);
    }
    if variant == MANY {
        // Half as many of 8 bytes each, so that three tensors stay below the limit on a worker's memory.
        return Ok(vec![if context.dtype().size() > 4 { MILLIONS / 2 } else { MILLIONS }]);
    }
    let (powers, (count, most)) = if each { (POWERS, DRAWN) } else { (POWERS_OF_OTHERS, DRAWN_OF_OTHERS) };
    let seeds = [context.draws, u64::from(context.dtype().code())];
    let mut source = Source::named(context.case.name(), &seeds);
    let mut all: Vec<usize> = powers.flat_map(numbers::near_power).collect();
    all.extend((0..count).map(|_| numbers::draw(most, &mut source)));
    if each {
        all.push(LONGEST);
    }
    if each && super::preferred(context.def()?) == context.case.dtype {
        all.extend(POWERS_OF_USUAL.map(|exponent| numbers::prime(1 << exponent, true)));
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn run(context: &Context<'_>) -> Steps {
    let (def, sample) = (context.def()?, context.sample()?);
    let each = is_in(def, &[pointwise::ALL, memory::ALL]);
    let lengths = lengths(context, each)?;
    if each {
        return elements::run(context, &sample, &lengths);
    }
    lengths.into_iter().try_for_each(|length| {
        let judged =
            if length < LONG { whole(context, &sample, length) } else { full::run(context, &sample, length) };
        judged.map_err(|stop| at(context, length, stop))
    })
}

/// A call of an op that is not element-wise, all of whose elements the oracle reads.
fn whole(context: &Context<'_>, sample: &Sample, length: usize) -> Steps {
    let def = context.def()?;
    let sample = vectors(sample, length)?;
    let mut inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    if is_in(def, &[reduce::ALL]) {
        // Sums of values of both signs are near 0, where the order of addition matters.
        inputs::map_arrays(&mut inputs, |array| {
            array.values.iter_mut().for_each(|value| *value = positive(*value))
        });
    }
    let prepared = context.place_bare(&inputs)?;
    let made = prepared.call(def, Out::New);
    if matches!(&made, Err(error) if call::is_of_arguments(error)) {
        return Err(Stop::Skipped("the op takes the sample's arguments with no such sizes".to_string()));
    }
    let expected = context.expected(&inputs)?;
    let got = made.map_err(|error| context.refused(error))?;
    Ok(compare::pieces(&expected, &got, factor(def, &sample), loose(context.dtype()))?)
}

fn loose(dtype: DType) -> f64 {
    if matches!(dtype, DType::F16 | DType::BF16) { LOOSE_HALF } else { LOOSE }
}

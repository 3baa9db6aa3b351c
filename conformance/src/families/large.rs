//! Results against the oracle on tensors that are large enough for kernels to split their work; reductions of many elements
//! in half precision, where accumulation in the dtype itself loses addends; and the samples with each of their sizes
//! changed, one at a time and all together, since samples are small: a kernel that processes only the first 64 elements of
//! a row is correct on all of them.

use super::{
    Context, Family, Op, Scope, composites, corners, factor, is_computed, is_in, names_sizes, tensors,
};
use crate::array::Array;
use crate::call::{self, Prepared};
use crate::case::Case;
use crate::growth::{self, Named, enlarged};
use crate::memory::Arrangement;
use crate::oracle::Value;
use crate::outcome::{Steps, Stop};
use crate::{compare, inputs};
use keyway::dispatcher::op::Out;
use keyway::ops::def::{Forms, OpFlags};
use keyway::ops::sample::Sample;
use keyway::ops::{attention, conv, linalg, norm, pointwise, reduce};
use keyway::{DType, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "large",
    about: "tensors large enough that work is split, in place too; every size changed, alone and with the others; nine dimensions; long sums; composite layouts",
    cases,
    run,
};

/// The variants.
const SPLIT: &str = "split";
/// The variant with split work that writes into the first argument.
const SPLIT_IN_PLACE: &str = "split_in_place";
const HALF: &str = "half";
/// Long sums, not of halves.
const LONG_SUMS: &str = "long";
/// The variant with all sizes changed.
const TOGETHER: &str = "together";
/// More dimensions than kernels may have thought of.
const DEEP: &str = "deep";
const DEEP_SIZES: [usize; 9] = [2, 1, 2, 3, 1, 2, 2, 1, 3];
/// The variant with one size changed, whose number follows.
const ONE: &str = "size";
/// The number of elements of the largest tensor, enough that work is split.
const MANY: f64 = 40_000.0;
/// The same for f16 and bf16: products have addends of several tiles.
const MANY_HALVES: f64 = 100_000.0;
/// The factor of the usual tolerance for sums of that many elements: the test detects missing or duplicated addends.
const LOOSE: f64 = 100.0;
/// The same for f16 and bf16, where the final rounding dominates, not the number of addends.
const LOOSE_HALF: f64 = 4.0;
/// The number of elements of a reduction in half precision: bf16 represents integers to 256, f16 to 2,048.
const LONG: f64 = 5000.0;
/// The lengths that replace one size: short and odd ones, and one above each of the block lengths of kernels.
const LENGTHS: [usize; 6] = [1, 3, 5, 17, 67, 130];
/// The same for ops that process a length in longer blocks, with the maximum number of steps of a call.
const LONG_LENGTHS: [(usize, usize); 2] = [(1030, 12_000), (4100, 25_000)];
/// The length from which sums have the tolerance of long ones.
const LONG_FROM: usize = 64;
/// The maximum number of steps of a call with one size changed, and with all changed.
const STEPS: usize = 4_000;
const STEPS_TOGETHER: usize = 9_000;

fn numel(sample: &Sample) -> usize {
    tensors(sample).map(|t| t.sizes.iter().product()).max().unwrap_or(0)
}

/// The sample of one tensor with the fewest dimensions, at least one: the longest sums for its number of elements.
fn longest(op: &Op) -> Option<usize> {
    let ndim = |s: &Sample| tensors(s).next().map_or(0, |t| t.sizes.len());
    let suits = |s: &Sample| tensors(s).count() == 1 && ndim(s) > 0 && numel(s) > 1;
    (0..op.samples.len()).filter(|&nth| suits(&op.samples[nth])).min_by_key(|&nth| ndim(&op.samples[nth]))
}

/// The 16-bit dtypes that the op accepts.
fn halves(op: &Op) -> impl Iterator<Item = DType> {
    [DType::F16, DType::BF16].into_iter().filter(|&dtype| op.def.dtypes.has(dtype))
}

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops.iter().filter(|op| !op.def.is(OpFlags::MAY_OVERFLOW)) {
        let mut push = |dtype, nth, variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        let largest = (0..op.samples.len()).max_by_key(|&nth| numel(&op.samples[nth]));
        if let (Some(dtype), Some(nth)) =
            (scope.served(op.def), largest.filter(|&nth| numel(&op.samples[nth]) > 1))
        {
            push(dtype, nth, SPLIT);
            if op.def.forms == Forms::InPlace {
                push(dtype, nth, SPLIT_IN_PLACE);
            }
            // A kernel that is written for each dtype may be wrong for one.
            scope.others(op.def).into_iter().for_each(|other| push(other, nth, SPLIT));
            // Products in half precision have kernels of their own, such as those for tensor cores, that process whole tiles.
            if is_in(op.def, &[linalg::ALL, conv::ALL, attention::ALL]) {
                let done = scope.others(op.def);
                let others = halves(op).filter(|half| *half != dtype && !done.contains(half));
                others.for_each(|half| push(half, nth, SPLIT));
            }
        }
        if is_in(op.def, &[reduce::ALL, norm::ALL])
            && let Some(nth) = longest(op)
        {
            halves(op).for_each(|dtype| push(dtype, nth, HALF));
            let wide = scope.others(op.def).into_iter().filter(|d| !halves(op).any(|half| half == *d));
            scope.served(op.def).into_iter().chain(wide).for_each(|dtype| push(dtype, nth, LONG_SUMS));
        }
        resized_cases(scope, op, cases);
    }
    composites::cases(scope, FAMILY.name, composites::Dtypes::Each, cases);
}

/// The samples that differ in more than their shapes with all their sizes changed, and with each changed separately. For
/// element-wise ops one sample suffices, with all sizes changed.
fn resized_cases(scope: &Scope<'_>, op: &Op, cases: &mut Vec<Case>) {
    if !is_computed(op.def) {
        return;
    }
    let Some(dtype) = scope.served(op.def) else { return };
    let each = is_in(op.def, &[pointwise::ALL]);
    let alike = |sample: &Sample| super::with_sizes(sample, &DEEP_SIZES).is_some();
    if let Some(nth) = op.samples.iter().position(alike).filter(|_| each) {
        cases.push(Case::of(FAMILY.name, op.def, dtype, nth, DEEP));
    }
    let kinds: Vec<usize> = match each {
        true => op.typical().into_iter().collect(),
        false => corners::chosen(op),
    };
    // A sample with an empty tensor remains empty at any size.
    let whole = |&nth: &usize| tensors(&op.samples[nth]).all(|t| !t.sizes.contains(&0));
    let kinds: Vec<usize> = kinds.into_iter().filter(whole).collect();
    for (place, &nth) in kinds.iter().enumerate() {
        if !scope.wants(place, kinds.len()) {
            continue;
        }
        let sample = &op.samples[nth];
        let mut push = |variant| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        let sizes = growth::sizes(sample);
        if !sizes.is_empty() {
            push(TOGETHER.to_string());
        }
        if !each {
            sizes.iter().for_each(|size| push(format!("{ONE}-{size}")));
        }
        if place == 0 && !sizes.is_empty() {
            let others = scope.others(op.def).into_iter();
            others.for_each(|other| cases.push(Case::of(FAMILY.name, op.def, other, nth, TOGETHER)));
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    if composites::is_about(context.case) {
        return composites::large::run(context);
    }
    let def = context.def()?;
    let sample = context.sample()?;
    let variant = context.case.variant.as_str();
    if let Some(size) = variant.strip_prefix(ONE).and_then(|rest| rest.strip_prefix('-')) {
        let size = size.parse().map_err(|_| Stop::Skipped(format!("`{size}` is no size")))?;
        return one(context, &sample, size);
    }
    if variant == TOGETHER {
        return together(context, &sample);
    }
    if variant == DEEP {
        return deep(context, &sample);
    }
    if variant == SPLIT_IN_PLACE {
        return in_place(context, &sample);
    }
    let (elements, loose) = match variant {
        HALF => (LONG, 1.0),
        SPLIT if matches!(context.dtype(), DType::F16 | DType::BF16) => {
            let tiles = is_in(def, &[linalg::ALL, conv::ALL, attention::ALL]);
            (if tiles { MANY_HALVES } else { MANY }, LOOSE_HALF)
        }
        LONG_SUMS => (LONG, LOOSE),
        _ => (MANY, LOOSE),
    };
    let (expected, result) = match call(context, &enlarged(&sample, elements)) {
        // An argument that specifies sizes, or sorted values, may be invalid with other sizes.
        Err(Stop::Skipped(_)) => call(context, &sample)?,
        called => called?,
    };
    let got = result.map_err(|e| context.refused(e))?;
    Ok(compare::pieces(&expected, &got, factor(def, &sample), loose)?)
}

/// Checks nine dimensions, contiguous and in another order, so that few of them can be merged.
fn deep(context: &Context<'_>, sample: &Sample) -> Steps {
    let def = context.def()?;
    let Some(sample) = super::with_sizes(sample, &DEEP_SIZES) else { return Ok(()) };
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let expected = context.expected(&inputs)?;
    for arrangement in [Arrangement::Contiguous, Arrangement::Transposed, Arrangement::Stepped] {
        let prepared = Prepared::new(&inputs, context.target.device, |_| arrangement)?;
        compare::outputs(&expected, &context.call(&prepared)?, factor(def, &sample))?;
    }
    Ok(())
}

/// Checks many elements, written into the first argument if the result has its shape.
fn in_place(context: &Context<'_>, sample: &Sample) -> Steps {
    let def = context.def()?;
    let enlarged = enlarged(sample, MANY);
    let inputs = inputs::of_sample(&enlarged.args, context.dtype(), context.sample_seed());
    let (expected, Value::Array(target)) = (context.expected(&inputs)?, inputs.get(0)) else {
        return Err(Stop::Skipped("the sample has no tensor to write to".to_string()));
    };
    if !matches!(&expected[..], [one] if (one.dtype, &one.sizes) == (target.dtype, &target.sizes)) {
        return Err(Stop::Skipped("the result does not fit into the first argument".to_string()));
    }
    let prepared = context.place(&inputs)?;
    prepared.call(def, Out::InPlace).map_err(|e| context.refused(e))?;
    let got = prepared.tensors().into_iter().next();
    Ok(compare::pieces(&expected, got.as_slice(), factor(def, sample), LOOSE)?)
}

/// Checks one size of the sample at each length.
fn one(context: &Context<'_>, sample: &Sample, size: usize) -> Steps {
    let def = context.def()?;
    let long = match is_in(def, &[attention::ALL]) {
        // Every element is combined with every other.
        true => &[][..],
        // The number of addends of each element is the length of a size.
        false if is_in(def, &[linalg::ALL]) => &[(LONG_LENGTHS[0].0, STEPS)],
        false => &LONG_LENGTHS,
    };
    let lengths = LENGTHS.iter().map(|&length| (length, STEPS)).chain(long.iter().copied());
    let mut taken = 0;
    for (length, limit) in lengths.filter(|(length, _)| *length != size) {
        // Groups and heads must divide evenly: a size may have to be a multiple of the old one.
        for length in [length, length.next_multiple_of(size)] {
            let changes = [(size, length)];
            if growth::steps(&growth::resized(sample, &changes, Named::Nothing)) > limit {
                break;
            }
            if changed(context, sample, &changes, &[context.images()], limit)? {
                taken += 1;
                break;
            }
        }
    }
    if taken == 0 { Err(no_other_sizes()) } else { Ok(()) }
}

/// Checks all sizes of the sample changed together, on contiguous and on transposed tensors.
fn together(context: &Context<'_>, sample: &Sample) -> Steps {
    let turns = growth::sizes(sample).len();
    // Another size is the longest in the next sample; if the op refuses that, the others are tried.
    for turn in (0..turns).map(|turn| turn + context.case.sample) {
        let Some(changes) = growth::together(sample, turn, STEPS_TOGETHER) else { continue };
        let multiples: Vec<(usize, usize)> =
            changes.iter().map(|&(from, to)| (from, to.next_multiple_of(from))).collect();
        for changes in [changes, multiples] {
            let both = [context.images(), Arrangement::Transposed];
            if growth::steps(&growth::resized(sample, &changes, Named::Nothing)) <= 2 * STEPS_TOGETHER
                && changed(context, sample, &changes, &both, 2 * STEPS_TOGETHER)?
            {
                return Ok(());
            }
        }
    }
    Err(no_other_sizes())
}

fn no_other_sizes() -> Stop {
    Stop::Skipped("the op takes the sample's arguments with no other sizes".to_string())
}

/// Calls with changed sizes and checks the results; returns whether the op accepts the sizes and its results have at most
/// `limit` elements.
fn changed(
    context: &Context<'_>,
    sample: &Sample,
    changes: &[(usize, usize)],
    arrangements: &[Arrangement],
    limit: usize,
) -> Steps<bool> {
    let def = context.def()?;
    let oracle = context.oracle()?;
    let mut tried = Vec::new();
    for named in [Named::Limits, Named::Nothing, Named::Lists] {
        let resized = growth::resized(sample, changes, named);
        if tried.contains(&resized) {
            continue;
        }
        let inputs = inputs::of_sample(&resized.args, context.dtype(), context.sample_seed());
        let mut expected = None;
        for &arrangement in arrangements {
            let prepared =
                Prepared::new(&inputs, context.target.device, |sizes| arrangement.where_it_suits(sizes))?;
            let result = prepared.call(def, Out::New);
            match &result {
                Err(error) if call::is_of_arguments(error) => break,
                // One size may be the rows of one tensor and the columns of another.
                Ok(made) if made.iter().map(Tensor::elem_count).sum::<usize>() > limit => return Ok(false),
                _ => {}
            }
            if expected.is_none() {
                expected = oracle(&inputs).ok();
            }
            // For example values that must be sorted, and no longer are.
            let Some(expected) = &expected else { break };
            let got = result.map_err(|e| context.refused(e))?;
            let longest = growth::sizes(&resized).into_iter().max().unwrap_or(0);
            // Convolutions sum over several sizes.
            let long = longest >= LONG_FROM || is_in(def, &[conv::ALL]);
            let loose = if long { LOOSE } else { 1.0 };
            compare::pieces(expected, &got, factor(def, sample), loose)?;
        }
        if expected.is_some() {
            return Ok(true);
        }
        tried.push(resized);
    }
    Ok(false)
}

/// The oracle's results for a sample, and those of the backend.
fn call(context: &Context<'_>, sample: &Sample) -> Steps<(Vec<Array>, keyway::Result<Vec<Tensor>>)> {
    let inputs = inputs::of_sample(&sample.args, context.dtype(), context.sample_seed());
    let expected = context.expected(&inputs)?;
    let prepared = context.place(&inputs)?;
    let result = prepared.call(context.def()?, Out::New);
    if names_sizes(&result) {
        return Err(Stop::Skipped("the sample does not go with these sizes".to_string()));
    }
    Ok((expected, result))
}

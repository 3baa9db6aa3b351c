//! Calls of millions of elements on periodic tensors; the oracle computes one period: element-wise ops above 2^21 elements
//! in place, into a strided `out=` and with each argument broadcast; all other ops with their rows, their columns and all sizes
//! scaled up; matrix products with m, n and k of 512, and sums of 8,192 addends.
//!
//! A kernel determines how to split, pack and vectorise from the sizes, so it may be correct on small tensors and wrong on
//! large ones.

use super::{Context, Family, Op, Scope, corners, factor, has_out, is_computed, is_in, tensors, with_sizes};
use crate::call;
use crate::case::Case;
use crate::compare;
use crate::memory::Arrangement;
use crate::outcome::{Steps, Stop};
use crate::periodic::{Large, Periodic};
use crate::target::Service;
use keyway::dispatcher::op::Out;
use keyway::ops::def::{Forms, OpFlags};
use keyway::ops::sample::{Role, Sample, SampleArg};
use keyway::ops::{attention, linalg, pointwise};
use keyway::{DType, Tensor};

/// The definition of this family of cases.
pub const FAMILY: Family = Family {
    name: "scaled",
    about: "more than 2^21 elements in place and into a strided out=; large broadcasts; products of 512 and more, sums of 8,192 addends; copies, rows and products of more than 20 million elements",
    cases,
    run,
};

/// Elements of a vector, more than 2^21 and of no block's length, and its period.
const VECTOR: usize = (1 << 21) + 12_289;
const VECTOR_PERIOD: usize = 4_093;
/// The variants of element-wise ops on vectors. New results are those of the family `lengths`.
const IN_PLACE: &str = "in_place";
const STRIDED_OUT: &str = "strided_out";
/// The sizes of a period, and those of the large tensor.
type Pair = [&'static [usize]; 2];
/// Sizes that broadcast one argument, given by index: the period and sizes of the others, and of that one.
const BROADCAST: [(&str, Pair, Pair); 3] = [
    ("channels", [&[2, 7, 5, 3], &[2, 64, 56, 56]], [&[1, 7, 1, 1], &[1, 64, 1, 1]]),
    ("rows", [&[7, 11], &[2_053, 1_031]], [&[11], &[1_031]]),
    ("columns", [&[7, 11], &[2_053, 1_031]], [&[7, 1], &[2_053, 1]]),
];
/// The dtypes with more variants than [`EVEN`], whose loops the other dtypes share: for element-wise ops one
/// variant each, besides all of the usual dtype; for other ops all.
const KINDS: [DType; 6] = [DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8, DType::BOOL];
/// The variants of other ops: the first repeating size is enlarged, the last one, or all.
const ROWS: &str = "rows";
const COLUMNS: &str = "columns";
const EVEN: &str = "even";
/// The variants with one non-repeating size enlarged to this length.
const TERMS: [(&str, usize); 2] = [("terms-8192", 8_192), ("terms-8209", 8_209)];
/// The variants with all sizes of a product: whole blocks, and slightly more.
const CUBES: [(&str, usize); 2] = [("cube-512", 512), ("cube-521", 521)];
/// The variant with more than 20 million elements, and the ops that have it, one of each kind of kernel; with `--thorough` all.
const MILLIONS: &str = "millions";
const MILLIONS_OF: [&str; 9] =
    ["bmm", "cat", "index_select", "layer_norm", "linear", "log_softmax", "mm", "softmax", "sum"];
const ELEMENTS_OF_MILLIONS: usize = 20_500_000;
/// The maximum number of steps of a call with more than 20 million elements.
const STEPS_OF_MILLIONS: usize = 400_000_000;
/// Ops for which the last of equal indices wins: the last of many periods need not be the last of one.
const LAST_WRITE: [&str; 3] = ["index_copy", "index_put", "scatter"];
/// The maximum number of steps of a call: combinations of indices.
const STEPS: usize = 3 << 20;
/// The same for a product with all sizes enlarged, in a batch of seven.
const CUBE_STEPS: usize = 7 * 521 * 521 * 521;
/// The maximum number of elements of a tensor of such a product.
const CUBE_ELEMENTS: usize = 7 * 521 * 521;
/// The maximum number of steps of the oracle.
const ORACLE_STEPS: usize = 400_000;
/// The factor of the usual tolerance for results with many addends: the test detects missing or duplicated addends.
const LOOSE: f64 = 100.0;
/// The same for f16 and bf16, where the final rounding dominates.
const LOOSE_HALF: f64 = 4.0;

fn cases(scope: &Scope<'_>, cases: &mut Vec<Case>) {
    for op in scope.ops {
        let Some(dtype) = scope.served(op.def) else { continue };
        if !is_computed(op.def) || op.def.is(OpFlags::MAY_OVERFLOW) {
            continue;
        }
        if LAST_WRITE.contains(&op.def.name()) {
            continue;
        }
        if is_in(op.def, &[pointwise::ALL]) {
            elementwise(scope, op, dtype, cases);
        } else {
            scaled(scope, op, dtype, cases);
        }
    }
}

/// The dtypes that the target has a kernel for, or the usual one; with `quick` the usual one and an integer or another
/// kind.
fn dtypes(scope: &Scope<'_>, op: &Op, served: DType) -> Vec<DType> {
    let kernel = |dtype: &DType| {
        op.def.dtypes.has(*dtype)
            && op.def.entry().is_ok_and(|entry| scope.target.service(entry, *dtype) == Service::Kernel)
    };
    let others = DType::REAL.into_iter().filter(|dtype| *dtype != served && kernel(dtype));
    let quick =
        [DType::I64, DType::F64].into_iter().filter(|dtype| *dtype != served && kernel(dtype)).take(1);
    let others: Vec<DType> = if scope.quick { quick.collect() } else { others.collect() };
    [served].into_iter().chain(others).collect()
}

fn elementwise(scope: &Scope<'_>, op: &Op, served: DType, cases: &mut Vec<Case>) {
    let Some(nth) = op.samples.iter().position(|s| with_sizes(s, &[VECTOR_PERIOD]).is_some()) else { return };
    let arguments = tensors(&op.samples[nth]).filter(|t| t.role == Role::Tested).count();
    let mut variants = Vec::new();
    if op.def.forms == Forms::InPlace {
        variants.push(IN_PLACE.to_string());
    }
    if has_out(op.def) {
        variants.push(STRIDED_OUT.to_string());
    }
    if arguments > 1 {
        for (name, ..) in BROADCAST {
            variants.extend((0..arguments).map(|argument| format!("{name}-{argument}")));
        }
    }
    for (turn, dtype) in dtypes(scope, op, served).into_iter().enumerate() {
        let mut push = |variant: &str| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
        if dtype == served {
            variants.iter().for_each(|variant| push(variant));
        } else if KINDS.contains(&dtype) && !variants.is_empty() {
            push(&variants[turn % variants.len()]);
        }
    }
}

fn scaled(scope: &Scope<'_>, op: &Op, served: DType, cases: &mut Vec<Case>) {
    let whole = |&nth: &usize| tensors(&op.samples[nth]).all(|t| !t.sizes.contains(&0));
    let kinds: Vec<usize> = corners::chosen(op).into_iter().filter(whole).collect();
    let product = is_in(op.def, &[linalg::ALL]);
    for (position, &nth) in
        kinds.iter().enumerate().filter(|(position, _)| scope.wants(*position, kinds.len()))
    {
        let dtypes = if position == 0 { dtypes(scope, op, served) } else { vec![served] };
        for dtype in dtypes {
            let mut push = |variant: &str| cases.push(Case::of(FAMILY.name, op.def, dtype, nth, variant));
            push(EVEN);
            if dtype != served && !KINDS.contains(&dtype) && op.def.name() != "mm" {
                continue;
            }
            [ROWS, COLUMNS].into_iter().for_each(&mut push);
            let many = !scope.quick && position == 0;
            if many && (scope.draws.thorough || dtype == served && MILLIONS_OF.contains(&op.def.name())) {
                push(MILLIONS);
            }
            // Attention combines every term with every other.
            let terms = if is_in(op.def, &[attention::ALL]) { &[][..] } else { &TERMS };
            let terms = terms.iter().skip(usize::from(!product)).filter(|_| product || dtype == served);
            terms.for_each(|(name, _)| push(name));
            // Other products call this one, or share its loops.
            if product && (dtype == served || op.def.name() == "mm") {
                CUBES.iter().for_each(|(name, _)| push(name));
            }
        }
    }
}

fn run(context: &Context<'_>) -> Steps {
    if context.case.variant != MILLIONS {
        return one(context, &context.sample()?);
    }
    // The first sample with sizes that can be scaled so.
    let mut last = Stop::Skipped("there is no sample".to_string());
    for sample in (context.def()?.samples)() {
        match one(context, &sample) {
            Err(stop @ Stop::Skipped(_)) => last = stop,
            judged => return judged,
        }
    }
    Err(last)
}

fn one(context: &Context<'_>, given: &Sample) -> Steps {
    let def = context.def()?;
    let variant = context.case.variant.as_str();
    let elementwise = is_in(def, &[pointwise::ALL]);
    let large = if elementwise { vectors(context, given)? } else { resized(context, given)? };
    let device = context.target.device;
    let images = context.images();
    let tensors = large.tensors(device, |sizes| images.where_it_suits(sizes))?;
    let prepared = large.prepared();
    let outs = match variant {
        STRIDED_OUT => large.outs(device, |sizes| Arrangement::Stepped.where_it_suits(sizes))?,
        _ => Vec::new(),
    };
    let given_outs: Vec<_> = outs.iter().map(AsRef::as_ref).collect();
    let out = match variant {
        STRIDED_OUT => Out::Given(&given_outs),
        IN_PLACE => Out::InPlace,
        _ => Out::New,
    };
    let fits = large.results().eq(large.first());
    if variant == IN_PLACE && !fits {
        return Err(Stop::Skipped("the result does not fit into the first argument".to_string()));
    }
    let made = prepared.call_with(def, &tensors, out);
    if matches!(&made, Err(error) if call::is_of_arguments(error)) {
        return Err(Stop::Skipped("the op takes the sample's arguments with no such sizes".to_string()));
    }
    let made = made.map_err(|e| context.refused(e))?;
    let got: &[Tensor] = match variant {
        STRIDED_OUT => &outs,
        IN_PLACE => &tensors[..1],
        _ => &made,
    };
    let loose = match context.dtype() {
        _ if elementwise => 1.0,
        DType::F16 | DType::BF16 => LOOSE_HALF,
        _ => LOOSE,
    };
    let factor = factor(def, given);
    Ok(large.check(got, |period| compare::of_terms(period, factor, loose))?)
}

/// An element-wise call on long vectors, or with one argument broadcast.
fn vectors(context: &Context<'_>, given: &Sample) -> Steps<Large> {
    let variant = context.case.variant.as_str();
    let none = || Stop::Skipped(format!("there is no variant `{variant}`"));
    let broadcast = variant.rsplit_once('-').and_then(|(name, argument)| {
        let found = BROADCAST.into_iter().find(|(other, ..)| *other == name)?;
        Some((found, argument.parse::<usize>().ok()?))
    });
    let (sample, lengths) = match broadcast {
        Some(((_, [period, sizes], [own, _]), argument)) => {
            let sample = with_one(given, period, argument, own).ok_or_else(none)?;
            (
                sample,
                period.iter().copied().zip(sizes.iter().copied()).filter(|(from, _)| *from > 2).collect(),
            )
        }
        None => {
            let sample = with_sizes(given, &[VECTOR_PERIOD]).ok_or_else(none)?;
            (sample, vec![(VECTOR_PERIOD, VECTOR)])
        }
    };
    let periods: Vec<usize> = lengths.iter().map(|(period, _)| *period).collect();
    let periodic = Periodic::known(sample, &periods);
    large(context, &periodic, &lengths)
}

/// The sample with all tensors of one shape except tested tensor `argument`, which has another.
fn with_one(sample: &Sample, sizes: &[usize], argument: usize, own: &[usize]) -> Option<Sample> {
    let mut sample = with_sizes(sample, sizes)?;
    let tested = sample.args.iter_mut().filter_map(|arg| match arg {
        SampleArg::Tensor(t) if t.role == Role::Tested => Some(t),
        _ => None,
    });
    tested.into_iter().nth(argument)?.sizes = own.to_vec();
    Some(sample)
}

fn large(context: &Context<'_>, periodic: &Periodic, lengths: &[(usize, usize)]) -> Steps<Large> {
    let (oracle, seed) = (context.oracle()?, context.sample_seed());
    let none = || Stop::Skipped("the oracle has no answer for such sizes".to_string());
    periodic.large(lengths, oracle, context.dtype(), seed).ok_or_else(none)
}

/// The call of another op with sizes scaled according to the variant.
fn resized(context: &Context<'_>, given: &Sample) -> Steps<Large> {
    let variant = context.case.variant.as_str();
    let none = || Stop::Skipped("no size of the sample can be scaled so".to_string());
    let oracle = context.oracle()?;
    let periodic = Periodic::of(given, oracle, context.dtype(), context.sample_seed()).ok_or_else(none)?;
    let with_fixed = |from: usize, to: usize| {
        periodic.with_fixed([from, to], ORACLE_STEPS, oracle, context.dtype(), context.sample_seed())
    };
    if let Some((_, length)) = TERMS.into_iter().find(|(name, _)| *name == variant) {
        let longer =
            periodic.fixed().into_iter().find_map(|size| with_fixed(size, length)).ok_or_else(none)?;
        return large(context, &longer, &even(&longer, &longer.periods, STEPS));
    }
    if let Some((_, length)) = CUBES.into_iter().find(|(name, _)| *name == variant) {
        let [terms] = periodic.fixed()[..] else { return Err(none()) };
        let longer = with_fixed(terms, length).ok_or_else(none)?;
        let lengths = cube(&longer, length).ok_or_else(none)?;
        return large(context, &longer, &lengths);
    }
    if variant == MILLIONS {
        let lengths = many(&periodic).ok_or_else(none)?;
        return large(context, &periodic, &lengths);
    }
    let scaled = match variant {
        ROWS => &periodic.periods[..1],
        COLUMNS if periodic.periods.len() > 1 => &periodic.periods[periodic.periods.len() - 1..],
        EVEN if periodic.periods.len() > 1 => &periodic.periods,
        _ => return Err(none()),
    };
    large(context, &periodic, &even(&periodic, scaled, STEPS))
}

/// Periods of this length: all, or those after the first, if that is of a batch.
fn cube(periodic: &Periodic, length: usize) -> Option<Vec<(usize, usize)>> {
    let all = periodic.periods.iter().map(|&period| (period, length)).collect::<Vec<_>>();
    let fits = |lengths: &Vec<_>| {
        periodic.steps(lengths) <= CUBE_STEPS && periodic.largest(lengths) <= CUBE_ELEMENTS
    };
    (0..all.len()).map(|from| all[from..].to_vec()).find(fits)
}

/// These periods scaled up by about one factor, to at most `steps` steps.
fn even(periodic: &Periodic, periods: &[usize], steps: usize) -> Vec<(usize, usize)> {
    // Odd, so that neither blocks nor vectors end at the end of a row.
    let scaled = |by: f64| {
        periods.iter().map(|&period| (period, (period as f64 * by) as usize | 1)).collect::<Vec<_>>()
    };
    let fits = |by: f64| periodic.steps(&scaled(by)) <= steps;
    let (mut low, mut high) = (1.0, steps as f64);
    for _ in 0..40 {
        let middle = f64::sqrt(low * high);
        *(if fits(middle) { &mut low } else { &mut high }) = middle;
    }
    scaled(low)
}

/// All periods scaled up by about one factor, until a tensor has [`ELEMENTS_OF_MILLIONS`]; `None` if that takes too many steps.
fn many(periodic: &Periodic) -> Option<Vec<(usize, usize)>> {
    let scaled = |by: f64| -> Vec<(usize, usize)> {
        periodic.periods.iter().map(|&period| (period, (period as f64 * by) as usize | 1)).collect()
    };
    let mut factors = (0..400).map(|nth| 1.05_f64.powi(nth));
    let lengths = factors.find_map(|by| {
        let lengths = scaled(by);
        (periodic.largest(&lengths) >= ELEMENTS_OF_MILLIONS).then_some(lengths)
    })?;
    (periodic.steps(&lengths) <= STEPS_OF_MILLIONS).then_some(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle;
    use keyway::ops::sample::{plain, sample};

    fn of(op: &str, sample: &Sample) -> Periodic {
        let oracle = oracle::find(op).expect("an oracle");
        Periodic::of(sample, oracle, DType::F32, 1).expect("a size that repeats")
    }

    #[test]
    fn products_are_scaled_to_cubes_and_long_sums() {
        let with_fixed = |op: &str, periodic: &Periodic, from, to| {
            let oracle = oracle::find(op).expect("an oracle");
            periodic.with_fixed([from, to], ORACLE_STEPS, oracle, DType::F32, 1).expect("few steps")
        };
        let product = of("mm", &sample([plain(&[2, 3]), plain(&[3, 4])]));
        let longer = with_fixed("mm", &product, 3, 512);
        let lengths = cube(&longer, 512).expect("a cube");
        assert_eq!(longer.grown(&lengths).args, [plain(&[512, 512]), plain(&[512, 512])]);
        assert_eq!(longer.steps(&lengths), 512 * 512 * 512);
        let terms = with_fixed("mm", &product, 3, 8_192);
        assert_eq!(terms.sample.args, [plain(&[7, 8_192]), plain(&[8_192, 5])]);
        let batches = with_fixed("bmm", &of("bmm", &sample([plain(&[4, 2, 3]), plain(&[4, 3, 6])])), 3, 512);
        assert_eq!(cube(&batches, 512).expect("a cube").len(), 2, "{batches:?}");
    }

    #[test]
    fn products_of_millions_have_few_addends() {
        let product = of("mm", &sample([plain(&[2, 3]), plain(&[3, 4])]));
        let lengths = many(&product).expect("few steps");
        let largest = product.largest(&lengths);
        assert!((ELEMENTS_OF_MILLIONS..ELEMENTS_OF_MILLIONS * 6 / 5).contains(&largest), "{lengths:?}");
        assert_eq!(product.steps(&lengths), 3 * largest);
    }

    #[test]
    fn rows_are_scaled_to_the_limit() {
        let softmax = of("softmax", &sample([plain(&[2, 4]), SampleArg::Int(-1)]));
        let lengths = even(&softmax, &softmax.periods, STEPS);
        assert!(
            (STEPS / 2..=STEPS).contains(&softmax.steps(&lengths)) && lengths[0].1 % 2 == 1,
            "{lengths:?}"
        );
    }
}

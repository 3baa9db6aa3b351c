//! Draws a call of an op: sizes of common networks, and primes near them, or a vector of any length, with strides, broadcasts,
//! forms and values.

use super::call::{Drawn, Form, Kind, Operand, Order, Values};
use super::source::Source;
use crate::families::lengths::numbers;
use crate::families::{Op, full, has_out, is_in, tensors, tested};
use keyway::DType;
use keyway::ops::def::{Forms, OpDef};
use keyway::ops::pointwise;
use keyway::ops::sample::{Role, SampleArg};

/// The ops that are drawn, except element-wise ones.
const KINDS: &[(&str, Kind)] = &[
    ("amax", Kind::Reduction(2)),
    ("amin", Kind::Reduction(2)),
    ("bmm", Kind::Batched),
    ("conv", Kind::Convolution),
    ("layer_norm", Kind::Normalized(5)),
    ("linear", Kind::Linear),
    ("log_softmax", Kind::Lines),
    ("mean", Kind::Reduction(2)),
    ("mm", Kind::Product),
    ("rms_norm", Kind::Normalized(4)),
    ("softmax", Kind::Lines),
    ("std", Kind::Reduction(3)),
    ("sum", Kind::Reduction(2)),
    ("var", Kind::Reduction(3)),
];

/// Element-wise ops that are right for values of any magnitude, so that all distributions are drawn for them.
const ANY_VALUES: [&str; 20] = [
    "abs", "add", "div", "eq", "ge", "gt", "le", "lt", "maximum", "minimum", "mul", "ne", "neg", "relu",
    "sign", "sqrt", "square", "sub", "trunc", "where",
];

/// Element-wise ops that are not tested with integers: they divide, or their results exceed the range.
const NO_INTEGERS: [&str; 10] = [
    "bitwise_left_shift",
    "bitwise_right_shift",
    "div",
    "floor_divide",
    "fmod",
    "pow",
    "reciprocal",
    "remainder",
    "addcdiv",
    "xlogy",
];

/// Channels, height and width of images inside networks (ResNet, MobileNet, ConvNeXt, ViT).
const IMAGES: [[usize; 3]; 9] = [
    [3, 224, 224],
    [64, 56, 56],
    [64, 56, 56],
    [64, 56, 56],
    [64, 112, 112],
    [256, 56, 56],
    [128, 28, 28],
    [768, 14, 14],
    [512, 7, 7],
];
/// Widths of layers (BERT, GPT-2, Llama).
const WIDTHS: [usize; 9] = [64, 128, 256, 768, 1024, 2048, 3072, 4096, 8192];
/// Lengths of sequences.
const LENGTHS: [usize; 6] = [1, 77, 128, 197, 224, 512];
/// Images and sequences of a batch.
const BATCHES: [usize; 9] = [1, 2, 2, 3, 4, 8, 16, 31, 32];

/// Maximum number of elements of a tensor: each draw selects one of the two. The smaller one leaves time and memory for more
/// draws.
const ELEMENTS: [usize; 2] = [1_000_000, 210_000];
/// The exponent of the power of two above the drawn lengths of vectors.
const LARGEST_VECTOR: usize = 20;
/// The maximum number of products of a call on matrices or images.
const STEPS: usize = 150_000_000;

/// The kind of an op; `None` for ops that are not drawn.
pub fn kind(def: &OpDef) -> Option<Kind> {
    let named = KINDS.iter().find(|(name, _)| *name == def.name()).map(|(_, kind)| *kind);
    named.or_else(|| (is_in(def, &[pointwise::ALL]) && !def.rule.is_view()).then_some(Kind::Pointwise))
}

/// Whether an op is drawn more often than others: the ops of common networks.
pub fn is_frequent(def: &OpDef) -> bool {
    KINDS.iter().any(|(name, _)| *name == def.name()) || ANY_VALUES.contains(&def.name())
}

/// The samples of an op that can be resized.
fn suiting(op: &Op, dtype: DType) -> Vec<usize> {
    let mut nths = full(&op.samples);
    nths.retain(|&nth| {
        let sample = &op.samples[nth];
        tested(sample).next().is_some()
            && tensors(sample).all(|t| !t.sizes.is_empty())
            && tensors(sample).all(|t| t.role == Role::Tested || t.role == Role::Fixed(DType::BOOL))
            && matches!(sample.args[0], SampleArg::Tensor(_))
    });
    if dtype.is_integer() && NO_INTEGERS.contains(&op.def.name()) { Vec::new() } else { nths }
}

/// Draws call `nth` of an op in a dtype. `None` for an op that is not drawn in it.
pub fn draw(op: &Op, dtype: DType, seed: u64, nth: usize) -> Option<Drawn> {
    let kind = kind(op.def)?;
    let mut source = Source::named(op.def.name(), &[seed, nth as u64]);
    let samples = suiting(op, dtype);
    let sample = if kind == Kind::Pointwise { *samples.get(source.below(samples.len()))? } else { 0 };
    let limit = source.one_of(&ELEMENTS);
    let sizes = sizes(kind, limit, &mut source);
    let dims = dims(kind, &sizes, &mut source);
    let count = match kind {
        Kind::Pointwise => tensors(&op.samples[sample]).count(),
        Kind::Reduction(_) | Kind::Lines => 1,
        Kind::Product | Kind::Batched => 2,
        Kind::Linear | Kind::Convolution => 3,
        Kind::Normalized(arguments) => arguments - 2,
    };
    let mut drawn = Drawn {
        kind,
        sample,
        sizes,
        dims,
        operands: vec![Operand::default(); count],
        form: Form::New,
        values: values(op, kind, sample, &mut source),
        seed: source.next(),
    };
    if kind == Kind::Pointwise {
        broadcast(&mut drawn, &mut source);
    }
    // Half of the calls have contiguous tensors, as in most programs; in the others images are often channels_last.
    let orders = source.below(4);
    for nth in 0..count {
        let sizes = drawn.argument(nth);
        drawn.operands[nth].order = match orders {
            0 | 1 => Order::default(),
            2 if sizes.len() == 4 => Order { order: channels_last(&sizes), ..Order::default() },
            _ => order(&sizes, &mut source),
        };
    }
    drawn.form = form(op.def, &drawn, &mut source);
    Some(drawn)
}

/// A size, or a number near it: a prime, or one more or less.
fn near(size: usize, source: &mut Source) -> usize {
    match source.below(8) {
        0 | 1 => prime(size, source.below(2) == 0),
        2 => size + 1,
        3 if size > 2 => size - 1,
        _ => size,
    }
}

/// The smallest prime that is at least `from`, or the largest that is at most `from`.
fn prime(from: usize, up: bool) -> usize {
    let is_prime = |n: &usize| *n > 1 && (2..).take_while(|by| by * by <= *n).all(|by| !n.is_multiple_of(by));
    let below = || (2..=from).rev().find(is_prime);
    if up { None } else { below() }.or_else(|| (from..).find(is_prime)).unwrap_or(from)
}

fn sizes(kind: Kind, limit: usize, source: &mut Source) -> Vec<usize> {
    let width = |source: &mut Source| {
        let width = source.one_of(&WIDTHS);
        near(width, source)
    };
    let rows = |source: &mut Source| {
        let count = if source.once_in(2) { source.one_of(&BATCHES) } else { source.one_of(&LENGTHS) };
        near(count, source)
    };
    match kind {
        Kind::Product | Kind::Linear => products(vec![rows(source), width(source), width(source)], limit),
        Kind::Batched => {
            let heads = source.one_of(&[1, 2, 8, 12]);
            let width = if source.once_in(2) { 64 } else { width(source) };
            products(vec![heads, rows(source), width, rows(source)], limit)
        }
        Kind::Convolution => convolution(limit, source),
        Kind::Pointwise | Kind::Reduction(_) | Kind::Lines | Kind::Normalized(_) => {
            let mut sizes = match source.below(8) {
                // Long lines of norms are judged by `lengths`: the mean and the variance of 300,000 elements have errors of
                // several ULP in f32, which a weight and a bias that nearly cancel make visible.
                5 if !matches!(kind, Kind::Normalized(_)) => vec![numbers::draw(LARGEST_VECTOR, source)],
                0 | 4 | 6 if !matches!(kind, Kind::Normalized(_)) => {
                    let image = source.one_of(&IMAGES);
                    let exact = !source.once_in(3);
                    let image = image.map(|size| if exact { size } else { near(size, source) });
                    [&[source.one_of(&BATCHES)], &image[..]].concat()
                }
                1 if !matches!(kind, Kind::Normalized(_)) => {
                    let image = source.one_of(&IMAGES);
                    vec![image[0], image[1] * image[2]]
                }
                2 => vec![source.one_of(&BATCHES), rows(source), width(source)],
                _ => vec![rows(source), width(source)],
            };
            // The last sizes are those that kernels are tuned for.
            for dim in 0..sizes.len() {
                let others: usize = sizes.iter().product::<usize>() / sizes[dim];
                sizes[dim] = sizes[dim].min((limit / others).max(1));
            }
            sizes
        }
    }
}

/// Reduces m, n or the batch of a product that would be too large, but not the reduction dimension, which kernels are tuned
/// for.
fn products(mut sizes: Vec<usize>, limit: usize) -> Vec<usize> {
    let last = sizes.len() - 1;
    loop {
        let batch: usize = sizes[..last - 2].iter().product();
        let [n, k, m] = [sizes[last - 2], sizes[last - 1], sizes[last]];
        let dim = if batch * k * m > limit && m > 16 {
            last
        } else if batch * n * k > limit && n > 1 {
            last - 2
        } else if batch > 1 && batch * k * m > limit {
            0
        } else if batch * n * m > limit || batch * n * k * m > STEPS {
            if n > m { last - 2 } else { last }
        } else {
            return sizes;
        };
        sizes[dim] = sizes[dim].div_ceil(2);
    }
}

fn convolution(limit: usize, source: &mut Source) -> Vec<usize> {
    let [channels, height, width] = source.one_of(&IMAGES);
    let (kernel, stride) = (source.one_of(&[1, 3, 3, 5, 7]), source.one_of(&[1, 1, 2]));
    let padding = if source.once_in(3) { 0 } else { kernel / 2 };
    let exact = source.once_in(2);
    let mut size = |size: usize| if exact { size } else { near(size, source) };
    let (height, width) = (size(height), size(width));
    // A kernel is no larger than the image with its border.
    let padding = if height.min(width) < kernel { kernel / 2 } else { padding };
    let [inputs, outputs] = [size(channels), size(channels)];
    // Depthwise, some groups, or one group.
    let (inputs, outputs, groups) = match source.below(4) {
        0 => (1, 1, inputs),
        1 => (inputs.div_ceil(4), outputs.div_ceil(4), 4),
        _ => (inputs, outputs, 1),
    };
    let mut sizes =
        vec![source.one_of(&BATCHES), inputs, outputs, groups, height, width, kernel, stride, padding];
    let steps = |s: &[usize]| s[0] * s[1] * s[2] * s[3] * s[4] * s[5] * s[6] * s[6] / s[7] / s[7];
    let elements =
        |s: &[usize]| (s[0] * s[1].max(s[2]) * s[3] * s[4] * s[5]).max(s[1] * s[2] * s[3] * s[6] * s[6]);
    while steps(&sizes) > STEPS || elements(&sizes) > limit {
        // The batch first, then outputs, groups and inputs, but not the height and width, which kernels are tuned for.
        let Some(dim) = [0, 2, 3, 1].into_iter().find(|&dim| sizes[dim] > 1) else { break };
        sizes[dim] /= 2;
    }
    sizes
}

fn dims(kind: Kind, sizes: &[usize], source: &mut Source) -> Vec<usize> {
    match kind {
        Kind::Reduction(_) => match (source.below(4), sizes.len()) {
            // For images the mean of each channel or of each image; for others along one dimension, or all.
            (0, 4) => vec![0, 2, 3],
            (1, 4) => vec![2, 3],
            (0, ndim) => (0..ndim).collect(),
            (_, ndim) => vec![source.below(ndim)],
        },
        Kind::Lines => vec![source.below(sizes.len())],
        _ => Vec::new(),
    }
}

fn values(op: &Op, kind: Kind, sample: usize, source: &mut Source) -> Values {
    match kind {
        // Sums of values of both signs are near 0, where the order of addition matters.
        Kind::Reduction(_) | Kind::Lines | Kind::Normalized(_) => {
            source.one_of(&[Values::Uniform, Values::Uniform, Values::Whole, Values::Sparse])
        }
        Kind::Product | Kind::Batched | Kind::Linear => {
            source.one_of(&[Values::Own, Values::Uniform, Values::Magnitudes, Values::Sparse])
        }
        // The transforms of F(4x4, 3x3) add up large and small elements of a tile.
        Kind::Convolution => source.one_of(&[Values::Own, Values::Uniform, Values::Sparse]),
        Kind::Pointwise => {
            // With a factor other than 1 the product is rounded before the addition, and the difference may be near 0. A
            // quotient that is rounded to an integer may be off by one.
            let simple = |arg: &SampleArg| match arg {
                SampleArg::Float(_) | SampleArg::Str(_) => false,
                SampleArg::Int(number) => *number == 1,
                _ => true,
            };
            let simple = op.samples[sample].args.iter().all(simple);
            match ANY_VALUES.contains(&op.def.name()) && simple {
                true => source.one_of(&[
                    Values::Own,
                    Values::Magnitudes,
                    Values::Magnitudes,
                    Values::Sparse,
                    Values::Shifted,
                    Values::Whole,
                ]),
                false => Values::Own,
            }
        }
    }
}

/// Broadcasts some arguments: along the batch, as a factor for each channel or column, or along any dimensions.
fn broadcast(drawn: &mut Drawn, source: &mut Source) {
    let ndim = drawn.sizes.len();
    if drawn.operands.len() < 2 || source.once_in(3) {
        return;
    }
    // One argument has the full sizes.
    let whole = if source.once_in(4) { drawn.operands.len() - 1 } else { 0 };
    let pattern: Vec<bool> = match source.below(5) {
        0 => (0..ndim).map(|dim| dim == 0).collect(),
        1 => (0..ndim).map(|dim| dim + 1 != ndim).collect(),
        2 | 3 => (0..ndim).map(|dim| dim != 1.min(ndim - 1)).collect(),
        _ => (0..ndim).map(|_| source.once_in(2)).collect(),
    };
    let expanded = source.once_in(3);
    for (nth, operand) in drawn.operands.iter_mut().enumerate().filter(|(nth, _)| *nth != whole) {
        if nth == 0 || !source.once_in(4) {
            operand.broadcast.clone_from(&pattern);
            operand.expanded = expanded;
        }
    }
}

fn channels_last(sizes: &[usize]) -> usize {
    // The number of the order in which channels are innermost, then width, height and the batch.
    let wanted = |nth: &usize| {
        let order = crate::axis_order::permutation(sizes, *nth);
        order
            .iter()
            .copied()
            .filter(|&dim| sizes[dim] > 1)
            .eq([1, 3, 2, 0].into_iter().filter(|&dim| sizes[dim] > 1))
    };
    (0..crate::axis_order::count(sizes)).find(wanted).unwrap_or(0)
}

fn order(sizes: &[usize], source: &mut Source) -> Order {
    Order {
        order: source.below(crate::axis_order::count(sizes)),
        gap: source.one_of(&[0, 0, 1, 2]),
        offset: source.one_of(&[0, 1, 3, 8]),
    }
}

fn form(def: &OpDef, drawn: &Drawn, source: &mut Source) -> Form {
    let result = drawn.result();
    let whole = drawn.operands[0].broadcast.iter().all(|broadcast| !broadcast);
    match source.below(4) {
        0 if has_out(def) => Form::Out(order(&result, source)),
        1 if def.forms == Forms::InPlace && drawn.kind == Kind::Pointwise && whole => Form::InPlace,
        _ => Form::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: &str) -> Op {
        let def = keyway::ops::all().find(|def| def.name() == name).expect(name);
        Op { def, samples: (def.samples)() }
    }

    #[test]
    fn every_kind_is_of_an_op_that_there_is() {
        let names = KINDS.iter().map(|(name, _)| *name).chain(NO_INTEGERS);
        let names: Vec<&str> = names.chain(ANY_VALUES).collect();
        names.iter().for_each(|name| assert!(keyway::ops::all().any(|def| def.name() == *name), "{name}"));
        for (name, kind) in KINDS {
            let arguments = op(name).samples[0].args.len();
            match kind {
                Kind::Reduction(keepdim) => assert_eq!(keepdim + 1, arguments, "{name}"),
                Kind::Normalized(count) => assert_eq!(*count, arguments, "{name}"),
                _ => {}
            }
        }
    }

    #[test]
    fn a_seed_draws_the_same_and_another_one_does_not() {
        let add = op("add");
        let all =
            |seed| -> Vec<Drawn> { (0..40).filter_map(|nth| draw(&add, DType::F32, seed, nth)).collect() };
        assert_eq!(all(3), all(3));
        assert_ne!(all(3), all(4));
        assert_eq!(all(3).len(), 40);
    }

    #[test]
    fn what_is_drawn_stays_small_and_has_every_trait() {
        for (name, needs_form) in
            [("add", true), ("mm", false), ("conv", false), ("sum", false), ("layer_norm", false)]
        {
            let op = op(name);
            let all: Vec<Drawn> = (0..400).filter_map(|nth| draw(&op, DType::F32, 1, nth)).collect();
            assert_eq!(all.len(), 400, "{name}");
            for drawn in &all {
                let sizes = (0..drawn.operands.len()).map(|nth| drawn.argument(nth)).chain([drawn.result()]);
                for sizes in sizes {
                    assert!(sizes.iter().product::<usize>() <= 2 * ELEMENTS[0], "{name}: {drawn:?}");
                }
            }
            let some = |is: &dyn Fn(&Drawn) -> bool| all.iter().filter(|d| is(d)).count() > 8;
            assert!(
                some(&|d| d.operands[0].order.gap > 0) && some(&|d| d.operands[0].order.offset > 0),
                "{name}"
            );
            assert!(!has_out(op.def) || some(&|d| matches!(d.form, Form::Out(_))), "{name}");
            assert!(
                !needs_form
                    || some(&|d| d.form == Form::InPlace)
                        && some(&|d| d.operands.get(1).is_some_and(|other| !other.broadcast.is_empty()))
            );
        }
        let mm = op("mm");
        let terms = |nth| draw(&mm, DType::F32, 1, nth).map(|d| d.sizes[1]);
        let primes = (0..400).filter_map(terms).filter(|&k| k > 4000 && prime(k, true) == k).count();
        assert!(primes > 8, "{primes}");
    }
}

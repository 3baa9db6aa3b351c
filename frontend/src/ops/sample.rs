//! Calls as data: from these come gradcheck, the tests of the kernels, and the conformance cases.

use crate::DType;

/// What the elements of a sample's tensor are.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Uniform in the range, by a fixed generator; integers are rounded towards zero.
    Uniform(f64, f64),
    /// Uniform in the range, but at least the third number away from each integer multiple of it: keeps
    /// gradcheck away from kinks.
    AwayFrom(f64, f64, f64),
    /// All different, in a fixed shuffled order, spread over the range: no ties.
    Distinct(f64, f64),
    /// Integers from 0 up to, not including, this: indices.
    Index(i64),
    /// These, repeated as often as needed.
    Values(Vec<f64>),
}

/// Which dtype a sample's tensor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The dtype under test; differentiated by gradcheck.
    Tested,
    /// This one, whatever is tested.
    Fixed(DType),
}

/// A tensor of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSample {
    /// Sizes.
    pub sizes: Vec<usize>,
    /// Elements.
    pub fill: Fill,
    /// Dtype.
    pub role: Role,
}

/// An argument of a sample.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum SampleArg {
    None,
    Tensor(TensorSample),
    Tensors(Vec<TensorSample>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Str(&'static str),
    DType(DType),
}

/// A valid call.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Arguments in schema order.
    pub args: Vec<SampleArg>,
    /// Whether gradcheck may differentiate here; off where the function has a kink at the sample.
    pub smooth: bool,
    /// How many times the dtype's tolerance a result may be off, and why; `None` for the tolerance itself.
    pub loosened: Option<(f64, &'static str)>,
}

impl Sample {
    /// Allows `factor` times the dtype's tolerance, for the stated reason: a long sum, say.
    #[must_use]
    pub fn loosened(mut self, factor: f64, reason: &'static str) -> Sample {
        self.loosened = Some((factor, reason));
        self
    }
}

/// A call that must fail.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorSample {
    /// Arguments in schema order.
    pub args: Vec<SampleArg>,
    /// A part of the message.
    pub message: &'static str,
}

/// A valid call with these arguments.
pub fn sample(args: impl IntoIterator<Item = SampleArg>) -> Sample {
    Sample { args: args.into_iter().collect(), smooth: true, loosened: None }
}

/// A call with these arguments that fails with a message which holds `message`.
pub fn error(args: impl IntoIterator<Item = SampleArg>, message: &'static str) -> ErrorSample {
    ErrorSample { args: args.into_iter().collect(), message }
}

/// A tensor of the dtype under test, uniform in `low..high`.
pub fn uniform(sizes: &[usize], low: f64, high: f64) -> SampleArg {
    tensor(sizes, Fill::Uniform(low, high))
}

/// A tensor of the dtype under test, uniform in -2..2.
pub fn plain(sizes: &[usize]) -> SampleArg {
    uniform(sizes, -2.0, 2.0)
}

/// A tensor of the dtype under test.
pub fn tensor(sizes: &[usize], fill: Fill) -> SampleArg {
    SampleArg::Tensor(TensorSample { sizes: sizes.to_vec(), fill, role: Role::Tested })
}

/// A tensor of a fixed dtype.
pub fn fixed(sizes: &[usize], dtype: DType, fill: Fill) -> SampleArg {
    SampleArg::Tensor(TensorSample { sizes: sizes.to_vec(), fill, role: Role::Fixed(dtype) })
}

/// An i64 tensor of indices below `size`.
pub fn index(sizes: &[usize], size: i64) -> SampleArg {
    fixed(sizes, DType::I64, Fill::Index(size))
}

/// The samples of an element-wise op of one argument: every rank from 0 to 5, an empty one, one element.
pub fn unary(low: f64, high: f64) -> Vec<Sample> {
    unary_of(&Fill::Uniform(low, high), &[])
}

/// As [`unary`], of any filling, followed by `rest`.
pub fn unary_of(fill: &Fill, rest: &[SampleArg]) -> Vec<Sample> {
    let shapes: [&[usize]; 8] =
        [&[], &[1], &[7], &[3, 4], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let args =
        |s: &[usize]| [tensor(s, fill.clone())].into_iter().chain(rest.iter().cloned()).collect::<Vec<_>>();
    shapes.iter().map(|s| sample(args(s))).collect()
}

/// Pairs of shapes that broadcast.
pub const PAIRS: [(&[usize], &[usize]); 10] = [
    (&[], &[]),
    (&[5], &[5]),
    (&[3, 4], &[3, 4]),
    (&[3, 4], &[4]),
    (&[3, 1], &[1, 4]),
    (&[2, 3, 4], &[]),
    (&[2, 1, 4], &[3, 1]),
    (&[2, 3, 1, 2], &[3, 2, 1]),
    (&[2, 1, 2, 1, 2], &[1, 3, 1, 2, 1]),
    (&[0, 4], &[1, 4]),
];

/// The samples of an element-wise op of two arguments: all of [`PAIRS`], uniform in -2..2.
pub fn binary() -> Vec<Sample> {
    PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b)])).collect()
}

/// The error samples of an element-wise op of two arguments and `rest`.
pub fn broadcast_errors(rest: &[SampleArg]) -> Vec<ErrorSample> {
    let args = |a: &[usize], b: &[usize]| {
        [plain(a), plain(b)].into_iter().chain(rest.iter().cloned()).collect::<Vec<_>>()
    };
    vec![error(args(&[3], &[4]), "do not broadcast"), error(args(&[2, 3], &[2]), "do not broadcast")]
}

/// The error sample of an op that takes every dtype but bool: see [`unary_number`](super::rules::unary_number).
pub fn refuses_bool() -> Vec<ErrorSample> {
    vec![error([fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]))], "a number dtype")]
}

/// The error sample of an op that takes floats alone, with the arguments `rest`: see
/// [`unary_real`](super::rules::unary_real).
pub fn refuses_integers(rest: &[SampleArg]) -> Vec<ErrorSample> {
    let integers = fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]));
    vec![error([integers].into_iter().chain(rest.iter().cloned()), "a floating-point dtype")]
}

/// The error sample of an op of two tensors that takes floats alone: see [`binary_real`](super::rules::binary_real).
pub fn refuses_integer_pairs() -> Vec<ErrorSample> {
    let integers = || fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]));
    vec![error([integers(), integers()], "a floating-point dtype")]
}

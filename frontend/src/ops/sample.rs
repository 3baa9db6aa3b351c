//! Sample calls as data, from which gradcheck, kernel tests and conformance cases are derived.

use crate::DType;

/// The fill of a sample's tensor.
///
/// ```
/// use keyway::ops::{build::values, sample::Fill};
/// assert_eq!(values(&Fill::Values(vec![1.0, 2.0]), &[3], 0), [1.0, 2.0, 1.0]);
/// assert!(values(&Fill::Uniform(2.0, 3.0), &[9], 0).iter().all(|v| (2.0..3.0).contains(v)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Uniform in the range, by a fixed generator; integers are truncated towards zero.
    Uniform(f64, f64),
    /// Uniform in the range, but at least the third value away from each integer multiple of it: keeps gradcheck away from
    /// kinks.
    AwayFrom(f64, f64, f64),
    /// Distinct values in a fixed shuffled order, spread over the range: no ties.
    Distinct(f64, f64),
    /// Well-conditioned matrices `[.., m, n]`: uniform in -1..1, with `n` added to each diagonal element. Their symmetric part is
    /// positive definite.
    Definite,
    /// Well-conditioned matrices `[.., m, n]`, which an LU decomposition permutes: uniform in -1..1, with `n` added to the element
    /// of row `i` in column `i + 1`, of the last row in column 0.
    Permuted,
    /// Indices: integers in `0..n`.
    Index(i64),
    /// These values, repeated as often as needed.
    Values(Vec<f64>),
}

/// The dtype of a sample's tensor.
///
/// ```
/// use keyway::DType;
/// use keyway::ops::sample::{Fill, Role, SampleArg, fixed, plain};
/// let role = |arg| if let SampleArg::Tensor(t) = arg { t.role } else { panic!("a tensor") };
/// assert_eq!(role(plain(&[2])), Role::Tested);
/// assert_eq!(role(fixed(&[2], DType::I64, Fill::Index(3))), Role::Fixed(DType::I64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The dtype under test; differentiated by gradcheck.
    Tested,
    /// A fixed dtype, whatever is tested.
    Fixed(DType),
}

/// The description of a tensor argument.
///
/// ```
/// use keyway::ops::sample::{Fill, Role, SampleArg, TensorSample, plain};
/// let same = TensorSample { sizes: vec![2, 3], fill: Fill::Uniform(-2.0, 2.0), role: Role::Tested };
/// assert_eq!(plain(&[2, 3]), SampleArg::Tensor(same));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSample {
    /// The sizes.
    pub sizes: Vec<usize>,
    /// The values of the elements.
    pub fill: Fill,
    /// The dtype.
    pub role: Role,
}

/// The description of an argument.
///
/// ```
/// use keyway::ops::sample::{SampleArg, plain, sample};
/// // A call of `softmax` along the last dimension.
/// let call = sample([plain(&[2, 3]), SampleArg::Int(-1)]);
/// assert_eq!(call.args[1], SampleArg::Int(-1));
/// ```
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
///
/// ```
/// use keyway::ops::sample::{plain, sample};
/// let call = sample([plain(&[2, 3])]);
/// assert!(call.smooth && call.tolerance_factor.is_none());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Arguments in schema order.
    pub args: Vec<SampleArg>,
    /// Whether gradcheck may differentiate here; false if the function has a kink at the sample.
    pub smooth: bool,
    /// A factor of the dtype's tolerance, and the reason for it; `None` for the tolerance itself.
    pub tolerance_factor: Option<(f64, &'static str)>,
}

impl Sample {
    /// Multiplies the dtype's tolerance by `factor`, for the stated reason, such as a long sum.
    ///
    /// ```
    /// use keyway::ops::sample::{plain, sample};
    /// let call = sample([plain(&[1_000])]).tolerance_factor(4.0, "a long sum");
    /// assert_eq!(call.tolerance_factor, Some((4.0, "a long sum")));
    /// ```
    #[must_use]
    pub fn tolerance_factor(mut self, factor: f64, reason: &'static str) -> Sample {
        self.tolerance_factor = Some((factor, reason));
        self
    }
}

/// A call that must fail.
///
/// ```
/// use keyway::ops::sample::{error, plain};
/// let call = error([plain(&[3]), plain(&[4])], "do not broadcast");
/// assert_eq!((call.args.len(), call.message), (2, "do not broadcast"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorSample {
    /// Arguments in schema order.
    pub args: Vec<SampleArg>,
    /// A substring of the expected message.
    pub message: &'static str,
}

/// A valid call with these arguments.
///
/// ```
/// use keyway::ops::sample::{plain, sample};
/// assert_eq!(sample([plain(&[3]), plain(&[4])]).args.len(), 2);
/// ```
pub fn sample(args: impl IntoIterator<Item = SampleArg>) -> Sample {
    Sample { args: args.into_iter().collect(), smooth: true, tolerance_factor: None }
}

/// A call with these arguments whose error message contains `message`.
///
/// ```
/// use keyway::ops::sample::{error, plain};
/// assert_eq!(error([plain(&[3])], "at least 2 dimensions").message, "at least 2 dimensions");
/// ```
pub fn error(args: impl IntoIterator<Item = SampleArg>, message: &'static str) -> ErrorSample {
    ErrorSample { args: args.into_iter().collect(), message }
}

/// A tensor of the dtype under test, uniform in `low..high`.
///
/// ```
/// use keyway::ops::sample::{Fill, tensor, uniform};
/// assert_eq!(uniform(&[3], 0.0, 1.0), tensor(&[3], Fill::Uniform(0.0, 1.0)));
/// ```
pub fn uniform(sizes: &[usize], low: f64, high: f64) -> SampleArg {
    tensor(sizes, Fill::Uniform(low, high))
}

/// A tensor of the dtype under test, uniform in -2..2.
///
/// ```
/// use keyway::ops::sample::{plain, uniform};
/// assert_eq!(plain(&[3]), uniform(&[3], -2.0, 2.0));
/// ```
pub fn plain(sizes: &[usize]) -> SampleArg {
    uniform(sizes, -2.0, 2.0)
}

/// A tensor of the dtype under test with this fill.
///
/// ```
/// use keyway::ops::sample::{Fill, SampleArg, tensor};
/// let SampleArg::Tensor(made) = tensor(&[2, 3], Fill::Distinct(0.0, 1.0)) else { panic!("a tensor") };
/// assert_eq!(made.sizes, [2, 3]);
/// ```
pub fn tensor(sizes: &[usize], fill: Fill) -> SampleArg {
    SampleArg::Tensor(TensorSample { sizes: sizes.to_vec(), fill, role: Role::Tested })
}

/// A tensor of a fixed dtype with this fill.
///
/// ```
/// use keyway::DType;
/// use keyway::ops::sample::{Fill, Role, SampleArg, fixed};
/// let SampleArg::Tensor(made) = fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0])) else { panic!("a tensor") };
/// assert_eq!(made.role, Role::Fixed(DType::BOOL));
/// ```
pub fn fixed(sizes: &[usize], dtype: DType, fill: Fill) -> SampleArg {
    SampleArg::Tensor(TensorSample { sizes: sizes.to_vec(), fill, role: Role::Fixed(dtype) })
}

/// An i64 tensor of indices below `size`.
///
/// ```
/// use keyway::DType;
/// use keyway::ops::sample::{Fill, fixed, index};
/// assert_eq!(index(&[4], 3), fixed(&[4], DType::I64, Fill::Index(3)));
/// ```
pub fn index(sizes: &[usize], size: i64) -> SampleArg {
    fixed(sizes, DType::I64, Fill::Index(size))
}

/// The samples of an element-wise op of one argument: every rank from 0 to 5, an empty tensor, a single element.
///
/// ```
/// use keyway::ops::sample::{sample, unary, uniform};
/// assert!(unary(0.0, 1.0).contains(&sample([uniform(&[3, 4], 0.0, 1.0)])));
/// ```
pub fn unary(low: f64, high: f64) -> Vec<Sample> {
    unary_of(&Fill::Uniform(low, high), &[])
}

/// [`unary`] with any fill, followed by `rest`.
///
/// ```
/// use keyway::ops::sample::{Fill, SampleArg, unary_of};
/// let calls = unary_of(&Fill::Distinct(0.0, 1.0), &[SampleArg::Int(0)]);
/// assert!(calls.iter().all(|call| call.args.len() == 2));
/// ```
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
///
/// ```
/// use keyway::ops::sample::{PAIRS, binary};
/// assert_eq!(binary().len(), PAIRS.len());
/// ```
pub fn binary() -> Vec<Sample> {
    PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b)])).collect()
}

/// The error samples of an element-wise op of two arguments and `rest`.
///
/// ```
/// use keyway::ops::sample::{SampleArg, broadcast_errors};
/// let calls = broadcast_errors(&[SampleArg::Int(1)]);
/// assert!(calls.iter().all(|call| call.args.len() == 3 && call.message == "do not broadcast"));
/// ```
pub fn broadcast_errors(rest: &[SampleArg]) -> Vec<ErrorSample> {
    let args = |a: &[usize], b: &[usize]| {
        [plain(a), plain(b)].into_iter().chain(rest.iter().cloned()).collect::<Vec<_>>()
    };
    vec![error(args(&[3], &[4]), "do not broadcast"), error(args(&[2, 3], &[2]), "do not broadcast")]
}

/// The error sample of an op that supports every dtype but bool: see [`unary_number`](super::rules::unary_number).
///
/// ```
/// assert_eq!(keyway::ops::sample::refuses_bool()[0].message, "a number dtype");
/// ```
pub fn refuses_bool() -> Vec<ErrorSample> {
    vec![error([fixed(&[2], DType::BOOL, Fill::Values(vec![0.0, 1.0]))], "a number dtype")]
}

/// The error sample of an op that supports only floats, with the arguments `rest`: see
/// [`unary_real`](super::rules::unary_real).
///
/// ```
/// assert_eq!(keyway::ops::sample::refuses_integers(&[])[0].message, "a floating-point dtype");
/// ```
pub fn refuses_integers(rest: &[SampleArg]) -> Vec<ErrorSample> {
    let integers = fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]));
    vec![error([integers].into_iter().chain(rest.iter().cloned()), "a floating-point dtype")]
}

/// The error sample of an op of two tensors that supports only floats: see [`binary_real`](super::rules::binary_real).
///
/// ```
/// assert_eq!(keyway::ops::sample::refuses_integer_pairs()[0].args.len(), 2);
/// ```
pub fn refuses_integer_pairs() -> Vec<ErrorSample> {
    let integers = || fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]));
    vec![error([integers(), integers()], "a floating-point dtype")]
}

//! `gelu`

use super::derived;
use crate::DType;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, unary_of};
use crate::ops::{forms, rules};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Typing};

/// The formula with which [`Tensor::gelu`](crate::Tensor::gelu) computes the normal distribution.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, nn::Approximate};
/// let x = Tensor::new([1.0f32])?;
/// let by = |formula| x.gelu_with(formula)?.item::<f32>();
/// assert!((by(Approximate::None)? - 0.841_345).abs() < 1e-5);
/// assert!((by(Approximate::Tanh)? - 0.841_192).abs() < 1e-5);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Approximate {
    /// Exact, with the error function.
    #[default]
    None,
    /// The approximation `(1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2`.
    Tanh,
}

impl From<Approximate> for Arg<'_> {
    fn from(approximate: Approximate) -> Self {
        match approximate {
            Approximate::None => Arg::Str("none"),
            Approximate::Tanh => Arg::Str("tanh"),
        }
    }
}

forms! {
    /// `x * Φ(x)` of each element `x`, where `Φ` is the cumulative distribution function of the standard normal distribution.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([-100.0f32, 0.0, 100.0])?;
    /// assert_eq!(a.gelu()?.to_vec::<f32>()?, [0.0, 0.0, 100.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    #[doc(alias = "gelu_erf")]
    pub fn gelu(&self), defaults: [Approximate::None.into()];

    /// [`Tensor::gelu`](crate::Tensor::gelu), exact or approximate.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Approximate};
    /// let y = Tensor::new([0.0f32, 1.0])?.gelu_with(Approximate::Tanh)?.to_vec::<f32>()?;
    /// assert!(y[0] == 0.0 && (y[1] - 0.841_192).abs() < 1e-5);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn gelu_with(&self, approximate: Approximate);
}

/// Refuses an invalid `approximate`, argument `i`.
pub(super) fn check(args: &Args<'_>, i: usize) -> RuleResult<()> {
    match args.str(i)? {
        "none" | "tanh" => Ok(()),
        other => Err(Error::Value {
            op: args.name(),
            argument: args.op.schema.param_name(i),
            expected: "`none` or `tanh`".to_string(),
            got: format!("`{other}`"),
        }),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    check(args, 1)?;
    rules::unary_real(args)
}

fn samples() -> Vec<Sample> {
    let fill = Fill::Uniform(-3.0, 3.0);
    [unary_of(&fill, &[SampleArg::Str("none")]), unary_of(&fill, &[SampleArg::Str("tanh")])].concat()
}

fn errors() -> Vec<ErrorSample> {
    let integers = fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]));
    vec![
        error([integers, SampleArg::Str("none")], "a floating-point dtype"),
        error([plain(&[2]), SampleArg::Str("fast")], "`none` or `tanh`"),
    ]
}

/// `gelu`
pub static DEF: OpDef = OpDef::unary(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    rule,
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || super::gelu_backward::DEF.run(&[b.grad(0)?.into(), (&b.input(0)?).into(), b.arg(1)]))
    }),
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(errors)
.decomposed(derived::GELU)
.with(OpFlags::ZERO_PRESERVING);

//! `gelu`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, plain, unary_of};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

/// By which formula [`Tensor::gelu`] computes the normal distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Approximate {
    /// By the error function.
    #[default]
    None,
    /// By `(1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2`.
    Tanh,
}

impl Approximate {
    /// As the op's argument has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Approximate::None => "none",
            Approximate::Tanh => "tanh",
        }
    }
}

impl Tensor {
    /// Each element times the normal distribution's share below it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::ops::pointwise::gelu::Approximate;
    /// let a = Tensor::from_slice(&[-100.0f32, 0.0, 100.0])?;
    /// assert_eq!(a.gelu(Approximate::None)?.to_vec::<f32>()?, [0.0, 0.0, 100.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn gelu(&self, approximate: Approximate) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Str(approximate.name())])
    }
}

/// Refuses what argument `i`, `approximate`, may not be.
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
pub static DEF: OpDef = OpDef {
    schema: "gelu(Tensor self, *, str approximate='none') -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || super::gelu_backward::DEF.run(&[b.grad(0)?.into(), (&b.input(0)?).into(), b.arg(1)]))
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::FLOAT,
    samples,
    errors,
    entry: Entry::new(),
};

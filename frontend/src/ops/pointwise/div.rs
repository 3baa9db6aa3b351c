//! `div`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{
    ErrorSample, Fill, PAIRS, Sample, SampleArg, broadcast_errors, error, fixed, plain, sample, tensor,
};
use crate::{DType, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Rule, Typing};

/// How a quotient is rounded to a whole number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Towards zero.
    Trunc,
    /// Towards negative infinity.
    Floor,
}

impl Rounding {
    fn arg(self) -> Arg<'static> {
        match self {
            Rounding::Trunc => Arg::Str("trunc"),
            Rounding::Floor => Arg::Str("floor"),
        }
    }
}

impl Tensor {
    /// `self / other`, broadcast and promoted. Integers and bool become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_slice(&[1i64, 3])?;
    /// assert_eq!(a.div(2)?.to_vec::<f32>()?, [0.5, 1.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that have no common one, tensors on different devices.
    pub fn div<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into(), Arg::None])
    }

    /// `self / other`, rounded; integers stay integers.
    ///
    /// # Errors
    /// As [`Tensor::div`]; an integer divided by zero; two bool operands.
    pub fn div_rounded<'a>(&'a self, other: impl Into<Arg<'a>>, mode: Rounding) -> Result<Tensor> {
        DEF.run(&[self.into(), other.into(), mode.arg()])
    }

    /// `other / self`.
    #[allow(clippy::missing_errors_doc)]
    pub fn rdiv<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[other.into(), self.into(), Arg::None])
    }

    /// `self /= other`.
    ///
    /// # Errors
    /// As [`Tensor::div`]; a tensor of integers, which cannot hold the quotient.
    pub fn div_<'a>(&'a self, other: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into(), Arg::None])
    }

    /// `self /= other`, rounded.
    #[allow(clippy::missing_errors_doc)]
    pub fn div_rounded_<'a>(&'a self, other: impl Into<Arg<'a>>, mode: Rounding) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), other.into(), mode.arg()])
    }

    /// `out = self / other`.
    #[allow(clippy::missing_errors_doc)]
    pub fn div_out<'a>(&'a self, other: impl Into<Arg<'a>>, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into(), other.into(), Arg::None], out)
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    match args.get(2) {
        Arg::None => rules::binary_float(args),
        Arg::Str("trunc" | "floor") => {
            let typing = rules::binary(args)?;
            rules::require(args, 0, typing.compute, typing.compute != DType::BOOL, "numbers")?;
            Ok(typing)
        }
        other => Err(Error::Value {
            op: args.name(),
            argument: "rounding_mode",
            expected: "`trunc`, `floor` or nothing".to_string(),
            got: other.describe(),
        }),
    }
}

fn samples() -> Vec<Sample> {
    let divisor = |sizes: &[usize]| tensor(sizes, Fill::Values(vec![1.5, -2.0, 3.25, -1.0, 2.5]));
    let pairs = PAIRS.iter().map(move |(a, b)| sample([plain(a), divisor(b), SampleArg::None]));
    let rounded = ["trunc", "floor"].map(|mode| Sample {
        smooth: false,
        ..sample([plain(&[3, 4]), divisor(&[4]), SampleArg::Str(mode)])
    });
    let numbers = [
        sample([plain(&[3, 4]), SampleArg::Int(2), SampleArg::None]),
        sample([SampleArg::Int(2), divisor(&[2, 3]), SampleArg::None]),
    ];
    pairs.chain(rounded).chain(numbers).collect()
}

fn errors() -> Vec<ErrorSample> {
    let ints = |fill| fixed(&[2], DType::I32, fill);
    let mut errors = broadcast_errors(&[SampleArg::None]);
    errors.push(error([plain(&[2]), plain(&[2]), SampleArg::Str("up")], "`trunc`, `floor`"));
    let zeros = Fill::Values(vec![0.0]);
    errors.push(error([ints(Fill::Index(5)), ints(zeros), SampleArg::Str("floor")], "divided by zero"));
    errors
}

/// `div`
pub static DEF: OpDef = OpDef {
    schema: "div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST_TWO, rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| {
            if b.is_given(2) {
                g.set(0, || b.grad(0)?.zeros_like())?;
                return g.set(1, || b.grad(0)?.zeros_like());
            }
            g.set(0, || b.grad(0)?.div(b.saved(1)?.arg()))?;
            g.set(1, || {
                let other = b.input(1)?;
                let slope = DEF.run(&[b.saved(0)?.arg(), (&other).into(), Arg::None])?.div(&other)?;
                b.grad(0)?.mul(&slope)?.mul(-1)
            })
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples,
    errors,
    entry: Entry::new(),
};

//! `dot`
//!
//! Arguments:
//! - `tensor`: the second vector.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules::FIRST_TWO;
use crate::ops::sample::{Sample, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The dot product of two vectors.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32, 2.0, 3.0])?;
    /// assert_eq!(a.dot(&a)?.item::<f32>()?, 14.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors that are not vectors of equal length.
    #[doc(alias = "inner")]
    pub fn dot(&self, tensor: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), tensor.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (a, b) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes());
    let wrong = |argument, expected: String, got: &[usize]| {
        Err(Error::Shape { op: args.name(), argument, expected, got: got.into() })
    };
    let &[n] = a else { return wrong("self", "a vector".into(), a) };
    if b != [n] {
        return wrong("tensor", format!("a vector of {n} elements"), b);
    }
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, Dims::new(), dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn samples() -> Vec<Sample> {
    [3, 1, 0, 70].iter().map(|&n| sample([plain(&[n]), plain(&[n])])).collect()
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    tensor(args, 0)?.unsqueeze(0)?.mm(&tensor(args, 1)?.unsqueeze(1)?)?.reshape_as_sizes(&[])
}

/// `dot`
pub static DEF: OpDef = OpDef::new(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || b.grad(0)?.mul(b.saved(1)?.arg()))?;
            g.set(1, || b.grad(0)?.mul(b.saved(0)?.arg()))
        },
    },
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![error([plain(&[3]), plain(&[2])], "3 elements"), error([plain(&[2, 3]), plain(&[3])], "a vector")]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::HOLOMORPHIC);

//! `mv`
//!
//! Arguments:
//! - `vec`: the vector.

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
    /// A matrix times a vector, `[n, k]` by `[k]` to `[n]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(a.mv(&Tensor::new([1.0f32, 10.0])?)?.to_vec::<f32>()?, [21.0, 43.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors that are not a matrix and a vector, or whose sizes differ.
    pub fn mv(&self, vec: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), vec.into()])
    }

    /// [`Tensor::mv`] written to `out`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// let mut out = Tensor::empty(2)?;
    /// a.mv_out(&Tensor::new([10.0f32, 1.0])?, &mut out)?;
    /// assert_eq!(out.to_vec::<f32>()?, [12.0, 34.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn mv_out(&self, vec: &Tensor, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into(), vec.into()], out)
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (a, x) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes());
    let wrong = |argument, expected: String, got: &[usize]| {
        Err(Error::Shape { op: args.name(), argument, expected, got: got.into() })
    };
    let &[n, k] = a else { return wrong("self", "a matrix".into(), a) };
    if x != [k] {
        return wrong("vec", format!("a vector of {k} elements, as `self` has {k} columns"), x);
    }
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, Dims::from_slice(&[n]), dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn samples() -> Vec<Sample> {
    [[2, 3], [1, 1], [5, 1], [0, 3], [2, 0]]
        .iter()
        .map(|[n, k]| sample([plain(&[*n, *k]), plain(&[*k])]))
        .collect()
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    tensor(args, 0)?.mm(&tensor(args, 1)?.unsqueeze(1)?)?.squeeze(1)
}

/// `mv`
pub static DEF: OpDef = OpDef::new(
    "mv(Tensor self, Tensor vec) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0b11,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || match b.input(0)? {
                a if a.as_ref().is_strided() => b.grad(0)?.outer(&b.input(1)?),
                a => a.detach().sampled_mm(&b.grad(0)?.unsqueeze(1)?, &b.input(1)?.unsqueeze(0)?),
            })?;
            g.set(1, || b.input(0)?.t()?.mv(b.grad(0)?))
        },
    },
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![error([plain(&[2, 3]), plain(&[2])], "3 elements"), error([plain(&[3]), plain(&[3])], "a matrix")]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST)
.with(OpFlags::HOLOMORPHIC);

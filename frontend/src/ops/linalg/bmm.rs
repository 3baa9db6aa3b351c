//! `bmm`

use super::mm::{product_at, product_plan};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::rules::FIRST_TWO;
use crate::ops::sample::{Sample, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule};

forms! {
    /// The batched matrix product, `[b, n, k]` by `[b, k, m]` to `[b, n, m]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 1, 2))?;
    /// assert_eq!(a.bmm(&a.transpose(1, 2)?)?.to_vec::<f32>()?, [5.0, 25.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors that are not batches of matrices, or of incompatible sizes.
    pub fn bmm(&self, mat2: &Tensor), out: bmm_out {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([[[1.0f32, 2.0]], [[3.0, 4.0]]])?;
        /// let mut out = Tensor::empty((2, 1, 1))?;
        /// a.bmm_out(&a.transpose(1, 2)?, &mut out)?;
        /// assert_eq!(out.to_vec::<f32>()?, [5.0, 25.0]);
        /// # Ok(()) }
        /// ```
    };
}

/// The sizes of the products of arguments `i` and `j`.
///
/// # Errors
/// `Shape`.
pub(super) fn product_sizes(args: &Args<'_>, i: usize, j: usize) -> RuleResult<Dims> {
    let (a, b) = (args.tensor(i)?.sizes(), args.tensor(j)?.sizes());
    let wrong = |at: usize, expected: String, got: &[usize]| {
        let argument = args.op.schema.param_name(at);
        Err(Error::Shape { op: args.name(), argument, expected, got: got.into() })
    };
    let &[count, n, k] = a else { return wrong(i, "a batch of matrices, [b, n, k]".into(), a) };
    let &[other, inner, m] = b else { return wrong(j, "a batch of matrices, [b, k, m]".into(), b) };
    if count != other || k != inner {
        return wrong(j, format!("of shape [{count}, {k}, _], to fit {a:?}"), b);
    }
    Ok(Dims::from_slice(&[count, n, m]))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    product_plan(args, product_sizes(args, 0, 1)?)
}

fn samples() -> Vec<Sample> {
    [[2, 2, 3, 4], [1, 1, 1, 1], [3, 5, 1, 3], [0, 2, 3, 2], [2, 2, 0, 3]]
        .iter()
        .map(|[b, n, k, m]| sample([plain(&[*b, *n, *k]), plain(&[*b, *k, *m])]))
        .collect()
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (a, b, dtype) = (tensor(args, 0)?, tensor(args, 1)?, args.promote(FIRST_TWO)?);
    if !a.as_ref().is_strided() && !b.as_ref().is_strided() {
        let reason = "has no kernel for these two stacks of matrices; convert one with `to_dense()` first";
        return Err(Error::Layout { op: args.name(), layout: a.layout(), reason }.into());
    }
    let made = Tensor::uninit(&product_sizes(args, 0, 1)?, (dtype, a.device()))?;
    for i in 0..made.shape()[0] as i64 {
        made.select(0, i)?.copy_(&a.select(0, i)?.mm(&b.select(0, i)?)?)?;
    }
    Ok(made)
}

/// `bmm`
pub static DEF: OpDef = OpDef::new(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || product_at(&b.input(0)?, b.grad(0)?, &b.input(1)?.transpose(1, 2)?))?;
        g.set(1, || product_at(&b.input(1)?, &b.input(0)?.transpose(1, 2)?, b.grad(0)?))
    }),
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![
        error([plain(&[1, 2, 3]), plain(&[1, 4, 2])], "[1, 3, _]"),
        error([plain(&[2, 2, 3]), plain(&[1, 3, 2])], "[2, 3, _]"),
        error([plain(&[2, 3]), plain(&[1, 3, 2])], "batch of matrices"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST)
.with(OpFlags::HOLOMORPHIC);

//! `mm`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::forms;
use crate::ops::rules::FIRST_TWO;
use crate::ops::sample::{Sample, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

forms! {
    /// The product of two matrices, `[n, k]` by `[k, m]` to `[n, m]`, without broadcasting; see [`Tensor::matmul`] for that.
    /// For sparse matrices the CPU kernel adds up to 1024 products per element sequentially in f32, with an error of at most
    /// `1026 * 2^-24` times the sum of their magnitudes; the sums of such blocks are added in f64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(a.mm(&a)?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors that are not matrices, or whose inner sizes differ.
    pub fn mm(&self, other: &Tensor), out: mm_out {
        /// ```
        /// # fn main() -> keyway::Result<()> {
        /// use keyway::Tensor;
        /// let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
        /// let mut out = Tensor::empty((2, 2))?;
        /// a.mm_out(&a, &mut out)?;
        /// assert_eq!(out.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
        /// # Ok(()) }
        /// ```
    };
}

/// The sizes of the product of arguments `i` and `j`.
///
/// # Errors
/// `Shape`.
pub(super) fn product_sizes(args: &Args<'_>, i: usize, j: usize) -> RuleResult<Dims> {
    let (a, b) = (args.tensor(i)?.sizes(), args.tensor(j)?.sizes());
    let name = |at| args.op.schema.param_name(at);
    let wrong = |at, expected: String, got: &[usize]| {
        Err(Error::Shape { op: args.name(), argument: name(at), expected, got: got.into() })
    };
    let &[n, k] = a else { return wrong(i, "a matrix".into(), a) };
    let &[inner, m] = b else { return wrong(j, "a matrix".into(), b) };
    if k != inner {
        return wrong(j, format!("a matrix of {k} rows, as `{}` has {k} columns", name(i)), b);
    }
    Ok(Dims::from_slice(&[n, m]))
}

/// The product of two matrices, or of two batches of matrices.
pub(in crate::ops) fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.rank() == 2 { a.mm(b) } else { a.bmm(b) }
}

/// The gradient `a @ b` of one operand of a product: for a sparse operand only its stored entries, if its backend computes
/// those.
pub(super) fn product_at(of: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if of.as_ref().is_strided() {
        return product_like(of, a, b);
    }
    match of.detach().sampled_mm(a, b) {
        Err(crate::Error::Dispatch(Error::MissingKernel(_))) => product(a, b),
        made => made,
    }
}

/// `a @ b` with the strides of `like`: a gradient with the strides of its tensor is accumulated without a strided pass.
pub(super) fn product_like(like: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match like.strides() {
        &[1, column] if column > 1 => b.t()?.mm(&a.t()?)?.t(),
        _ => product(a, b),
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    product_plan(args, product_sizes(args, 0, 1)?)
}

/// The plan of a product of arguments 0 and 1 with these sizes; both are promoted.
pub(super) fn product_plan(args: &Args<'_>, sizes: Dims) -> RuleResult<Plan> {
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn samples() -> Vec<Sample> {
    [[2, 3, 4], [1, 1, 1], [5, 1, 3], [3, 3, 3], [0, 3, 2], [2, 0, 3]]
        .iter()
        .map(|[n, k, m]| sample([plain(&[*n, *k]), plain(&[*k, *m])]))
        .collect()
}

/// `mm`
pub static DEF: OpDef = OpDef::new(
    "mm(Tensor self, Tensor other) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b11, |b, g| {
        g.set(0, || match b.input(0)? {
            a if a.as_ref().is_strided() => b.grad(0)?.mm(&b.input(1)?.t()?),
            a => product_at(&a, b.grad(0)?, &b.input(1)?.t()?),
        })?;
        g.set(1, || match (b.input(0)?, b.input(1)?) {
            // Reads the coordinates in their order: exchanging rows and columns would require a new sort.
            (a, other) if a.is_coordinates() && other.as_ref().is_strided() => b.grad(0)?.t()?.mm(&a)?.t(),
            (a, other) => product_at(&other, &a.t()?, b.grad(0)?),
        })
    }),
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![error([plain(&[2, 3]), plain(&[4, 2])], "3 rows"), error([plain(&[3]), plain(&[3, 2])], "a matrix")]
})
.with(OpFlags::AUTOCAST)
.with(OpFlags::HOLOMORPHIC);

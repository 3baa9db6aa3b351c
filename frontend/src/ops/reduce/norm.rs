//! `norm`
//!
//! Arguments:
//! - `p`: the order of the norm; infinities are the maximum and the minimum of magnitudes, 0 the count of nonzeros.

use super::forms::reduction;
use crate::Tensor;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules::{keeping, reduced_dims, reduced_sizes, wrong_value};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor};
use crate::ops::sparse::lines::at_entries;
use crate::tensor::IntoDims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

reduction! {
    /// The Euclidean norm over `dims`, or of all elements with `..`. The gradient where the norm is 0 is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([3.0f32, -4.0])?;
    /// assert_eq!(x.norm(0)?.item::<f32>()?, 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// The norm of a complex tensor is that of its moduli, and real.
    ///
    /// For a sparse tensor, elements that are not stored count as 0, also for a `p` of minus infinity or 0; duplicates are
    /// added first.
    ///
    /// # Errors
    /// A dtype that is neither a float nor complex; a dimension out of range or given twice.
    #[doc(alias = "vector_norm")]
    pub fn norm(x; dims, keepdim) -> Tensor {
        DEF.run(&[(&magnitudes(x)?).into(), Arg::Float(2.0), dims, keepdim])
    }
    keepdim: norm_keepdim, all: norm_all
}

impl Tensor {
    /// The `p`-norm over `dims`, or of all elements with `..`: `(Σ |x|^p)^(1/p)`; the largest magnitude for infinity, the
    /// smallest for minus infinity, the number of nonzero elements for 0. The gradient where the norm is 0 is 0 for every `p`.
    /// With `keepdim` the reduced dimensions are retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[3.0f32, -4.0]])?;
    /// assert_eq!(x.norm_with(1.0, .., false)?.item::<f32>()?, 7.0);
    /// assert_eq!(x.norm_with(f64::INFINITY, 1, true)?.to_vec2::<f32>()?, [[4.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::norm`].
    pub fn norm_with(&self, p: f64, dims: impl IntoDims, keepdim: bool) -> Result<Tensor> {
        DEF.run(&[
            (&magnitudes(self)?).into(),
            Arg::Float(p),
            Arg::Ints(&dims.into_dims()),
            Arg::Bool(keepdim),
        ])
    }
}

/// The moduli of complex numbers, whose norm is that of the numbers.
fn magnitudes(x: &Tensor) -> Result<Tensor> {
    if x.is_complex() { x.abs() } else { Ok(x.clone()) }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = float_tensor(args, 0)?;
    if args.float(1)?.is_nan() {
        return Err(wrong_value(args, 1, "a number other than NaN".into()));
    }
    let mask = reduced_dims(args, 2, t.ndim())?;
    Ok(keeping(t, t.dtype(), reduced_sizes(t.sizes(), mask, args.bool(3)?), t.dtype()))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dims: Option<&[i64]>, keep| {
        let dims = dims.map_or(SampleArg::None, |d| SampleArg::Ints(d.to_vec()));
        sample([tensor(sizes, Fill::Distinct(0.3, 2.0)), SampleArg::Float(2.0), dims, SampleArg::Bool(keep)])
    };
    let with = |p: f64| {
        let x = tensor(&[3, 4], Fill::Distinct(0.3, 2.0));
        sample([x, SampleArg::Float(p), SampleArg::Ints(vec![1]), SampleArg::Bool(false)])
    };
    let zeros = |p: f64| {
        let x = tensor(&[2, 3], Fill::Values(vec![0.0, 0.0, 0.0, 0.5, 0.0, -1.5]));
        let args = [x, SampleArg::Float(p), SampleArg::Ints(vec![1]), SampleArg::Bool(false)];
        Sample { smooth: false, ..sample(args) }
    };
    // The powers overflow f32, but the norm does not.
    let far = |p: f64, x: &[f64]| {
        let x = tensor(&[2, 3], Fill::Values(x.to_vec()));
        let args = [x, SampleArg::Float(p), SampleArg::Ints(vec![1]), SampleArg::Bool(false)];
        Sample { smooth: false, ..sample(args) }
    };
    vec![
        call(&[], None, false),
        call(&[7], None, false),
        call(&[3, 4], None, true),
        call(&[3, 4], Some(&[0]), false),
        call(&[3, 4], Some(&[-1]), true),
        call(&[2, 3, 4], Some(&[0, 2]), false),
        call(&[2, 3, 2, 2], Some(&[1, -1]), true),
        call(&[2, 1, 2, 3, 2], Some(&[0, 3]), false),
        call(&[0, 3], Some(&[1]), false),
        with(1.0),
        with(3.0),
        with(f64::INFINITY),
        with(f64::NEG_INFINITY),
        with(0.0),
        zeros(1.0),
        zeros(2.0),
        zeros(3.0),
        zeros(0.5),
        zeros(f64::INFINITY),
        far(2.0, &[3e20, 1.0, -4e20, 1.0, 2.0, 2.0]),
        far(2.0, &[3e-25, 0.0, -4e-25, 1.0, 2.0, 2.0]),
        far(3.0, &[3e20, 1.0, -4e20, 1.0, 2.0, 2.0]),
        far(1.5, &[3e-35, 0.0, -4e-35, 1.0, 2.0, 2.0]),
    ]
}

/// `t / by`, and 0 where `by` is 0.
fn over(t: &Tensor, by: &Tensor) -> Result<Tensor> {
    let none = by.eq(0.0)?;
    none.where_cond(0.0, &t.div(&none.where_cond(1.0, by)?)?)
}

/// The gradient of `x` from the norm of its line and the gradient of the norm; `sum_of` sums over the line.
///
/// Where the norm is 0 the derivatives of all orders are defined as 0: there is no division by 0. An element is divided by the
/// norm before it is multiplied by the gradient: the quotient is at most 1, while the gradient over a very small or large norm
/// may overflow or underflow.
fn slope(
    x: &Tensor,
    [norm, grad]: [&Tensor; 2],
    p: f64,
    sum_of: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if p == 1.0 {
        return grad.mul(&x.sign()?);
    }
    if p == 2.0 {
        let none = norm.eq(0.0)?;
        return x.div(&none.where_cond(1.0, norm)?)?.mul(&none.where_cond(0.0, grad)?);
    }
    if p.is_infinite() {
        let ties = x.abs()?.eq(norm)?.to_dtype(x.dtype())?;
        return over(grad, &sum_of(&ties)?)?.mul(&ties)?.mul(&x.sign()?);
    }
    // `(|x| / norm)^(p - 1)`; 0 where `x` is 0, whose powers may be infinite. For powers of at most 1, element and norm are
    // raised separately: those are in range, while the quotient of a small element by a large norm may underflow.
    if p > 0.0 && p < 2.0 {
        let size = x.abs()?;
        let none = size.eq(0.0)?;
        let power = none.where_cond(1.0, &size)?.pow(p - 1.0)?;
        let of_norm = norm.eq(0.0)?.where_cond(1.0, norm)?.pow(p - 1.0)?;
        let share = none.where_cond(0.0, &power)?.div(&of_norm)?;
        return share.mul(&x.sign()?)?.mul(grad);
    }
    let share = over(&x.abs()?, norm)?;
    let none = share.eq(0.0)?;
    none.where_cond(0.0, &none.where_cond(1.0, &share)?.pow(p - 1.0)?)?.mul(&x.sign()?)?.mul(grad)
}

fn gradient(b: &Backward<'_>) -> Result<Tensor> {
    let (x, p) = (b.input(0)?, b.float(1)?);
    if p == 0.0 {
        return x.zeros_like();
    }
    let dims = if let Arg::Ints(dims) = b.arg(2) { dims } else { &[] };
    if x.as_ref().is_strided() {
        // At least in f32: the quotient by a small norm may overflow f16.
        let of_lines = |t: &Tensor| b.unsqueeze_reduced(&widened(t)?, 0, b.arg(2), b.bool(3)?);
        let (norm, grad) = (of_lines(&b.output(0)?)?, of_lines(b.grad(0)?)?);
        return slope(&widened(&x)?, [&norm, &grad], p, |ties| ties.sum_keepdim(dims));
    }
    // The stored values of a sparse tensor, coalesced.
    let x = x.without_duplicates()?;
    let pattern = x.detach();
    let of_lines = |t: &Tensor| widened(&at_entries(&pattern, t, b.arg(2), b.bool(3)?)?);
    let (norm, grad) = (of_lines(&b.output(0)?)?, of_lines(b.grad(0)?)?);
    let made = slope(&widened(&x.stored()?)?, [&norm, &grad], p, |ties| {
        let ties = x.map_stored_as(ties.dtype(), |_| Ok(ties.clone()))?;
        at_entries(&pattern, &ties.sum_keepdim(dims)?, b.arg(2), true)
    })?;
    x.with_stored(&cast(made, x.dtype())?)
}

/// `norm`
pub static DEF: OpDef = OpDef::new(
    "norm(Tensor self, Scalar p=2, int[]? dim=None, bool keepdim=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula { saves: 0b1, saves_outputs: 0b1, formula: |b, g| g.set(0, || gradient(b)) },
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    vec![
        error(
            [plain(&[3]), SampleArg::Float(2.0), SampleArg::Ints(vec![1]), SampleArg::Bool(false)],
            "out of range",
        ),
        error(
            [plain(&[3, 3]), SampleArg::Float(2.0), SampleArg::Ints(vec![0, -2]), SampleArg::Bool(false)],
            "different dimensions",
        ),
        error(
            [plain(&[3]), SampleArg::Float(f64::NAN), SampleArg::None, SampleArg::Bool(false)],
            "`p` must be a number other than NaN, but got the number NaN",
        ),
    ]
})
.with(OpFlags::AUTOCAST_F32);

//! `logcumsumexp`

use super::scan::running;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, in_format_of, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::{keeping, unary_real};
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, refuses_integers, sample, tensor as filled};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::op::{Arg, Args, Rule};

impl Tensor {
    /// `log(cumsum(exp(x)))` along `dim`, without overflow: the cumulative sum in log space.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1000.0f64, 1000.0])?;
    /// assert_eq!(x.logcumsumexp(0)?.to_vec::<f64>()?, [1000.0, 1000.0 + std::f64::consts::LN_2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range.
    pub fn logcumsumexp(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64())])
    }
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (t, dim) = (tensor(args, 0)?, args.int(1)?);
    let made = running(vec![widened(&t)?], dim, |before, after| Ok(vec![before[0].logaddexp(&after[0])?]))?;
    let made = made.into_iter().next().map_or_else(|| t.copy(), |made| cast(made, t.dtype()))?;
    in_format_of(&t, if made.shares_storage(&t) { made.copy()? } else { made })
}

/// `a - b`, and 0 where both are the same infinity.
fn apart(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.eq(b)?.where_cond(0, &a.sub(b)?)
}

/// The result in two parts: the cumulative maximum, detached, and the logarithm of the sum relative to it. The rounding error
/// of their sum, the result itself, would be amplified by the exponential.
fn parts(x: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    let greatest = x.detach();
    let rest = greatest.isinf()?.where_cond(0, &x.sub(&greatest)?)?;
    let made = running(vec![greatest, rest], dim, |before, after| {
        let greatest = before[0].maximum(&after[0])?;
        let over = |parts: &[Tensor]| parts[1].add(&apart(&parts[0], &greatest)?);
        let rest = over(before)?.logaddexp(&over(after)?)?;
        Ok(vec![greatest, rest])
    })?;
    Ok((made[0].clone(), made[1].clone()))
}

/// With the result `out`: the gradient of element `j` is the sum of `exp(x[j] - out[i]) grad[i]` over `i >= j`. As `out` is
/// ascending, all factors of the recurrence `h[j] = grad[j] + exp(out[j] - out[j + 1]) h[j + 1]` are at most 1; it is computed
/// by a parallel scan. Elements of minus infinity do not contribute, as in `logsumexp`.
fn gradient(x: &Tensor, grad: &Tensor, dim: i64) -> Result<Tensor> {
    let x = widened(x)?;
    let n = if x.rank() == 0 { 1 } else { x.dim(dim)? };
    let (greatest, rest) = parts(&x, dim)?;
    let (mut sum, mut step) = (widened(grad)?, 1);
    while step < n {
        let at = |t: &Tensor, start: usize| t.narrow(dim, start, n - step);
        let ahead = apart(&at(&greatest, 0)?, &at(&greatest, step)?)?;
        let factor = ahead.add(&at(&rest, 0)?.sub(&at(&rest, step)?)?)?.exp()?;
        let joined = at(&sum, 0)?.add(&factor.mul(&at(&sum, step)?)?)?;
        sum = Tensor::cat(&[&joined, &sum.narrow(dim, (n - step) as i64, step)?], dim)?;
        step *= 2;
    }
    let greatest = greatest.eq(f64::NEG_INFINITY)?.where_cond(0, &greatest)?;
    x.sub(&greatest)?.sub(&rest)?.exp()?.mul(&sum)
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim| sample([plain(sizes), SampleArg::Int(dim)]);
    let far = filled(&[2, 6], Fill::Values(vec![-700.0, 1000.0, 999.0, 30.0, 1001.0, 1001.0, -1000.0]));
    let apart = Sample { smooth: false, ..sample([far, SampleArg::Int(1)]) };
    vec![
        call(&[], 0),
        call(&[1], 0),
        call(&[7], -1),
        call(&[3, 4], 0),
        call(&[3, 4], 1),
        call(&[2, 3, 4], 1),
        call(&[2, 5, 2, 3], -3),
        call(&[2, 1, 2, 3, 2], 3),
        call(&[2, 0, 4], 1),
        call(&[100], 0),
        apart,
    ]
}

/// `logcumsumexp`
pub static DEF: OpDef = OpDef::new(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    Rule::Structured(|args| {
        let (t, dtype) = (args.tensor(0)?, unary_real(args)?.compute);
        args.dim(1, t.ndim())?;
        Ok(keeping(t, dtype, Dims::from_slice(t.sizes()), dtype))
    }),
    Derivative::of_inputs(0b1, |b, g| g.set(0, || gradient(&b.input(0)?, b.grad(0)?, b.int(1)?))),
    samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let mut errors = vec![error([plain(&[3]), SampleArg::Int(1)], "out of range")];
    errors.extend(refuses_integers(&[SampleArg::Int(0)]));
    errors
})
.decomposed(|args| one(compose(args)));

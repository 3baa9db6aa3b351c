//! `tensordot`
//!
//! Arguments:
//! - `dims_self`: the dimensions of `self` that are reduced.
//! - `dims_other`: the dimensions of `other` that are reduced, in the same order.

use crate::error::{Result, called};
use crate::ops::composite::{cast, one, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules::{FIRST_TWO, require, wrong_value};
use crate::ops::sample::{ErrorSample, Sample, SampleArg, error, plain, sample};
use crate::tensor::IntoShape;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The tensor contraction over pairs of dimensions, `dims[k]` of this tensor with `other_dims[k]` of `other`; the result
    /// has the remaining dimensions of this tensor, then those of the other. One dimension of a pair may be of size 1 and is
    /// expanded.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(a.tensordot(&a, &[0], &[1])?.to_vec::<f32>()?, [7.0, 15.0, 10.0, 22.0]);
    /// assert_eq!(a.tensordot_inner(&a, 2)?.item::<f32>()?, 30.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Lists of different lengths; a dimension out of range or given twice; sizes that differ.
    pub fn tensordot(
        &self,
        other: &Tensor,
        dims: impl IntoShape,
        other_dims: impl IntoShape,
    ) -> Result<Tensor> {
        let (dims, other_dims) = (dims.into_ints(), other_dims.into_ints());
        DEF.run(&[self.into(), other.into(), Arg::Ints(&dims), Arg::Ints(&other_dims)])
    }

    /// [`Tensor::tensordot`] of the last `count` dimensions of this tensor with the first `count` of `other`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::ones((5, 2, 3))?, Tensor::ones((2, 3, 4))?);
    /// let product = a.tensordot_inner(&b, 2)?;
    /// assert_eq!((product.shape(), product.mean_all()?.item::<f32>()?), (&[5, 4][..], 6.0));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn tensordot_inner(&self, other: &Tensor, count: usize) -> Result<Tensor> {
        called("tensordot_inner", &["self", "other"], || {
            let most = self.rank().min(other.rank());
            let count = i64::try_from(count).ok().filter(|_| count <= most).ok_or_else(|| Error::Value {
                op: "tensordot_inner",
                argument: "count",
                expected: format!("{most} or less, as many dimensions as both tensors have"),
                got: count.to_string(),
            })?;
            let (own, first): (Vec<i64>, Vec<i64>) = ((-count..0).collect(), (0..count).collect());
            self.tensordot(other, &own, &first)
        })
    }
}

/// The dimensions in argument `i`, as non-negative indices, and the remaining dimensions of a tensor of these sizes.
fn dims(args: &Args<'_>, i: usize, sizes: &[usize]) -> RuleResult<(Vec<usize>, Vec<usize>)> {
    let given = args.ints(i)?.iter().map(|&d| {
        // A 0-d tensor has no dimension to contract, not even the one that index 0 or -1 names.
        if sizes.is_empty() {
            Err(Error::Dim { op: args.name(), dim: d, ndim: 0 })
        } else {
            wrap_dim(args.name(), d, sizes.len())
        }
    });
    let given = given.collect::<RuleResult<Vec<usize>>>()?;
    if given.iter().enumerate().any(|(k, d)| given[..k].contains(d)) {
        return Err(wrong_value(args, i, "different dimensions".into()));
    }
    let free = (0..sizes.len()).filter(|d| !given.contains(d)).collect();
    Ok((given, free))
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    require(args, 0, a.dtype(), a.dtype() != DType::BOOL || b.dtype() != DType::BOOL, "a number dtype")?;
    let (summed_a, free_a) = dims(args, 2, a.sizes())?;
    let (summed_b, free_b) = dims(args, 3, b.sizes())?;
    if summed_a.len() != summed_b.len() {
        let expected = format!("{} dimensions, as in `dims_self`", summed_a.len());
        return Err(wrong_value(args, 3, expected));
    }
    for (&i, &j) in summed_a.iter().zip(&summed_b) {
        let (m, n) = (a.sizes()[i], b.sizes()[j]);
        if m != n && m != 1 && n != 1 {
            let expected =
                format!("dimensions of the sizes of those in `dims_self`; {j} is of size {n}, not {m}");
            return Err(wrong_value(args, 3, expected));
        }
    }
    let mut sizes: Dims = free_a.iter().map(|&d| a.sizes()[d]).collect();
    sizes.extend(free_b.iter().map(|&d| b.sizes()[d]));
    let dtype = args.promote(FIRST_TWO)?;
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = FIRST_TWO;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (mut a, mut b) = (tensor(args, 0)?, tensor(args, 1)?);
    let (summed_a, free_a) = dims(args, 2, a.shape())?;
    let (summed_b, free_b) = dims(args, 3, b.shape())?;
    for (&i, &j) in summed_a.iter().zip(&summed_b) {
        match (a.shape()[i], b.shape()[j]) {
            (m, n) if m == n => {}
            // The products of an expanded element have the sum of the other factors as a common factor; integers are not
            // widened.
            (1, _) => b = cast(b.sum_keepdim(j as i64)?, b.dtype())?,
            _ => a = cast(a.sum_keepdim(i as i64)?, a.dtype())?,
        }
    }
    let as_matrix = |t: &Tensor, order: [&[usize]; 2]| -> Result<Tensor> {
        let all: Vec<i64> = order.concat().into_iter().map(|d| d as i64).collect();
        let sizes = order.map(|dims| dims.iter().map(|&d| t.shape()[d]).product());
        t.permute(&all)?.reshape_as_sizes(&sizes)
    };
    let mut sizes: Dims = free_a.iter().map(|&d| a.shape()[d]).collect();
    sizes.extend(free_b.iter().map(|&d| b.shape()[d]));
    as_matrix(&a, [&free_a, &summed_a])?.mm(&as_matrix(&b, [&summed_b, &free_b])?)?.reshape_as_sizes(&sizes)
}

fn call(a: &[usize], b: &[usize], dims: &[i64], other: &[i64]) -> [SampleArg; 4] {
    [plain(a), plain(b), SampleArg::Ints(dims.to_vec()), SampleArg::Ints(other.to_vec())]
}

fn samples() -> Vec<Sample> {
    vec![
        sample(call(&[], &[], &[], &[])),
        sample(call(&[3], &[3], &[0], &[0])),
        sample(call(&[2], &[3], &[], &[])),
        sample(call(&[2, 3], &[3, 4], &[1], &[0])),
        sample(call(&[2, 3, 4], &[4, 2, 3], &[0, -1], &[1, 0])),
        sample(call(&[2, 1], &[3, 4], &[1], &[0])),
        sample(call(&[2, 3], &[1, 4], &[1], &[0])),
        sample(call(&[2, 1, 2, 3], &[3, 2], &[2, 3], &[1, 0])),
        sample(call(&[1, 2, 1, 2, 2], &[2, 2], &[1], &[0])),
        sample(call(&[2, 0], &[0, 3], &[1], &[0])),
        sample(call(&[0, 2], &[2, 3], &[1], &[0])),
    ]
}

fn errors() -> Vec<ErrorSample> {
    vec![
        error(call(&[2, 3], &[2, 3], &[1], &[]), "1 dimensions"),
        error(call(&[2, 3], &[2, 3], &[1], &[0]), "is of size 2, not 3"),
        error(call(&[2, 3], &[2, 3], &[2], &[0]), "out of range"),
        error(call(&[2, 2], &[2, 2], &[0, -2], &[0, 1]), "different dimensions"),
    ]
}

/// `tensordot`
pub static DEF: OpDef = OpDef::new(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(errors)
.decomposed(|args| one(compose(args)));

//! `index_put`
//!
//! Arguments:
//! - `indices`: index tensors, one for each of `dims`.
//! - `dims`: the dimensions that the indices index, ascending.
//! - `values`: the values that are written, broadcast to the shape of the selection.
//! - `accumulate`: whether values are added, rather than written.

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{kept, same_dtype, wrong_shape};
use crate::ops::index::index::{at, indexed_shape, indices, resolve};
use crate::ops::sample::{Fill, Role, Sample, SampleArg, TensorSample, error, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::{Dims, broadcast};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Writes `values`, a tensor or a number, to the elements that `indices` select (see [`Tensor::index`]), on a copy of this
    /// tensor. Values are broadcast to the shape that `index` returns; with duplicate indices the last value wins.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let at = Tensor::new([0i64, 0, -1])?;
    /// assert_eq!(a.index_put(&[Some(&at)], 10)?.to_vec::<i32>()?, [10, 2, 10]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::index`]; values that do not broadcast, or of another dtype.
    pub fn index_put<'a>(
        &'a self,
        indices: &[Option<&Tensor>],
        values: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        self.index_put_with(indices, values, false)
    }

    /// [`Tensor::index_put`], or with `accumulate` adds the values to the elements, in order, whatever the number of threads;
    /// sums are as accurate as those of [`Tensor::scatter_add`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// let at = Tensor::new([0i64, 0, -1])?;
    /// assert_eq!(a.index_put_with(&[Some(&at)], 10, true)?.to_vec::<i32>()?, [21, 2, 13]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::index_put`].
    pub fn index_put_with<'a>(
        &'a self,
        indices: &[Option<&Tensor>],
        values: impl Into<Arg<'a>>,
        accumulate: bool,
    ) -> Result<Tensor> {
        called("index_put", &["self", "indices", "values", "accumulate"], || {
            let (indices, dims) = resolve(self, "index_put", indices)?;
            put_at(self, &indices, &dims, values.into(), accumulate)
        })
    }

    /// [`Tensor::index_put`] in place: `self[indices] = values`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, at) = (Tensor::new([1, 2, 3])?, Tensor::new([2i64, 2])?);
    /// a.index_put_(&[Some(&at)], 10)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 10]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn index_put_<'a>(
        &'a self,
        indices: &[Option<&Tensor>],
        values: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        self.index_put_with_(indices, values, false)
    }

    /// [`Tensor::index_put_with`] in place: `self[indices] += values` with `accumulate`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, at) = (Tensor::new([1, 2, 3])?, Tensor::new([2i64, 2])?);
    /// a.index_put_with_(&[Some(&at)], 10, true)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 23]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn index_put_with_<'a>(
        &'a self,
        indices: &[Option<&Tensor>],
        values: impl Into<Arg<'a>>,
        accumulate: bool,
    ) -> Result<Tensor> {
        called("index_put", &["self", "indices", "values", "accumulate"], || {
            let (indices, dims) = resolve(self, "index_put", indices)?;
            let list: Vec<_> = indices.iter().map(|i| i.as_ref()).collect();
            let rest = [Arg::Tensors(&list), Arg::Ints(&dims), values.into(), Arg::Bool(accumulate)];
            DEF.run_in_place(&[self.into(), rest[0], rest[1], rest[2], rest[3]])
        })
    }
}

/// Calls `index_put` with an integer tensor for each of `dims`.
pub(super) fn put_at(
    t: &Tensor,
    indices: &[Tensor],
    dims: &[i64],
    values: Arg<'_>,
    accumulate: bool,
) -> Result<Tensor> {
    let list: Vec<_> = indices.iter().map(|i| i.as_ref()).collect();
    DEF.run(&[t.into(), Arg::Tensors(&list), Arg::Ints(dims), values, Arg::Bool(accumulate)])
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let shape = indexed_shape(args)?;
    same_dtype(args, 3)?;
    if let Arg::Tensor(values) = args.get(3)
        && broadcast(args.name(), &shape, values.sizes())? != shape
    {
        let expected = format!("of a shape that broadcasts to {shape:?}, the shape of the indexed elements");
        return Err(wrong_shape(args, 3, expected, values.sizes()));
    }
    let mut plan = Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), kept(t, t.sizes()));
    plan.cast = 0b1000;
    plan.cast_index = 0b10;
    plan.alias = true;
    Ok(plan)
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], at: SampleArg, dims: &[i64], values, add| {
        sample([plain(sizes), at, SampleArg::Ints(dims.to_vec()), values, SampleArg::Bool(add)])
    };
    let different = |values: &[f64]| {
        let fill = Fill::Values(values.to_vec());
        let role = Role::Fixed(DType::I64);
        SampleArg::Tensors(vec![TensorSample { sizes: vec![values.len()], fill, role }])
    };
    vec![
        call(&[5], indices(&[&[7]], 5), &[0], plain(&[7]), true),
        call(&[3, 4], indices(&[&[2, 2]], 3), &[0], plain(&[2, 2, 4]), true),
        call(&[3, 4], indices(&[&[5]], 4), &[1], plain(&[5]), true),
        call(&[3, 4], indices(&[&[2, 1], &[3]], 3), &[0, 1], plain(&[]), true),
        call(&[3, 4, 5], indices(&[&[2], &[2]], 3), &[0, 2], plain(&[2, 4]), true),
        call(&[5], different(&[3.0, 0.0, -1.0]), &[0], plain(&[3]), false),
        call(&[3, 4], different(&[1.0, 3.0]), &[1], plain(&[3, 2]), false),
        call(&[5], different(&[3.0, 0.0]), &[0], SampleArg::Float(1.5), false),
        call(&[5], indices(&[&[0]], 5), &[0], plain(&[0]), false),
    ]
}

/// `index_put`
pub static DEF: OpDef = OpDef::new(
    "index_put(Tensor self, Tensor[] indices, int[] dims, Tensor values, \
     bool accumulate=False) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b10, |b, g| {
        let (indices, dims, add) = (b.inputs(1)?, b.ints(2)?, b.bool(4)?);
        g.set(0, || match add {
            true => Ok(b.grad(0)?.clone()),
            false => put_at(b.grad(0)?, &indices, dims, Arg::Int(0), false),
        })?;
        g.set(3, || at(b.grad(0)?, &indices, dims))
    }),
    samples,
)
.forms(Forms::InPlace)
.errors(|| {
    let (dims, no) = (SampleArg::Ints(vec![0]), SampleArg::Bool(false));
    vec![
        error([plain(&[3]), indices(&[&[2]], 3), dims.clone(), plain(&[3]), no.clone()], "do not broadcast"),
        error([plain(&[3]), indices(&[&[1]], 3), dims, plain(&[3]), no], "that broadcasts to [1]"),
    ]
})
.with(OpFlags::COMPLEX);

//! `topk`
//!
//! Arguments:
//! - `k`: the number of elements.
//! - `largest`: whether to return the largest, rather than the least.
//! - `sorted`: whether the elements are ordered.

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::whole;
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{kept, with_dim, wrong_value, zeros};
use crate::ops::rules::has_order;
use crate::ops::sample::{Fill, Sample, SampleArg, error, plain, sample, tensor};
use crate::tensor::Int;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// The `k` largest elements along `dim` in descending order, and their indices; among equal elements the first come first.
    /// NaN is the largest. A 0-d tensor is returned unchanged for any `k` up to 1, as in PyTorch.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([3, 1, 2])?.topk(2, 0)?;
    /// assert_eq!(values.to_vec::<i32>()?, [3, 2]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range; a `k` above its size.
    pub fn topk(&self, k: usize, dim: impl Int) -> Result<(Tensor, Tensor)> {
        self.topk_with(k, dim, true, true)
    }

    /// [`Tensor::topk`] of the `largest` or the smallest elements. The results are sorted, with or without `sorted`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([1, 3, 2])?.topk_with(2, 0, false, true)?;
    /// assert_eq!((values.to_vec::<i32>()?, indices.to_vec::<i64>()?), (vec![1, 2], vec![0, 2]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn topk_with(
        &self,
        k: usize,
        dim: impl Int,
        largest: bool,
        sorted: bool,
    ) -> Result<(Tensor, Tensor)> {
        // A 0-d tensor is returned unchanged.
        let k = if self.rank() == 0 { k.max(1) } else { k };
        DEF.run_pair(&[self.into(), whole(k), Arg::Int(dim.to_i64()), Arg::Bool(largest), Arg::Bool(sorted)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    has_order(args, 0, t.dtype())?;
    let dim = args.dim(2, t.ndim())?;
    let size = with_dim(t.sizes())[dim];
    let least = usize::from(t.ndim() == 0);
    let k = usize::try_from(args.int(1)?).ok().filter(|k| (least..=size).contains(k));
    let Some(k) = k else {
        return Err(wrong_value(args, 1, format!("{least} to {size}, the size of dimension {dim}")));
    };
    let mut sizes = Dims::from_slice(t.sizes());
    if let Some(size) = sizes.get_mut(dim) {
        *size = k;
    }
    let strides = kept(t, &sizes);
    Ok(Plan::one(t.dtype(), sizes.clone(), t.dtype(), strides.clone()).and(sizes, DType::I64, strides))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], k, dim, largest| {
        let values = tensor(sizes, Fill::Distinct(-20.0, 20.0));
        let yes = SampleArg::Bool(true);
        sample([values, SampleArg::Int(k), SampleArg::Int(dim), SampleArg::Bool(largest), yes])
    };
    vec![
        call(&[], 1, 0, true),
        call(&[7], 3, 0, true),
        call(&[7], 7, -1, false),
        call(&[3, 4], 2, 0, true),
        call(&[2, 3, 4], 2, 1, false),
        call(&[3, 4], 0, 1, true),
        call(&[2, 3, 2, 2], 1, -2, true),
        call(&[2, 1, 2, 3, 2], 2, 3, false),
        call(&[0, 3], 2, 1, true),
    ]
}

/// `topk`
pub static DEF: OpDef = OpDef::new(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0b10,
        formula: |b, g| {
            g.set(0, || zeros(b.grad(0)?, b.sizes(0))?.scatter(b.int(2)?, &b.output(1)?, b.grad(0)?))
        },
    },
    samples,
)
.forms(Forms::Out)
.errors(|| {
    let (zero, yes) = (SampleArg::Int(0), SampleArg::Bool(true));
    let call = |sizes: &[usize], k| [plain(sizes), SampleArg::Int(k), zero.clone(), yes.clone(), yes.clone()];
    vec![error(call(&[3], 4), "0 to 3"), error(call(&[], 0), "1 to 1")]
})
.with(OpFlags::EXACT);

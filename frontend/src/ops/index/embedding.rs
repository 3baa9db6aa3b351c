//! `embedding`
//!
//! Arguments:
//! - `weight`: the table, one row for each index.
//! - `indices`: the rows to read.

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::index::geometry::{index as index_of, row, wrong_shape, zeros};
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, index, plain, sample};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The rows of this matrix at `indices`, of any shape; the result has one dimension more.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let weight = Tensor::from_vec(vec![1, 2, 3, 4], (2, 2))?;
    /// let at = Tensor::new([1i64, 0, 1])?;
    /// assert_eq!(weight.embedding(&at)?.to_vec::<i32>()?, [3, 4, 1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A weight that is no matrix; an index outside `0..rows`.
    pub fn embedding(&self, indices: &Tensor) -> Result<Tensor> {
        self.embedding_with(indices, None)
    }

    /// [`Tensor::embedding`] with a row `padding_idx` that is excluded from the gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let rows = Tensor::new([[1.0f32], [2.0]])?.requires_grad_(true)?;
    /// let y = rows.embedding_with(&Tensor::new([1i64, 0, 1])?, Some(0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 1.0, 2.0]);
    /// y.sum_all()?.backward()?;
    /// assert_eq!(rows.grad().unwrap().to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a padding index out of range.
    pub fn embedding_with(&self, indices: &Tensor, padding_idx: Option<i64>) -> Result<Tensor> {
        DEF.run(&[self.into(), indices.into(), Arg::optional(padding_idx)])
    }
}

pub(super) fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (weight, indices) = (args.tensor(0)?, index_of(args, 1)?);
    let [rows, columns] = weight.sizes() else {
        return Err(wrong_shape(args, 0, "a matrix of one row for each index".into(), weight.sizes()));
    };
    if args.optional_int(2)?.is_some() {
        row(args, 2, *rows)?;
    }
    let mut sizes = Dims::from_slice(indices.sizes());
    sizes.push(*columns);
    let mut plan = Plan::one(weight.dtype(), sizes, weight.dtype(), Strides::Contiguous);
    plan.cast_index = 0b10;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (weight, indices) = (tensor(args, 0)?, tensor(args, 1)?);
    let mut sizes = Dims::from_slice(indices.shape());
    sizes.push(weight.shape()[1]);
    let rows = weight.index_select(0, &indices.reshape_as_sizes(&[indices.elem_count()])?)?;
    rows.reshape_as_sizes(&sizes)
}

pub(super) fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], at: &[usize], n, padding: Option<i64>| {
        sample([plain(sizes), index(at, n), padding.map_or(SampleArg::None, SampleArg::Int)])
    };
    let mut padded = call(&[4, 3], &[2, 5], 4, Some(-1));
    // The gradient of row `padding_idx` is 0 by definition, though the result depends on it.
    padded.smooth = false;
    vec![
        call(&[4, 3], &[], 4, None),
        call(&[4, 3], &[7], 4, None),
        call(&[4, 3], &[2, 5], 4, None),
        call(&[4, 3], &[0], 4, None),
        padded,
    ]
}

pub(super) fn errors() -> Vec<ErrorSample> {
    let at = |v: f64| fixed(&[1], DType::I64, Fill::Values(vec![v]));
    vec![
        error([plain(&[4, 3]), at(4.0), SampleArg::None], "index 4"),
        error([plain(&[4, 3]), at(-1.0), SampleArg::None], "0..4"),
        error([plain(&[4]), at(0.0), SampleArg::None], "a matrix"),
        error([plain(&[4, 3]), at(0.0), SampleArg::Int(4)], "a row of the 4, from -4 to 3"),
    ]
}

/// `embedding`
pub static DEF: OpDef = OpDef::new(
    "embedding(Tensor weight, Tensor indices, int? padding_idx=None) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0b10,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let (grad, indices, sizes) = (b.grad(0)?, b.input(1)?, b.sizes(0));
                let n = indices.elem_count();
                let rows = grad.reshape_as_sizes(&[n, sizes[1]])?;
                let dense = zeros(grad, sizes)?.index_add(0, &indices.reshape_as_sizes(&[n])?, &rows)?;
                let Arg::Int(padding) = b.arg(2) else { return Ok(dense) };
                let row = wrap_dim("embedding", padding, sizes[0])? as i64;
                dense.index_copy(0, &Tensor::new([row])?.to_device(grad.device())?, 0)
            })
        },
    },
    samples,
)
.forms(Forms::Out)
.errors(errors)
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT);

//! `embedding_sparse`
//!
//! Arguments:
//! - `weight`: the table, one row for each index.
//! - `indices`: the rows to read.

use super::embedding;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::tensor::{COO, sparse_layout};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// [`Tensor::embedding`] with a sparse gradient of this matrix: a `sparse_coo` entry for each index holds its row, so that
    /// time and memory of a training step depend on the rows that it touches, not on the size of the table. The gradient is not
    /// coalesced; sums and the optimizers that accept it do not require that.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let rows = Tensor::new([[1.0f32], [2.0], [3.0]])?.requires_grad_(true)?;
    /// rows.embedding_sparse(&Tensor::new([2i64, 2])?)?.sum_all()?.backward()?;
    /// let grad = rows.grad().unwrap();
    /// assert_eq!(grad.nnz()?, 2);
    /// assert_eq!(grad.to_dense()?.to_vec::<f32>()?, [0.0, 0.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::embedding`]; no backend that serves `sparse_coo`.
    pub fn embedding_sparse(&self, indices: &Tensor) -> Result<Tensor> {
        self.embedding_sparse_with(indices, None)
    }

    /// [`Tensor::embedding_sparse`] with a row `padding_idx` that is excluded from the gradient.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let rows = Tensor::new([[1.0f32], [2.0], [3.0]])?.requires_grad_(true)?;
    /// rows.embedding_sparse_with(&Tensor::new([2i64, 0])?, Some(0))?.sum_all()?.backward()?;
    /// assert_eq!(rows.grad().unwrap().to_dense()?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// The gradient stays sparse through the ops that computed the weight: if one of them has no sparse derivative, such as
    /// a transpose or a product, the backward pass fails. Use [`Tensor::embedding`] for such a weight.
    ///
    /// # Errors
    /// The same; a padding index out of range.
    pub fn embedding_sparse_with(&self, indices: &Tensor, padding_idx: Option<i64>) -> Result<Tensor> {
        sparse_layout(COO, "embedding_sparse", self.device())?;
        DEF.run(&[self.into(), indices.into(), Arg::optional(padding_idx)])
    }
}

/// The sparse gradient of a matrix of these sizes: a row of `grad` for each index other than the padding.
fn by_rows(grad: &Tensor, indices: &Tensor, sizes: &[usize], padding: Arg<'_>) -> Result<Tensor> {
    let n = indices.elem_count();
    let mut rows = grad.reshape_as_sizes(&[n, sizes[1]])?;
    let mut at = indices.to_dtype(DType::I64)?.reshape_as_sizes(&[n])?;
    if let Arg::Int(padding) = padding {
        let row = wrap_dim("embedding_sparse", padding, sizes[0])? as i64;
        let kept = at.ne(row)?.nonzero()?;
        let kept = kept.reshape_as_sizes(&[kept.elem_count()])?;
        (rows, at) = (rows.index_select(0, &kept)?, at.index_select(0, &kept)?);
    }
    // The caller may overwrite the indices before the gradient is used.
    let at = if at.shares_storage(indices) { at.copy()? } else { at };
    Tensor::sparse_coo(&at.unsqueeze(0)?, &rows, sizes)
}

/// `embedding_sparse`. It has no decomposition: without a backend that serves `sparse_coo` the call fails here, not in the
/// backward pass.
pub static DEF: OpDef = OpDef::new(
    "embedding_sparse(Tensor weight, Tensor indices, int? padding_idx=None) -> Tensor",
    Rule::Structured(embedding::rule),
    Derivative::Formula {
        saves: 0b10,
        saves_outputs: 0,
        formula: |b, g| g.set_sparse(0, || by_rows(b.grad(0)?, &b.input(1)?, b.sizes(0), b.arg(2))),
    },
    embedding::samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(embedding::errors)
.with(OpFlags::EXACT);

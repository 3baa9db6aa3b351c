//! `to_sparse`
//!
//! Arguments:
//! - `sparse_dim`: the number of leading dimensions that the coordinates index.

use crate::error::{Result, called};
use crate::ops::composite::whole;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// Converts the tensor to `sparse_coo` with all dimensions sparse: an entry for each nonzero element. The result is
    /// coalesced.
    ///
    /// Gradients are strided: elements that are 0, and so not stored, have one too.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [0.0, 0.0]])?;
    /// assert_eq!(a.to_sparse()?.indices()?.to_vec2::<i64>()?, [[0], [1]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No backend that serves `sparse_coo`.
    #[doc(alias = "to_sparse_coo")]
    pub fn to_sparse(&self) -> Result<Tensor> {
        self.to_sparse_with(self.rank())
    }

    /// Converts a strided tensor to `sparse_coo`, with the first `sparse_dim` dimensions sparse and the others dense: an entry
    /// for each coordinate whose block has a nonzero element. Compressed rows (`sparse_csr`) retain their entries. A coordinate
    /// tensor is coalesced and its entries are regrouped: with fewer sparse dimensions into larger blocks; with more, the
    /// nonzero elements of a block become entries. The result is coalesced. Gradients of a strided tensor are strided, those of
    /// coordinates and compressed rows are projected on their entries.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [0.0, 0.0]])?;
    /// assert_eq!(a.to_sparse_with(1)?.values()?.to_vec2::<f32>()?, [[0.0, 3.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A `sparse_dim` above the rank; no backend that serves `sparse_coo`.
    pub fn to_sparse_with(&self, sparse_dim: usize) -> Result<Tensor> {
        called("to_sparse", &["self", "sparse_dim"], || {
            crate::tensor::sparse_layout(crate::tensor::COO, "to_sparse", self.device())?;
            if self.is_coordinates() && sparse_dim <= self.rank() {
                return split_anew(self, sparse_dim);
            }
            if self.layout().name() == crate::tensor::CSR && sparse_dim < 2 {
                return split_anew(&self.as_coordinates()?, sparse_dim);
            }
            DEF.run(&[self.into(), whole(sparse_dim)])
        })
    }
}

/// A coordinate tensor with `sparse_dim` sparse dimensions; only the blocks of entries are strided in between.
fn split_anew(t: &Tensor, sparse_dim: usize) -> Result<Tensor> {
    let t = t.coalesce()?;
    let own = t.sparse_dim()?;
    if own == sparse_dim {
        return Ok(t);
    }
    let (indices, values) = (t.indices()?, t.values()?);
    if own < sparse_dim {
        let within = values.to_sparse_with(1 + sparse_dim - own)?;
        let at = within.indices()?;
        let blocks = indices.index_select(1, &at.select(0, 0)?)?;
        let indices = Tensor::cat(&[&blocks, &at.narrow(0, 1, sparse_dim - own)?], 0)?;
        return Tensor::sparse_coo(&indices, &within.values()?, t.shape())?.coalesce();
    }
    let (device, nnz, outer) = (t.device(), t.nnz()?, indices.narrow(0, 0, sparse_dim)?);
    let ones = Tensor::ones_with([nnz], (DType::F64, device))?;
    let places = Tensor::sparse_coo(&outer, &ones, &t.shape()[..sparse_dim])?.coalesce()?;
    let blocks = places.nnz()?;
    // Entries are sorted, so a block starts where an index differs from the previous one.
    let others = nnz.saturating_sub(1);
    let begins = outer.narrow(1, (nnz - others) as i64, others)?.ne(&outer.narrow(1, 0, others)?)?;
    let begins = begins.to_dtype(DType::I64)?.sum(0)?.clamp_max(1)?;
    let first = Tensor::zeros_with([nnz - others], (DType::I64, device))?;
    let block = Tensor::cat(&[&first, &begins.cumsum(0)?], 0)?;
    let sizes: Vec<usize> = std::iter::once(blocks).chain(t.shape()[sparse_dim..].iter().copied()).collect();
    let inner = (sparse_dim..own).map(|dim| indices.select(0, dim)).collect::<Result<Vec<_>>>()?;
    let at: Vec<Option<&Tensor>> = std::iter::once(&block).chain(&inner).map(Some).collect();
    let made = Tensor::zeros_with(&sizes, (t.dtype(), device))?.index_put(&at, &values)?;
    Tensor::sparse_coo(&places.indices()?, &made, t.shape())?.coalesce()
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, sparse_dim) = (args.tensor(0)?, args.int(1)?);
    if usize::try_from(sparse_dim).is_err() || sparse_dim as usize > t.ndim() {
        return Err(Error::Value {
            op: args.name(),
            argument: "sparse_dim",
            expected: format!("from 0 to {}, the number of dimensions", t.ndim()),
            got: sparse_dim.to_string(),
        });
    }
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Contiguous))
}

fn samples() -> Vec<Sample> {
    let call = |sizes: &[usize], dim| sample([plain(sizes), SampleArg::Int(dim)]);
    vec![
        call(&[], 0),
        call(&[5], 1),
        call(&[3, 4], 2),
        call(&[3, 4], 1),
        call(&[2, 3, 4], 3),
        call(&[2, 3, 4], 1),
        call(&[0, 3], 2),
    ]
}

/// `to_sparse`
pub static DEF: OpDef = OpDef::new(
    "to_sparse(Tensor self, int sparse_dim) -> Tensor",
    Rule::Allocates(rule),
    // The gradient of a strided argument is converted to strided; that of compressed rows is projected on their entries.
    Derivative::of_grad(|b, g| g.set(0, || Ok(b.grad(0)?.clone()))),
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(|| vec![error([plain(&[2, 3]), SampleArg::Int(3)], "from 0 to 2")])
.with(OpFlags::SETS_FORMAT);

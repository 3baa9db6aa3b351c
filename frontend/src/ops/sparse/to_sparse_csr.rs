//! `to_sparse_csr`

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{error, plain, sample};
use crate::tensor::{CSR, sparse_layout};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// Converts a matrix to compressed rows, `sparse_csr`: the nonzero elements of a strided matrix, or the entries of a
    /// `sparse_coo` one, coalesced, without a strided intermediate. A compressed matrix is returned unchanged.
    ///
    /// Gradients are strided: elements that are 0, and so not stored, have one too.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [4.0, 5.0]])?.to_sparse_csr()?;
    /// assert_eq!(a.crow_indices()?.to_vec::<i64>()?, [0, 1, 3]);
    /// assert_eq!(a.values()?.to_vec::<f32>()?, [3.0, 4.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that is not a matrix, or has dense dimensions; no backend that serves `sparse_csr`.
    pub fn to_sparse_csr(&self) -> Result<Tensor> {
        called("to_sparse_csr", &["self"], || {
            sparse_layout(CSR, "to_sparse_csr", self.device())?;
            DEF.run(&[self.into()])
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    if t.ndim() != 2 {
        return Err(Error::Shape {
            op: args.name(),
            argument: "self",
            expected: "a matrix; tensors of other ranks, and batches of matrices, are held by `sparse_coo`"
                .into(),
            got: t.sizes().into(),
        });
    }
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Contiguous))
}

/// `to_sparse_csr`
pub static DEF: OpDef = OpDef::new(
    "to_sparse_csr(Tensor self) -> Tensor",
    Rule::Allocates(rule),
    // The gradient of a strided argument is converted to strided; that of a sparse one is projected on its entries.
    Derivative::of_grad(|b, g| g.set(0, || Ok(b.grad(0)?.clone()))),
    || [[3, 4], [6, 2], [0, 3], [2, 0], [1, 1]].iter().map(|sizes| sample([plain(sizes)])).collect(),
)
.dtypes(Dtypes::NUMERIC)
.errors(|| vec![error([plain(&[3])], "a matrix"), error([plain(&[2, 3, 4])], "a matrix")])
.with(OpFlags::SETS_FORMAT);

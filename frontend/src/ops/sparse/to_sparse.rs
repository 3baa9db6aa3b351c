//! `to_sparse`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// A strided tensor as `sparse_coo`, its first `sparse_dim` dimensions sparse and the others dense: an entry for each
    /// place of the sparse dimensions at which anything differs from 0. Of compressed rows (`sparse_csr`) their entries, with
    /// a `sparse_dim` of 2. The result is coalesced.
    ///
    /// Gradients come back whole: also for elements that are 0 and so are not stored.
    ///
    /// # Errors
    /// A tensor that is `sparse_coo`; more sparse dimensions than there are dimensions; no backend that serves `sparse_coo`.
    pub fn to_sparse(&self, sparse_dim: usize) -> Result<Tensor> {
        crate::tensor::sparse_layout(crate::tensor::COO, "to_sparse")?;
        DEF.run(&[self.into(), Arg::Int(i64::try_from(sparse_dim).unwrap_or(i64::MAX))])
    }
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
pub static DEF: OpDef = OpDef {
    schema: "to_sparse(Tensor self, int sparse_dim) -> Tensor",
    rule: Rule::Allocates(rule),
    decomposition: None,
    // Of a strided argument it becomes strided; compressed rows take what stands at their places.
    derivative: Derivative::of_grad(|b, g| g.set(0, || Ok(b.grad(0)?.clone()))),
    forms: Forms::New,
    dtypes: Dtypes::NUMERIC,
    samples,
    errors: || vec![error([plain(&[2, 3]), SampleArg::Int(3)], "from 0 to 2")],
    entry: Entry::new(),
}
.with(Facts::SETS_FORMAT);

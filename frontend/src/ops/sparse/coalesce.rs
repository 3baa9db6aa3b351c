//! `coalesce`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::layouts::may_repeat;
use keyway_dispatcher::op::{Args, Outputs, Plan, Rule, Strides};

impl Tensor {
    /// Sorts the entries of a sparse tensor in row-major order and adds duplicates, floats in f64; a sum that cancels is a
    /// stored 0. A coalesced or strided tensor is returned unchanged.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let indices = Tensor::new([[2i64, 0, 2]])?;
    /// let a = Tensor::sparse_coo(&indices, &Tensor::new([1.0f32, 2.0, 3.0])?, 3)?.coalesce()?;
    /// assert_eq!(a.indices()?.to_vec::<i64>()?, [0, 2]);
    /// assert_eq!(a.values()?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout whose backend has no kernel for the op.
    pub fn coalesce(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Contiguous))
}

/// A strided tensor has no duplicates.
fn same(args: &Args<'_>) -> RuleResult<Outputs> {
    let t = args.tensor(0)?;
    if t.is_strided() {
        return Ok(Outputs::from_iter([t.shallow_copy()]));
    }
    let reason = "has no kernel that coalesces it; install the backend that brings the layout";
    Err(Error::Layout { op: args.name(), layout: t.layout(), reason })
}

/// `coalesce`
pub static DEF: OpDef = OpDef::new(
    "coalesce(Tensor self) -> Tensor",
    Rule::Allocates(rule),
    // The elements are unchanged; each entry takes the gradient at its coordinate.
    Derivative::of_inputs(0b1, |b, g| {
        g.set(0, || {
            let (grad, entries) = (b.grad(0)?, b.input(0)?);
            if may_repeat(entries.as_ref()) {
                grad.sparse_mask_like(&entries.detach())
            } else {
                Ok(grad.clone())
            }
        })
    }),
    || {
        vec![
            sample([plain(&[3, 4])]),
            sample([plain(&[2, 3, 4])]),
            sample([plain(&[5])]),
            sample([plain(&[])]),
        ]
    },
)
.dtypes(Dtypes::NUMERIC)
.decomposed(same)
.with(OpFlags::SETS_FORMAT)
.with(OpFlags::UNCOALESCED);

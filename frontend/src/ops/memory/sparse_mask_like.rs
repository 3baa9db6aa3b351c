//! `sparse_mask_like`
//!
//! Arguments:
//! - `like`: the tensor whose pattern the result has.

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::sample::{error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::layouts::project;
use keyway_dispatcher::op::{Args, Outputs, Rule};

impl Tensor {
    /// Projects this gradient on the layout and pattern of `like`: the float components hold the gradient with respect to those
    /// of `like`, elements that `like` does not store are dropped, and the other components are those of `like`. For a strided
    /// `like`, converts to strided.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let like = Tensor::new([[0.0f32, 3.0], [4.0, 0.0]])?.to_sparse()?;
    /// let grad = Tensor::new([[1.0f32, 2.0], [5.0, 6.0]])?.sparse_mask_like(&like)?;
    /// assert_eq!(grad.values()?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes, dtype or device that differ; a layout that cannot project gradients.
    pub fn sparse_mask_like(&self, like: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), like.into()])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    Ok(Outputs::from_iter([project(args.tensor(0)?, args.tensor(1)?)?]))
}

/// `sparse_mask_like`
pub static DEF: OpDef = OpDef::new(
    "sparse_mask_like(Tensor self, Tensor like) -> Tensor",
    Rule::Host(compose),
    Derivative::Formula {
        saves: 0b10,
        saves_outputs: 0,
        // The derivative with respect to `like` is 0, since only its pattern matters. Dropped elements have the gradient 0 and
        // duplicates the sum of theirs; a tensor with the pattern of `like` is returned unchanged.
        formula: |b, g| {
            g.set(0, || b.grad(0)?.sparse_mask_like(&b.input(1)?.detach()))?;
            g.set(1, || b.grad(0)?.zeros_like())
        },
    },
    || vec![sample([plain(&[2, 3]), plain(&[2, 3])])],
)
.errors(|| vec![error([plain(&[2]), plain(&[3])], "must be like")])
.with(OpFlags::SETS_FORMAT)
.with(OpFlags::UNCOALESCED);

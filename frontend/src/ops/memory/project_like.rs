//! `project_like`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{error, plain, sample};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::layouts::project;
use keyway_dispatcher::op::{Args, Outputs, Rule};

impl Tensor {
    /// This gradient in the layout and with the pattern of `like`: its float components are the gradient with respect to
    /// those of `like`, what `like` has no element for is dropped, and the other components are those of `like`. For a
    /// strided `like` the same values, strided.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let like = Tensor::new([[0.0f32, 3.0], [4.0, 0.0]])?.to_sparse()?;
    /// let grad = Tensor::new([[1.0f32, 2.0], [5.0, 6.0]])?.project_like(&like)?;
    /// assert_eq!(grad.values()?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Sizes, dtype or device that differ; a layout that cannot project gradients.
    pub fn project_like(&self, like: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), like.into()])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    Ok(Outputs::from_iter([project(args.tensor(0)?, args.tensor(1)?)?]))
}

/// `project_like`
pub static DEF: OpDef = OpDef {
    schema: "project_like(Tensor self, Tensor like) -> Tensor",
    rule: Rule::Host(compose),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b10,
        saves_outputs: 0,
        // Only the pattern of `like` counts, which has no derivative. What is dropped has none either; an element that is
        // taken several times has the sum of theirs, but a tensor of the pattern itself comes back as it is.
        formula: |b, g| {
            g.set(0, || b.grad(0)?.project_like(&b.input(1)?.detach()))?;
            g.set(1, || b.grad(0)?.zeros_like())
        },
    },
    forms: Forms::New,
    dtypes: Dtypes::ALL,
    samples: || vec![sample([plain(&[2, 3]), plain(&[2, 3])])],
    errors: || vec![error([plain(&[2]), plain(&[3])], "must be like")],
    entry: Entry::new(),
}
.with(Facts::SETS_FORMAT)
.with(Facts::BY_ENTRY);

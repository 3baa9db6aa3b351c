//! `copy`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::rules::conversion_key;
use crate::ops::sample::{error, plain, sample};
use keyway_dispatcher::dims::broadcast;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// Overwrites this tensor with the values of `source`, broadcast, cast and moved as needed.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_slice(&[0.0f32, 0.0])?;
    /// a.copy_(&Tensor::scalar(3i64)?)?;
    /// assert_eq!(a.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A source that does not broadcast to this shape; memory that overlaps itself.
    pub fn copy_(&self, source: &Tensor) -> Result<Tensor> {
        // A composite source becomes strided where it is, since its owner may not know this device.
        let source = if source.as_ref().is_strided() { source.clone() } else { source.to_strided()? };
        let source =
            if source.device() == self.device() { source } else { source.to_device(self.device())? };
        DEF.run_in_place(&[self.into(), (&source).into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (target, source) = (args.tensor(0)?, args.tensor(1)?);
    let sizes = broadcast(args.name(), target.sizes(), source.sizes())?;
    if sizes.as_slice() != target.sizes() {
        let expected = format!("of a shape that broadcasts to {:?}", target.sizes());
        let got = source.sizes().into();
        return Err(Error::Shape { op: args.name(), argument: "src", expected, got });
    }
    let key = conversion_key(source.dtype(), target.dtype());
    let mut plan = Plan::one(key, sizes, target.dtype(), Strides::Like(0));
    // The kernel casts by itself; it reads nothing of argument 0.
    plan.broadcast = 0b11;
    plan.alias = true;
    Ok(plan)
}

/// `copy`
pub static DEF: OpDef = OpDef {
    schema: "copy(Tensor self, Tensor src) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: None,
    derivative: Derivative::of_grad(|b, g| {
        g.set(0, || b.grad(0)?.zeros_like())?;
        g.set(1, || Ok(b.grad(0)?.clone()))
    }),
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || {
        vec![
            sample([plain(&[2, 3]), plain(&[2, 3])]),
            sample([plain(&[2, 3]), plain(&[3])]),
            sample([plain(&[2, 3]), plain(&[])]),
            sample([plain(&[]), plain(&[])]),
            sample([plain(&[2, 3, 4]), plain(&[3, 1])]),
            sample([plain(&[2, 3, 2, 2]), plain(&[2, 3, 2, 2])]),
            sample([plain(&[2, 1, 2, 3, 2]), plain(&[2, 1, 2])]),
            sample([plain(&[0]), plain(&[1])]),
        ]
    },
    errors: || vec![error([plain(&[3]), plain(&[2, 3])], "broadcasts to")],
    entry: Entry::new(),
}
.with(Facts::EXACT.and(Facts::CASTS).and(Facts::SETS_FORMAT));

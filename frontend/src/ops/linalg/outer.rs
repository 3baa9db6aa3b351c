//! `outer`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::sample::{Sample, error, plain, sample};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Outputs, Rule};

impl Tensor {
    /// The products of each element with each of another vector, `[n]` by `[m]` to `[n, m]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_slice(&[1.0f32, 2.0])?;
    /// assert_eq!(a.outer(&a)?.to_vec::<f32>()?, [1.0, 2.0, 2.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Tensors that are not vectors.
    pub fn outer(&self, vec2: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), vec2.into()])
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    for i in 0..2 {
        let sizes = args.tensor(i)?.sizes();
        if sizes.len() != 1 {
            let (argument, got) = (args.op.schema.param_name(i), sizes.into());
            return Err(Error::Shape { op: args.name(), argument, expected: "a vector".into(), got });
        }
    }
    let (a, b) = (Tensor::from_ref(args.tensor(0)?.clone()), Tensor::from_ref(args.tensor(1)?.clone()));
    Ok(Outputs::from_iter([a.unsqueeze(1)?.mul(&b)?.into_ref()]))
}

fn samples() -> Vec<Sample> {
    [(3, 4), (1, 1), (0, 2)].iter().map(|&(n, m)| sample([plain(&[n]), plain(&[m])])).collect()
}

/// `outer`
pub static DEF: OpDef = OpDef {
    schema: "outer(Tensor self, Tensor vec2) -> Tensor",
    rule: Rule::Host(compose),
    decomposition: None,
    derivative: Derivative::Composite,
    forms: Forms::New,
    dtypes: Dtypes::NUMERIC,
    samples,
    errors: || vec![error([plain(&[2, 3]), plain(&[3])], "a vector")],
    entry: Entry::new(),
};

//! `to_layout`

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Entry, Facts, Forms, OpDef};
use crate::ops::sample::{SampleArg, error, plain, sample};
use crate::tensor::{COO, CSR};
use crate::{Layout, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::layouts::{from_strided, to_strided};
use keyway_dispatcher::op::{Arg, Args, Outputs, Rule};

impl Tensor {
    /// The values in another layout; this tensor itself if it has it already.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros(3)?;
    /// assert!(x.to_layout(Layout::STRIDED)?.is_same(&x));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout that no backend brings.
    pub fn to_layout(&self, layout: Layout) -> Result<Tensor> {
        called("to_layout", &["self", "layout"], || {
            if self.layout() == layout {
                return Ok(self.clone());
            }
            // Between sparse layouts nothing becomes strided.
            match (self.layout().name(), layout.name()) {
                (COO, CSR) => return self.to_sparse_csr(),
                (CSR, COO) => return self.to_sparse_with(2),
                _ => {}
            }
            DEF.run(&[self.into(), Arg::Str(layout.name())])
        })
    }

    /// The values as a strided tensor; this tensor itself if it is one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(3)?;
    /// assert!(x.to_strided()?.is_same(&x));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout that cannot become strided.
    pub fn to_strided(&self) -> Result<Tensor> {
        called("to_strided", &["self"], || self.to_layout(Layout::STRIDED))
    }
}

fn compose(args: &Args<'_>) -> RuleResult<Outputs> {
    let name = args.str(1)?;
    let layout = Layout::from_name(name).ok_or_else(|| Error::Value {
        op: args.name(),
        argument: "layout",
        expected: "the name of a layout that a backend brings, or `strided`".to_string(),
        got: format!("`{name}`"),
    })?;
    let strided = to_strided(args.tensor(0)?)?;
    let made = if layout == Layout::STRIDED { strided } else { from_strided(&strided, layout)? };
    Ok(Outputs::from_iter([made]))
}

/// `to_layout`
pub static DEF: OpDef = OpDef {
    schema: "to_layout(Tensor self, str layout) -> Tensor",
    rule: Rule::Host(compose),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        // A gradient may stay in the layout that it came in: accumulation takes either.
        formula: |b, g| g.set(0, || b.grad(0)?.to_strided()),
    },
    forms: Forms::New,
    dtypes: Dtypes::ALL,
    samples: || vec![sample([plain(&[2, 3]), SampleArg::Str("strided")])],
    errors: || {
        vec![error([plain(&[2]), SampleArg::Str("nothing.example/none")], "a layout that a backend brings")]
    },
    entry: Entry::new(),
}
.with(Facts::SETS_FORMAT);

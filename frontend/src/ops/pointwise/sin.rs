//! `sin`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The sine of each element, in radians. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32])?.sin()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn sin(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::sin`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn sin_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::sin`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn sin_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `sin`
pub static DEF: OpDef = OpDef {
    schema: "sin(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.cos()?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-4.0, 4.0),
    errors: Vec::new,
    entry: Entry::new(),
};

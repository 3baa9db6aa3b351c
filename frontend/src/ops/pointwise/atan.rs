//! `atan`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The angle in radians whose tangent is each element. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32])?.atan()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn atan(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::atan`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn atan_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::atan`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn atan_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `atan`
pub static DEF: OpDef = OpDef {
    schema: "atan(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.square()?.add(1)?.reciprocal()?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-3.0, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
};

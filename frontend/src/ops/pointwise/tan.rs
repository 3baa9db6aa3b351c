//! `tan`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The tangent of each element, in radians. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32])?.tan()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn tan(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::tan`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn tan_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::tan`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn tan_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `tan`
pub static DEF: OpDef = OpDef {
    schema: "tan(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.output(0)?.square()?.add(1)?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-1.2, 1.2),
    errors: Vec::new,
    entry: Entry::new(),
};

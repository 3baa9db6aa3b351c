//! `acos`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// The angle in radians whose cosine is each element; NaN beyond 1. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32])?.acos()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn acos(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::acos`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn acos_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::acos`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn acos_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `acos`
pub static DEF: OpDef = OpDef {
    schema: "acos(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?.square()?.neg()?.add(1)?.rsqrt()?.neg()?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-0.8, 0.8),
    errors: Vec::new,
    entry: Entry::new(),
};

//! `silu`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// `x * sigmoid(x)` of each element `x`; also called swish.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[0.0f32, 100.0])?.silu()?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn silu(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::silu`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn silu_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }
}

/// `silu`
pub static DEF: OpDef = OpDef {
    schema: "silu(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_real),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.silu_backward(&b.input(0)?)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::FLOAT,
    samples: || sample::unary(-3.0, 3.0),
    errors: || vec![error([fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]))], "a floating-point dtype")],
    entry: Entry::new(),
};

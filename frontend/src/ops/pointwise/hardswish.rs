//! `hardswish`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::sample::{Fill, error, fixed};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// `x * min(max(x + 3, 0), 6) / 6` of each element `x`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-4.0f32, 3.0])?.hardswish()?.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn hardswish(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::hardswish`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn hardswish_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }
}

/// `hardswish`
pub static DEF: OpDef = OpDef {
    schema: "hardswish(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_real),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let (grad, x) = (b.grad(0)?, b.input(0)?);
                let middle = grad.mul(&x.mul(2)?.add(3)?)?.mul(1.0 / 6.0)?;
                let upper = x.gt(3)?.select_where(grad, &middle)?;
                x.lt(-3)?.select_where(0, &upper)
            })
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::FLOAT,
    samples: || sample::unary_of(&Fill::AwayFrom(-4.2, 4.2, 0.05), &[]),
    errors: || vec![error([fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]))], "a floating-point dtype")],
    entry: Entry::new(),
};

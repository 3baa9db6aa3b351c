//! `rsqrt`

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::Rule;

impl Tensor {
    /// 1 over the square root of each element; infinite at 0, NaN below. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[4.0f32, 16.0])?.rsqrt()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn rsqrt(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::rsqrt`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn rsqrt_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::rsqrt`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn rsqrt_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// `rsqrt`
pub static DEF: OpDef = OpDef {
    schema: "rsqrt(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_float),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let y = b.output(0)?;
                b.grad(0)?.mul(&y.square()?.mul(&y)?)?.mul(-0.5)
            })
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(0.5, 3.0),
    errors: Vec::new,
    entry: Entry::new(),
};

//! `square`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::{rules, sample};
use keyway_dispatcher::op::{Args, Rule, Typing};

impl Tensor {
    /// Each element times itself. bool becomes i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[3.0f32, -2.0])?.square()?.to_vec::<f32>()?, [9.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn square(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }

    /// [`Tensor::square`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn square_(&self) -> Result<Tensor> {
        DEF.run_in_place(&[self.into()])
    }

    /// [`Tensor::square`] into `out`.
    #[allow(clippy::missing_errors_doc)]
    pub fn square_out(&self, out: &mut Tensor) -> Result<()> {
        DEF.run_out(&[self.into()], out)
    }
}

/// bool has no product of its own: it is squared as i64.
fn rule(args: &Args<'_>) -> keyway_dispatcher::error::Result<Typing> {
    let dtype = args.tensor(0)?.dtype();
    let dtype = if dtype == DType::BOOL { DType::I64 } else { dtype };
    Ok(Typing::of(dtype))
}

/// `square`
pub static DEF: OpDef = OpDef {
    schema: "square(Tensor self) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.mul(&b.input(0)?)?.mul(2)),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::ALL,
    samples: || sample::unary(-2.0, 2.0),
    errors: Vec::new,
    entry: Entry::new(),
};

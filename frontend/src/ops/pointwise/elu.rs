//! `elu`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, unary_of};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// Each element above 0 as it is, each other one as `alpha * (e^x - 1)` (`alpha` is 1 by custom).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-100.0f32, 2.0])?.elu(0.5)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn elu<'a>(&'a self, alpha: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), alpha.into()])
    }

    /// [`Tensor::elu`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn elu_<'a>(&'a self, alpha: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), alpha.into()])
    }
}

fn samples() -> Vec<Sample> {
    let fill = Fill::AwayFrom(-2.2, 2.2, 0.05);
    [unary_of(&fill, &[SampleArg::Int(1)]), unary_of(&fill, &[SampleArg::Float(0.5)])].concat()
}

fn errors() -> Vec<ErrorSample> {
    let integers = fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]));
    vec![error([integers, SampleArg::Int(1)], "a floating-point dtype")]
}

/// `elu`
pub static DEF: OpDef = OpDef {
    schema: "elu(Tensor self, Scalar alpha=1) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_real),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        // The output, which is finite wherever the slope is used, stands for an exponential that might not be.
        formula: |b, g| {
            g.set(0, || {
                let grad = b.grad(0)?;
                let below = grad.mul(&b.output(0)?.add(b.arg(1))?)?;
                b.input(0)?.gt(0)?.select_where(grad, &below)
            })
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::FLOAT,
    samples,
    errors,
    entry: Entry::new(),
};

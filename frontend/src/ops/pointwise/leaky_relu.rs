//! `leaky_relu`

use crate::DType;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{ErrorSample, Fill, Sample, SampleArg, error, fixed, unary_of};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// Each element above 0 as it is, each other one times `negative_slope` (0.01 by custom).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-2.0f32, 2.0])?.leaky_relu(0.25)?.to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn leaky_relu<'a>(&'a self, negative_slope: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run(&[self.into(), negative_slope.into()])
    }

    /// [`Tensor::leaky_relu`] in place.
    #[allow(clippy::missing_errors_doc)]
    pub fn leaky_relu_<'a>(&'a self, negative_slope: impl Into<Arg<'a>>) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), negative_slope.into()])
    }
}

fn samples() -> Vec<Sample> {
    let fill = Fill::AwayFrom(-2.2, 2.2, 0.05);
    [unary_of(&fill, &[SampleArg::Float(0.01)]), unary_of(&fill, &[SampleArg::Int(2)])].concat()
}

fn errors() -> Vec<ErrorSample> {
    let integers = fixed(&[2], DType::I64, Fill::Values(vec![0.0, 1.0]));
    vec![error([integers, SampleArg::Float(0.01)], "a floating-point dtype")]
}

/// `leaky_relu`
pub static DEF: OpDef = OpDef {
    schema: "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    rule: Rule::Elementwise(rules::FIRST, rules::unary_real),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let grad = b.grad(0)?;
                b.input(0)?.gt(0)?.select_where(grad, &grad.mul(b.arg(1))?)
            })
        },
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::FLOAT,
    samples,
    errors,
    entry: Entry::new(),
};

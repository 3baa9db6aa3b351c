//! `baddbmm`

use super::added;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// `self + batch1 @ batch2` for batches of matrices; `self` is broadcast to the product's shape.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 1, 2))?;
    /// let b = a.transpose(1, 2)?;
    /// assert_eq!(Tensor::new(1.0f32)?.baddbmm(&a, &b)?.to_vec::<f32>()?, [6.0, 26.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Incompatible sizes, dtypes without a common one.
    pub fn baddbmm(&self, batch1: &Tensor, batch2: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), batch1.into(), batch2.into(), Arg::Int(1), Arg::Int(1)])
    }

    /// `beta * self + alpha * batch1 @ batch2`; with a `beta` of 0 the values of `self` are ignored, even NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[[1.0f32, 2.0]], [[3.0, 4.0]]])?, Tensor::ones((2, 2, 1))?);
    /// let sum = Tensor::ones((2, 1, 1))?;
    /// assert_eq!(sum.baddbmm_with(&a, &b, 10, 2)?.to_vec::<f32>()?, [16.0, 24.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A fractional factor for integers; those of [`Tensor::baddbmm`].
    pub fn baddbmm_with<'a>(
        &'a self,
        batch1: &'a Tensor,
        batch2: &'a Tensor,
        beta: impl Into<Arg<'a>>,
        alpha: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), batch1.into(), batch2.into(), beta.into(), alpha.into()])
    }

    /// [`Tensor::baddbmm`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[[1.0f32, 2.0]], [[3.0, 4.0]]])?, Tensor::ones((2, 2, 1))?);
    /// let sum = Tensor::ones((2, 1, 1))?;
    /// sum.baddbmm_(&a, &b)?;
    /// assert_eq!(sum.to_vec::<f32>()?, [4.0, 8.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn baddbmm_(&self, batch1: &Tensor, batch2: &Tensor) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), batch1.into(), batch2.into(), Arg::Int(1), Arg::Int(1)])
    }
}

fn samples() -> Vec<Sample> {
    let call = |input: &[usize], [b, n, k, m]: [usize; 4], beta: SampleArg, alpha: SampleArg| {
        sample([plain(input), plain(&[b, n, k]), plain(&[b, k, m]), beta, alpha])
    };
    let one = || SampleArg::Int(1);
    vec![
        call(&[2, 2, 4], [2, 2, 3, 4], one(), one()),
        call(&[4], [2, 2, 3, 4], SampleArg::Int(2), SampleArg::Int(3)),
        call(&[2, 1, 1], [2, 2, 3, 4], SampleArg::Int(0), one()),
        call(&[1], [1, 1, 1, 1], one(), one()),
        call(&[3], [2, 2, 0, 3], SampleArg::Int(2), one()),
        call(&[2], [0, 2, 3, 2], one(), one()),
    ]
}

/// `baddbmm`
pub static DEF: OpDef = OpDef::new(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    Rule::Structured(|args| added::rule(args, super::bmm::product_sizes)),
    Derivative::Formula {
        saves: 0b110,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || added::scaled(b.grad(0)?.clone(), b.arg(3)))?;
            g.set(1, || added::scaled(b.grad(0)?.bmm(&b.input(2)?.transpose(1, 2)?)?, b.arg(4)))?;
            g.set(2, || added::scaled(b.input(1)?.transpose(1, 2)?.bmm(b.grad(0)?)?, b.arg(4)))
        },
    },
    samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![
        error(
            [plain(&[2]), plain(&[1, 2, 3]), plain(&[1, 4, 2]), SampleArg::Int(1), SampleArg::Int(1)],
            "[1, 3, _]",
        ),
        error(
            [plain(&[2]), plain(&[3]), plain(&[3, 2]), SampleArg::Int(1), SampleArg::Int(1)],
            "batch of matrices",
        ),
    ]
})
.decomposed(|args| added::compose(args, Tensor::bmm, &super::bmm::product_sizes(args, 1, 2)?))
.with(OpFlags::AUTOCAST)
.with(OpFlags::HOLOMORPHIC);

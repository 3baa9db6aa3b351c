//! `addmm`

use super::added;
use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// `self + mat1 @ mat2` for matrices; `self` is broadcast to the product's shape. The result is sparse if all three tensors
    /// are, else strided, whatever the factors.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let bias = Tensor::new([10.0f32, 20.0])?;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(bias.addmm(&a, &a)?.to_vec::<f32>()?, [17.0, 30.0, 25.0, 42.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Incompatible sizes, dtypes without a common one.
    pub fn addmm(&self, mat1: &Tensor, mat2: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), mat1.into(), mat2.into(), Arg::Int(1), Arg::Int(1)])
    }

    /// `beta * self + alpha * mat1 @ mat2`; with a `beta` of 0 the values of `self` are ignored, even NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, b) = (Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?, Tensor::ones((2, 2))?);
    /// assert_eq!(b.addmm_with(&a, &b, 10, 2)?.to_vec::<f32>()?, [16.0, 16.0, 24.0, 24.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A fractional factor for integers; those of [`Tensor::addmm`].
    pub fn addmm_with<'a>(
        &'a self,
        mat1: &'a Tensor,
        mat2: &'a Tensor,
        beta: impl Into<Arg<'a>>,
        alpha: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), mat1.into(), mat2.into(), beta.into(), alpha.into()])
    }

    /// [`Tensor::addmm`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (a, sum) = (Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?, Tensor::ones((2, 2))?);
    /// sum.addmm_(&a, &a)?;
    /// assert_eq!(sum.to_vec::<f32>()?, [8.0, 11.0, 16.0, 23.0]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn addmm_(&self, mat1: &Tensor, mat2: &Tensor) -> Result<Tensor> {
        DEF.run_in_place(&[self.into(), mat1.into(), mat2.into(), Arg::Int(1), Arg::Int(1)])
    }
}

fn samples() -> Vec<Sample> {
    let call = |input: &[usize], [n, k, m]: [usize; 3], beta: SampleArg, alpha: SampleArg| {
        sample([plain(input), plain(&[n, k]), plain(&[k, m]), beta, alpha])
    };
    let one = || SampleArg::Int(1);
    vec![
        call(&[2, 4], [2, 3, 4], one(), one()),
        call(&[4], [2, 3, 4], one(), one()),
        call(&[], [2, 3, 4], SampleArg::Int(2), SampleArg::Int(3)),
        call(&[2, 1], [2, 3, 4], SampleArg::Int(0), one()),
        call(&[1], [1, 1, 1], one(), SampleArg::Int(2)),
        call(&[3], [2, 0, 3], SampleArg::Int(2), one()),
        call(&[2], [0, 3, 2], one(), one()),
    ]
}

/// `addmm`
pub static DEF: OpDef = OpDef::new(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    Rule::Structured(|args| added::rule(args, super::mm::product_sizes)),
    Derivative::Formula {
        saves: 0b110,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || added::scaled(b.grad(0)?.clone(), b.arg(3)))?;
            g.set(1, || match b.input(1)? {
                a if a.as_ref().is_strided() => added::scaled(b.grad(0)?.mm(&b.input(2)?.t()?)?, b.arg(4)),
                a => added::scaled(super::mm::product_at(&a, b.grad(0)?, &b.input(2)?.t()?)?, b.arg(4)),
            })?;
            g.set(2, || {
                let product = super::mm::product_at(&b.input(2)?, &b.input(1)?.t()?, b.grad(0)?)?;
                added::scaled(product, b.arg(4))
            })
        },
    },
    samples,
)
.forms(Forms::InPlace)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![
        error([plain(&[2]), plain(&[2, 3]), plain(&[4, 2]), SampleArg::Int(1), SampleArg::Int(1)], "3 rows"),
        error([plain(&[2]), plain(&[3]), plain(&[3, 2]), SampleArg::Int(1), SampleArg::Int(1)], "a matrix"),
        error(
            [plain(&[3]), plain(&[2, 3]), plain(&[3, 2]), SampleArg::Int(1), SampleArg::Int(1)],
            "broadcast",
        ),
    ]
})
.decomposed(|args| added::compose(args, Tensor::mm, &super::mm::product_sizes(args, 1, 2)?))
.viewing(&["expand"])
.with(OpFlags::AUTOCAST)
.with(OpFlags::HOLOMORPHIC);

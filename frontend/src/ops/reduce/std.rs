//! `std`

use super::forms::reduction;
use super::spread;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{centred, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::tensor::IntoDims;
use keyway_dispatcher::op::{Arg, Rule};

reduction! {
    /// The standard deviation over `dims`, or of all elements with `..`, with Bessel's correction: the divisor is the count
    /// minus 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 3.0]])?;
    /// assert_eq!(x.std_with(1, 0.0, false)?.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn std(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, Arg::Float(1.0), keepdim]) }
    keepdim: std_keepdim, all: std_all
}

impl Tensor {
    /// [`Tensor::std`] with the divisor `count - correction`; with `keepdim` the reduced dimensions are retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1.0f32, 3.0]])?;
    /// let y = x.std_with(1, 0.0, true)?;
    /// assert_eq!((y.shape(), y.item::<f32>()?), (&[1, 1][..], 1.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn std_with(&self, dims: impl IntoDims, correction: f64, keepdim: bool) -> Result<Tensor> {
        let dims = dims.into_dims();
        DEF.run(&[self.into(), Arg::Ints(&dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

/// `std`
pub static DEF: OpDef = OpDef::new(
    "std(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> Tensor",
    Rule::Structured(spread::rule),
    Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let (x, dims, divisor) = spread::parts(b)?;
                // At least in f32: the quotient by a small deviation may overflow f16.
                let of_lines = |t: &Tensor| b.unsqueeze_reduced(&widened(t)?, 0, b.arg(1), b.bool(3)?);
                let (grad, out) = (of_lines(b.grad(0)?)?, of_lines(&b.output(0)?)?);
                let centred = centred(&widened(&x)?, dims)?;
                // Where the deviation is 0 the derivatives of all orders are defined as 0. The differences from the mean
                // are divided first, since the gradient over a small deviation may overflow.
                let none = out.eq(0.0)?;
                let shares = centred.div(&none.where_cond(1.0, &out)?)?.mul(1.0 / divisor)?;
                shares.mul(&none.where_cond(0.0, &grad)?)
            })
        },
    },
    spread::samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(spread::errors)
.decomposed(spread::deviation);

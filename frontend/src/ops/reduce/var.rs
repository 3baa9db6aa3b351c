//! `var`

use super::forms::reduction;
use super::spread;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{centred, in_range};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::tensor::IntoDims;
use keyway_dispatcher::op::{Arg, Rule};

reduction! {
    /// The variance over `dims`, or of all elements with `..`, with Bessel's correction: the divisor is the count minus 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 3.0]])?;
    /// assert_eq!(x.var(1)?.to_vec::<f32>()?, [2.0]);
    /// assert_eq!(x.var_with(1, 0.0, true)?.to_vec::<f32>()?, [1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn var(x; dims, keepdim) -> Tensor { DEF.run(&[x.into(), dims, Arg::Float(1.0), keepdim]) }
    keepdim: var_keepdim, all: var_all
}

impl Tensor {
    /// [`Tensor::var`] with the divisor `count - correction`; with `keepdim` the reduced dimensions are retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([[1.0f32, 5.0]])?;
    /// let y = x.var_with(1, 0.0, true)?;
    /// assert_eq!((y.shape(), y.item::<f32>()?), (&[1, 1][..], 4.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn var_with(&self, dims: impl IntoDims, correction: f64, keepdim: bool) -> Result<Tensor> {
        let dims = dims.into_dims();
        DEF.run(&[self.into(), Arg::Ints(&dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

/// `var`
pub static DEF: OpDef = OpDef::new(
    "var(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> Tensor",
    Rule::Structured(spread::rule),
    Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let (x, dims, divisor) = spread::parts(b)?;
                let grad = b.unsqueeze_reduced(&in_range(b.grad(0)?)?, 0, b.arg(1), b.bool(3)?)?;
                grad.mul(&centred(&x, dims)?)?.mul(2.0 / divisor)
            })
        },
    },
    spread::samples,
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(spread::errors)
.decomposed(spread::variance);

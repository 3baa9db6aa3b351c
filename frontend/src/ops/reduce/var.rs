//! `var`

use super::spread;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{centred, decomposed};
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// The variance of all elements, divided by their number less 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32, 3.0])?.var()?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn var(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Float(1.0), Arg::Bool(false)])
    }

    /// The variances over `dims`, which stay as size 1 if `keepdim`, divided by the number of elements less
    /// `correction`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn var_dims(&self, dims: &[i64], correction: f64, keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

/// `var`
pub static DEF: OpDef = OpDef {
    schema: "var(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> Tensor",
    rule: Rule::Structured(spread::rule),
    decomposition: decomposed(spread::variance, spread::PARTS),
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let (x, dims, divisor) = spread::parts(b)?;
                let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(3)?)?;
                grad.mul(&centred(&x, dims)?)?.mul(2.0 / divisor)
            })
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::FLOAT,
    samples: spread::samples,
    errors: spread::errors,
    entry: Entry::new(),
};

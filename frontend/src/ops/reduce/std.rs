//! `std`

use super::spread;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{centred, decomposed};
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use keyway_dispatcher::op::{Arg, Part, Rule};

impl Tensor {
    /// The standard deviation of all elements, divided by their number less 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1.0f32, 1.0])?.std()?.item::<f32>()?, 0.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn std(&self) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::None, Arg::Float(1.0), Arg::Bool(false)])
    }

    /// The standard deviations over `dims`, which stay as size 1 if `keepdim`, divided by the number of elements less
    /// `correction`. No dims means all.
    ///
    /// # Errors
    /// A dimension out of range or given twice.
    pub fn std_dims(&self, dims: &[i64], correction: f64, keepdim: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Float(correction), Arg::Bool(keepdim)])
    }
}

/// `std`
pub static DEF: OpDef = OpDef {
    schema: "std(Tensor self, int[]? dim=None, Scalar correction=1, bool keepdim=False) -> Tensor",
    rule: Rule::Structured(spread::rule),
    decomposition: decomposed(
        spread::deviation,
        &[
            Part::widened("mean"),
            Part::widened("sub"),
            Part::widened("square"),
            Part::widened("sum"),
            Part::widened("div"),
            Part::widened("sqrt"),
            Part::widened("to_dtype"),
            Part::new("to_dtype"),
        ],
    ),
    derivative: Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0b1,
        formula: |b, g| {
            g.set(0, || {
                let (x, dims, divisor) = spread::parts(b)?;
                let grad = b.unreduce(b.grad(0)?, 0, b.arg(1), b.bool(3)?)?;
                let centred = centred(&x, dims)?;
                let out = b.unreduce(&b.output(0)?, 0, b.arg(1), b.bool(3)?)?;
                // Where nothing varies the derivative is taken to be 0, and so is that of the derivative.
                let none = out.eq(0.0)?;
                let slope = none.select_where(0.0, &grad.div(&none.select_where(1.0, &out)?)?)?;
                slope.mul(&centred)?.mul(1.0 / divisor)
            })
        },
    },
    forms: Forms::Out,
    dtypes: Dtypes::FLOAT,
    samples: spread::samples,
    errors: spread::errors,
    entry: Entry::new(),
};

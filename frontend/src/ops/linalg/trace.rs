//! `trace`

use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, OpDef};
use crate::ops::rules::wrong_shape;
use crate::ops::sample::{error, plain, sample};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule, Strides};

impl Tensor {
    /// The sum of the diagonal elements of a matrix. Sums of integers and bool are i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(a.trace()?.item::<f32>()?, 5.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor that is not a matrix.
    pub fn trace(&self) -> Result<Tensor> {
        DEF.run(&[self.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    if t.ndim() != 2 {
        return Err(wrong_shape(args, 0, "a matrix".to_string(), t.sizes()));
    }
    let dtype = if t.dtype().is_inexact() { t.dtype() } else { DType::I64 };
    Ok(Plan::one(t.dtype(), Dims::new(), dtype, Strides::Contiguous))
}

/// `trace`
pub static DEF: OpDef =
    OpDef::new("trace(Tensor self) -> Tensor", Rule::Structured(rule), Derivative::Composite, || {
        let shapes: [&[usize]; 5] = [&[1, 1], &[3, 3], &[2, 5], &[5, 2], &[0, 3]];
        shapes.iter().map(|sizes| sample([plain(sizes)])).collect()
    })
    .errors(|| vec![error([plain(&[3])], "a matrix"), error([plain(&[2, 2, 2])], "a matrix")])
    .decomposed(|args| one(tensor(args, 0).and_then(|t| t.diagonal()?.sum_all())))
    .viewing(&["diagonal"]);

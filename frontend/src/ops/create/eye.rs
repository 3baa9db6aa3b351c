//! `eye`

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{error, plain, sample};
use crate::tensor::IntoOptions;
use crate::tensor::filled::new;
use crate::tensor::shape::sizes;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Args, Plan, Rule};

impl Tensor {
    /// The identity matrix of size `n`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::eye(2)?.to_vec2::<f32>()?, [[1.0, 0.0], [0.0, 1.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory.
    #[doc(alias = "identity")]
    pub fn eye(n: usize) -> Result<Tensor> {
        Tensor::eye_with(n, n, ())
    }

    /// [`Tensor::eye`] of `rows` and `columns` with an optional dtype, device and memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let a = Tensor::eye_with(2, 3, DType::I32)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 0, 0, 0, 1, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::empty_with`].
    pub fn eye_with(rows: usize, columns: usize, options: impl IntoOptions) -> Result<Tensor> {
        called("eye", &["rows", "columns", "options"], || {
            let made = new("eye", &sizes("eye", (rows, columns))?, options.into_options()?)?;
            if made.dtype().is_complex() {
                return made.copy_(&Tensor::eye_with(
                    rows,
                    columns,
                    (made.dtype().to_real(), made.device()),
                )?);
            }
            DEF.run_in_place(&[(&made).into()])
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    if t.ndim() != 2 {
        let expected = "of 2 dimensions".to_string();
        return Err(Error::Shape { op: args.name(), argument: "self", expected, got: t.sizes().into() });
    }
    rules::like_first(args)
}

/// `eye`
pub static DEF: OpDef =
    OpDef::new("eye(Tensor self) -> Tensor", Rule::Structured(rule), Derivative::ZERO, || {
        let shapes: [&[usize]; 4] = [&[3, 3], &[2, 4], &[4, 1], &[0, 3]];
        shapes.iter().map(|s| sample([plain(s)])).collect()
    })
    .forms(Forms::InPlace)
    .errors(|| vec![error([plain(&[3])], "2 dimensions")]);

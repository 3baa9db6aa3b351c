//! `normalize`
//!
//! Arguments:
//! - `p`: the order of the norm.
//! - `eps`: the least divisor.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, float_tensor, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules::{like_first, reduced_dims};
use crate::ops::sample::{Fill, SampleArg, error, plain, sample, tensor as filled};
use crate::tensor::{Int, IntoDims};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Divides each vector along `dim` by its Euclidean norm; a zero vector is unchanged.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3.0f64, 4.0])?.normalize(0)?.to_vec::<f64>()?, [0.6, 0.8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range.
    pub fn normalize(&self, dim: impl Int) -> Result<Tensor> {
        self.normalize_with(2.0, dim, 1e-12)
    }

    /// Divides the elements over `dims` by `max(norm, eps)`, with their [`Tensor::norm`] of order `p`. An empty `dims` means
    /// all.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 3.0])?;
    /// assert_eq!(x.normalize_with(1.0, 0, 1e-12)?.to_vec::<f32>()?, [0.25, 0.75]);
    /// assert_eq!(x.normalize_with(1.0, 0, 8.0)?.to_vec::<f32>()?, [0.125, 0.375]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a dimension out of range or given twice.
    pub fn normalize_with(&self, p: f64, dims: impl IntoDims, eps: f64) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Float(p), Arg::Ints(&dims.into_dims()), Arg::Float(eps)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = float_tensor(args, 0)?;
    args.float(1)?;
    reduced_dims(args, 2, t.ndim())?;
    args.float(3)?;
    like_first(args)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let t = tensor(args, 0)?;
    let x = widened(&t)?;
    let length = x.norm_with(args.float(1)?, args.optional_ints(2)?.unwrap_or(&[]), true)?;
    cast(x.div(&length.clamp_min(args.float(3)?)?)?, t.dtype())
}

/// `normalize`
pub static DEF: OpDef = OpDef::new(
    "normalize(Tensor self, Scalar p=2, int[]? dim=1, float eps=1e-12) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    || {
        let call = |sizes: &[usize], p: f64, dims: &[i64]| {
            let x = filled(sizes, Fill::Distinct(0.3, 2.0));
            sample([x, SampleArg::Float(p), SampleArg::Ints(dims.to_vec()), SampleArg::Float(1e-12)])
        };
        vec![
            call(&[], 2.0, &[]),
            call(&[7], 2.0, &[0]),
            call(&[3, 4], 2.0, &[1]),
            call(&[3, 4], 1.0, &[0]),
            call(&[2, 3, 4], 2.0, &[0, 2]),
            call(&[2, 3, 2, 2], 2.0, &[-3]),
            call(&[2, 3, 2, 2], 3.0, &[1]),
            call(&[2, 1, 2, 3, 2], 2.0, &[3]),
            call(&[0, 3], 2.0, &[1]),
        ]
    },
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |dims: &[i64], message| {
        let rest = [SampleArg::Float(2.0), SampleArg::Ints(dims.to_vec()), SampleArg::Float(1e-12)];
        error([plain(&[3, 3])].into_iter().chain(rest), message)
    };
    vec![call(&[2], "out of range"), call(&[0, -2], "different dimensions")]
})
.decomposed(|args| one(compose(args)));

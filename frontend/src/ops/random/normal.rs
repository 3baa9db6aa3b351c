//! `normal`
//!
//! Arguments:
//! - `mean`: the mean.
//! - `std`: the standard deviation.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{SampleArg, error, plain};
use crate::tensor::filled::new;
use crate::tensor::shape::sizes;
use crate::tensor::{IntoOptions, IntoShape};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Random values of the standard normal distribution.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// keyway::manual_seed(1);
    /// let a = Tensor::randn_with(1000, DType::F64)?.to_vec::<f64>()?;
    /// assert!((a.iter().sum::<f64>() / 1000.0).abs() < 0.2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn randn(shape: impl IntoShape) -> Result<Tensor> {
        Tensor::randn_with(shape, ())
    }

    /// [`Tensor::randn`] with an optional dtype, device and memory format. The value at an index is the same in every memory
    /// format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::randn_with((2, 3), DType::F64)?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::F64));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::empty_with`]; a dtype that is not a float.
    pub fn randn_with(shape: impl IntoShape, options: impl IntoOptions) -> Result<Tensor> {
        called("randn", &["shape", "options"], || {
            new("randn", &sizes("randn", shape)?, options.into_options()?)?.normal_(0.0, 1.0)
        })
    }

    /// [`Tensor::randn`] with this tensor's shape, dtype, device and memory format; strided even if this tensor is sparse.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros_with((2, 3), DType::F64)?.randn_like()?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::F64));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn randn_like(&self) -> Result<Tensor> {
        self.randn_like_with(())
    }

    /// [`Tensor::randn_like`] with the given options replaced.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros((2, 3))?.randn_like_with(DType::F64)?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 3][..], DType::F64));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn randn_like_with(&self, options: impl IntoOptions) -> Result<Tensor> {
        called("randn_like", &["self", "options"], || self.uninit_like(options)?.normal_(0.0, 1.0))
    }

    /// Overwrites this tensor with random values of the normal distribution.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(10_000)?;
    /// x.normal_(5.0, 0.5)?;
    /// assert!((x.mean_all()?.item::<f32>()? - 5.0).abs() < 0.1);
    /// assert!((x.std_all()?.item::<f32>()? - 0.5).abs() < 0.1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a negative standard deviation.
    pub fn normal_(&self, mean: f64, std: f64) -> Result<Tensor> {
        super::draw_into(&DEF, self, &[Arg::Float(mean), Arg::Float(std)], super::words_of(self))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    rules::require(args, 0, plan.compute, plan.compute.is_float(), "a float dtype")?;
    let std = args.float(2)?;
    if std >= 0.0 {
        return Ok(plan);
    }
    Err(Error::Value {
        op: args.name(),
        argument: "std",
        expected: "0 or more".to_string(),
        got: std.to_string(),
    })
}

/// `normal`: random values of the normal distribution of this mean and standard deviation, from the Philox4x32-10 stream of
/// `seed` at `offset`.
pub static DEF: OpDef = OpDef::new(
    "normal(Tensor self, float mean, float std, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::ZERO,
    || super::samples(&[SampleArg::Float(1.0), SampleArg::Float(2.5)]),
)
.forms(Forms::InPlace)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call =
        [plain(&[2]), SampleArg::Float(0.0), SampleArg::Float(-1.0), SampleArg::Int(0), SampleArg::Int(0)];
    vec![error(call, "0 or more")]
});

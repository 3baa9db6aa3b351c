//! `uniform`

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
    /// Uniform random values in `0..1`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// keyway::manual_seed(1);
    /// let a = Tensor::rand(100)?;
    /// assert!(a.to_vec::<f32>()?.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn rand(shape: impl IntoShape) -> Result<Tensor> {
        Tensor::rand_with(shape, ())
    }

    /// [`Tensor::rand`] with an optional dtype, device and memory format. The value at an index is the same in every memory
    /// format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::rand_with((2, 3), DType::F64)?;
    /// assert!(x.to_vec::<f64>()?.iter().all(|v| (0.0..1.0).contains(v)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::empty_with`]; a dtype that is not a float.
    pub fn rand_with(shape: impl IntoShape, options: impl IntoOptions) -> Result<Tensor> {
        called("rand", &["shape", "options"], || {
            new("rand", &sizes("rand", shape)?, options.into_options()?)?.uniform_(0.0, 1.0)
        })
    }

    /// [`Tensor::rand`] with this tensor's shape, dtype, device and memory format; strided even if this tensor is sparse.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros_with((2, 3), DType::F64)?.rand_like()?;
    /// assert!(x.to_vec::<f64>()?.iter().all(|v| (0.0..1.0).contains(v)));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn rand_like(&self) -> Result<Tensor> {
        self.rand_like_with(())
    }

    /// [`Tensor::rand_like`] with the given options replaced.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::zeros((2, 3))?.rand_like_with(DType::F64)?;
    /// assert!(x.to_vec::<f64>()?.iter().all(|v| (0.0..1.0).contains(v)));
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn rand_like_with(&self, options: impl IntoOptions) -> Result<Tensor> {
        called("rand_like", &["self", "options"], || self.uninit_like(options)?.uniform_(0.0, 1.0))
    }

    /// Overwrites this tensor with uniform random values in `low..high`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(100)?;
    /// x.uniform_(3.0, 6.0)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|v| (3.0..6.0).contains(v)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; `low` above `high`.
    pub fn uniform_(&self, low: f64, high: f64) -> Result<Tensor> {
        super::draw_into(&DEF, self, &[Arg::Float(low), Arg::Float(high)], super::words_of(self))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    rules::require(args, 0, plan.compute, plan.compute.is_float(), "a float dtype")?;
    let (low, high) = (args.float(1)?, args.float(2)?);
    if low <= high && (high - low).is_finite() {
        return Ok(plan);
    }
    let expected = format!("finite and at most `high`, which is {high}");
    Err(Error::Value { op: args.name(), argument: "low", expected, got: low.to_string() })
}

/// `uniform`: uniform random values in `low..high`, from the Philox4x32-10 stream of `seed` at `offset`.
pub static DEF: OpDef = OpDef::new(
    "uniform(Tensor self, float low, float high, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::ZERO,
    || super::samples(&[SampleArg::Float(-1.0), SampleArg::Float(2.5)]),
)
.forms(Forms::InPlace)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call =
        [plain(&[2]), SampleArg::Float(1.0), SampleArg::Float(0.0), SampleArg::Int(0), SampleArg::Int(0)];
    vec![error(call, "at most `high`")]
});

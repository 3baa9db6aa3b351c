//! `exponential`
//!
//! Arguments:
//! - `lambd`: the rate, the inverse of the mean.

use crate::Tensor;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{SampleArg, error, plain};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Overwrites this tensor with random values of the exponential distribution of rate `lambd`, whose density is
    /// `lambd exp(-lambd x)`. No value is 0, unless it is rounded to it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::zeros(10_000)?;
    /// x.exponential_(4.0)?;
    /// assert!((x.mean_all()?.item::<f32>()? - 0.25).abs() < 0.02);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a rate that is not above 0.
    pub fn exponential_(&self, lambd: f64) -> Result<Tensor> {
        super::draw_into(&DEF, self, &[Arg::Float(lambd)], super::words_of(self))
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    rules::require(args, 0, plan.compute, plan.compute.is_float(), "a float dtype")?;
    let rate = args.float(1)?;
    if rate > 0.0 {
        return Ok(plan);
    }
    let (op, argument, expected, got) = (args.name(), "lambd", "above 0".to_string(), rate.to_string());
    Err(Error::Value { op, argument, expected, got })
}

/// `exponential`: random values of the exponential distribution of this rate, from the Philox4x32-10 stream of `seed` at `offset`:
/// `-log(1 - u) / lambd`, where `u` is the middle of the interval of the fractions that share their upper 32 bits, or 52 for f64.
pub static DEF: OpDef = OpDef::new(
    "exponential(Tensor self, float lambd, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::ZERO,
    || super::samples(&[SampleArg::Float(1.5)]),
)
.forms(Forms::InPlace)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = |rate| [plain(&[2]), SampleArg::Float(rate), SampleArg::Int(0), SampleArg::Int(0)];
    vec![error(call(0.0), "above 0"), error(call(-1.0), "above 0")]
});

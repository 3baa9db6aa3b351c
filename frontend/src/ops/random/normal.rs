//! `normal`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{SampleArg, error, plain};
use crate::{DType, Device, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Random numbers of the normal distribution of mean 0 and variance 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, Tensor, rng};
    /// rng::manual_seed(1);
    /// let a = Tensor::randn(&[1000], DType::F64, Device::CPU)?.to_vec::<f64>()?;
    /// assert!((a.iter().sum::<f64>() / 1000.0).abs() < 0.2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is no float.
    pub fn randn(sizes: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::empty(sizes, dtype, device)?.normal_(0.0, 1.0)
    }

    /// [`Tensor::randn`] with this tensor's sizes, dtype, device and memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn randn_like(&self) -> Result<Tensor> {
        self.empty_like()?.normal_(0.0, 1.0)
    }

    /// Overwrites this tensor with random numbers of the normal distribution.
    ///
    /// # Errors
    /// A dtype that is no float; a negative standard deviation.
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

/// `normal`
pub static DEF: OpDef = OpDef {
    schema: "normal(Tensor self, float mean, float std, int seed, int offset) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: None,
    derivative: Derivative::ZERO,
    forms: Forms::InPlace,
    dtypes: Dtypes::FLOAT,
    samples: || super::samples(&[SampleArg::Float(1.0), SampleArg::Float(2.5)]),
    errors: || {
        let call = [
            plain(&[2]),
            SampleArg::Float(0.0),
            SampleArg::Float(-1.0),
            SampleArg::Int(0),
            SampleArg::Int(0),
        ];
        vec![error(call, "0 or more")]
    },
    entry: Entry::new(),
};

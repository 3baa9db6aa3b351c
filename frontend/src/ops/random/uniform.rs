//! `uniform`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, Entry, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use crate::{DType, Device, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Random numbers, each equally likely in 0..1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Device, Tensor, rng};
    /// rng::manual_seed(1);
    /// let a = Tensor::rand(&[100], DType::F32, Device::CPU)?;
    /// assert!(a.to_vec::<f32>()?.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is no float.
    pub fn rand(sizes: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::empty(sizes, dtype, device)?.uniform_(0.0, 1.0)
    }

    /// [`Tensor::rand`] with this tensor's sizes, dtype, device and memory format.
    #[allow(clippy::missing_errors_doc)]
    pub fn rand_like(&self) -> Result<Tensor> {
        self.empty_like()?.uniform_(0.0, 1.0)
    }

    /// Overwrites this tensor with random numbers, each equally likely in `low..high`.
    ///
    /// # Errors
    /// A dtype that is no float; `low` above `high`.
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

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 8] =
        [&[], &[1], &[7], &[3, 5], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let call = |s: &&[usize]| {
        sample([
            plain(s),
            SampleArg::Float(-1.0),
            SampleArg::Float(2.5),
            SampleArg::Int(7),
            SampleArg::Int(3),
        ])
    };
    shapes.iter().map(call).collect()
}

/// `uniform`
pub static DEF: OpDef = OpDef {
    schema: "uniform(Tensor self, float low, float high, int seed, int offset) -> Tensor",
    rule: Rule::Structured(rule),
    decomposition: None,
    derivative: Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        formula: |b, g| g.set(0, || b.grad(0)?.zeros_like()),
    },
    forms: Forms::InPlace,
    dtypes: Dtypes::FLOAT,
    samples,
    errors: || {
        let call =
            [plain(&[2]), SampleArg::Float(1.0), SampleArg::Float(0.0), SampleArg::Int(0), SampleArg::Int(0)];
        vec![error(call, "at most `high`")]
    },
    entry: Entry::new(),
};

//! `poisson`

use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, sample, tensor};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

impl Tensor {
    /// Poisson samples: random counts of the rate in each element of this float tensor, in its dtype. A rate that is negative, NaN
    /// or infinite gives NaN: the values are not checked, so the call does not wait for the device. The gradient is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let counts = Tensor::full(10_000, 3.0f32)?.poisson()?;
    /// assert!((counts.mean_all()?.item::<f32>()? - 3.0).abs() < 0.1);
    /// assert_eq!(Tensor::new([0.0f32])?.poisson()?.to_vec::<f32>()?, [0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float.
    pub fn poisson(&self) -> Result<Tensor> {
        let [seed, offset] = super::place(self, super::Words::Four)?;
        DEF.run(&[self.into(), seed, offset])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    rules::require(args, 0, plan.compute, plan.compute.is_float(), "a float dtype: rates")?;
    Ok(plan)
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 7] = [&[], &[7], &[3, 5], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let rates = Fill::Values(vec![0.5, 3.0, 1.25, 12.5, 40.0, 9.75, 10.25, 300.0, 0.03125]);
    let call = |s: &&[usize]| sample([tensor(s, rates.clone()), SampleArg::Int(7), SampleArg::Int(3)]);
    shapes.iter().map(call).collect()
}

/// `poisson`: random values of the Poisson distributions of these rates. Element `i` draws from its own Philox4x32-10 stream
/// `offset + i + 1` of `seed`: below a rate of 10 by products of uniform values (Knuth), otherwise by transformed rejection (W.
/// Hörmann, "The transformed rejection method for generating Poisson random variables", 1993, algorithm PTRS), in f64.
pub static DEF: OpDef = OpDef::new(
    "poisson(Tensor self, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::ZERO,
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let whole = fixed(&[2], DType::I64, Fill::Index(2));
    vec![error([whole, SampleArg::Int(0), SampleArg::Int(0)], "a float dtype")]
});

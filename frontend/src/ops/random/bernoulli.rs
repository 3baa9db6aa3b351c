//! `bernoulli`
//!
//! Arguments:
//! - `p`: the probability of 1; None reads it from the elements of `self`.

use crate::error::{Result, called};
use crate::ops::def::{Derivative, Forms, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Fill, Sample, SampleArg, error, fixed, plain, sample, uniform};
use crate::{DType, Tensor};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Bernoulli samples: 1 with the probability in each element of this float tensor, otherwise 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let p = Tensor::new([0.0f32, 1.0])?;
    /// assert_eq!(p.bernoulli()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float. A probability outside 0..=1 is clamped, and NaN counts as 0: the values are not checked, so
    /// the call does not wait for the device.
    pub fn bernoulli(&self) -> Result<Tensor> {
        let [seed, offset] = super::place(self, super::Words::One)?;
        DEF.run(&[self.into(), Arg::None, seed, offset])
    }

    /// Overwrites each element with 1 with probability `p`, otherwise with 0. A tensor of probabilities broadcasts to this
    /// tensor's shape.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{DType, Tensor};
    /// let a = Tensor::empty_with((2, 2), DType::I64)?;
    /// let p = Tensor::new([0.0f32, 1.0])?;
    /// assert_eq!(a.bernoulli_(&p)?.to_vec::<i64>()?, [0, 1, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A number outside 0..=1; a tensor that is not of a float dtype or does not broadcast to this tensor's shape.
    pub fn bernoulli_<'a>(&'a self, p: impl Into<Arg<'a>>) -> Result<Tensor> {
        called("bernoulli", &["self", "p"], || {
            match p.into() {
                // Element `i` uses the same offset in the random stream as with a number.
                Arg::Tensor(p) => self.copy_(&Tensor::from_ref(p.clone()).expand(self.shape())?.bernoulli()?),
                p => super::draw_into(&DEF, self, &[p], super::Words::One),
            }
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    if matches!(args.get(1), Arg::None) {
        rules::require(args, 0, plan.compute, plan.compute.is_float(), "a float dtype: probabilities")?;
        return Ok(plan);
    }
    let p = args.float(1)?;
    if (0.0..=1.0).contains(&p) {
        return Ok(plan);
    }
    let expected = "a probability from 0 to 1".to_string();
    Err(Error::Value { op: args.name(), argument: "p", expected, got: p.to_string() })
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 7] = [&[], &[7], &[3, 5], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let place = || [SampleArg::Int(7), SampleArg::Int(3)];
    let number = shapes.iter().map(|s| sample([plain(s), SampleArg::Float(0.3)].into_iter().chain(place())));
    let of = |s: &[usize], dtype| {
        let p = fixed(s, dtype, Fill::Uniform(0.0, 1.0));
        sample([p, SampleArg::None].into_iter().chain(place()))
    };
    let tensor = shapes.iter().flat_map(|s| [of(s, DType::F32), of(s, DType::F64)]);
    number.chain(tensor).collect()
}

/// `bernoulli`
pub static DEF: OpDef = OpDef::new(
    "bernoulli(Tensor self, float? p, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::ZERO,
    samples,
)
.forms(Forms::InPlace)
.errors(|| {
    let call = |p| [uniform(&[2], 0.0, 1.0), p, SampleArg::Int(0), SampleArg::Int(0)];
    vec![error(call(SampleArg::Float(1.5)), "from 0 to 1")]
});

//! `dropout`
//!
//! Arguments:
//! - `p`: the probability with which an element becomes 0; the others are divided by `1 - p`.

use crate::DType;
use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef};
use crate::ops::rules;
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule};

impl Tensor {
    /// Dropout: in training, sets each element to 0 with probability `p` and divides the others by `1 - p`; otherwise returns
    /// this tensor. Applies to the values of a sparse tensor, coalesced first.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1.0f32; 8])?;
    /// assert!(a.dropout(0.5, true)?.to_vec::<f32>()?.iter().all(|&x| x == 0.0 || x == 2.0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A probability outside 0..=1; a dtype that is not a float.
    pub fn dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        called("dropout", &["self", "p", "training"], || {
            if !training {
                return Ok(self.clone());
            }
            if !self.as_ref().is_strided() {
                return self.without_duplicates()?.map_stored(|values| values.dropout(p, true));
            }
            let [seed, offset] = super::place(self, super::Words::One)?;
            DEF.run(&[self.into(), Arg::Float(p), seed, offset])
        })
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let plan = rules::like_first(args)?;
    rules::require(args, 0, plan.compute, plan.compute.is_float(), "a float dtype")?;
    let p = args.float(1)?;
    if (0.0..=1.0).contains(&p) {
        return Ok(plan);
    }
    let expected = "a probability from 0 to 1".to_string();
    Err(Error::Value { op: args.name(), argument: "p", expected, got: p.to_string() })
}

/// `bernoulli` draws from the same offset of the random stream, so the same elements are dropped.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let x = tensor(args, 0)?;
    // The mask has the strides of the result.
    let like = x.uninit_like(())?;
    let dropped = Tensor::uninit_strided(x.shape(), like.strides(), (DType::BOOL, x.device()))?;
    super::bernoulli::DEF.run_in_place(&[(&dropped).into(), args.get(1), args.get(2), args.get(3)])?;
    let scaled = widened(&x)?.mul(1.0 / (1.0 - args.float(1)?))?;
    cast(dropped.where_cond(0, &scaled)?, x.dtype())
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 7] = [&[], &[7], &[3, 5], &[0, 3], &[2, 3, 4], &[2, 3, 2, 5], &[2, 1, 2, 3, 2]];
    let call = |s: &[usize], p| sample([plain(s), SampleArg::Float(p), SampleArg::Int(7), SampleArg::Int(3)]);
    shapes.iter().map(|s| call(s, 0.3)).chain([call(&[4], 0.0), call(&[4], 1.0)]).collect()
}

/// `dropout`
pub static DEF: OpDef = OpDef::new(
    "dropout(Tensor self, float p, int seed, int offset) -> Tensor",
    Rule::Structured(rule),
    Derivative::Formula {
        saves: 0,
        saves_outputs: 0,
        // The same offset of the random stream drops the same elements, so no mask is saved.
        formula: |b, g| g.set(0, || DEF.run(&[b.grad(0)?.into(), b.arg(1), b.arg(2), b.arg(3)])),
    },
    samples,
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let call = [plain(&[2]), SampleArg::Float(-0.5), SampleArg::Int(0), SampleArg::Int(0)];
    vec![error(call, "from 0 to 1")]
})
.decomposed(|args| one(compose(args)));

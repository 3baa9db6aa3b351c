//! `binary_cross_entropy`
//!
//! Arguments:
//! - `weight`: the factor of each element's loss, broadcast to the input.

use super::Reduction;
use super::{one, reduce_narrowed, wide_pair};
use crate::autograd::{Backward, Grads};
use crate::error::Result;
use crate::ops::composite::{optional, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{Fill, Sample, SampleArg, plain, sample, tensor, uniform};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::broadcast;
use keyway_dispatcher::op::{Arg, Args, Rule};

impl Tensor {
    /// The mean of `-(t log(x) + (1 - t) log(1 - x))` for probabilities `x`, with logarithms clamped at -100. The result is
    /// NaN for an `x` below 0 or above 1 (PyTorch refuses it); use [`Tensor::binary_cross_entropy_with_logits`] for logits.
    ///
    /// The gradient is `(x - t) / (x (1 - x))`, clamped to ±10^12: it is ±10^12 instead of infinite for a wrong probability of
    /// 0 or 1, and 0 for a right one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0.5f32])?;
    /// let t = Tensor::new([1.0f32])?;
    /// assert!((x.binary_cross_entropy(&t)?.item::<f32>()? - 2.0f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// An input that is not a float; incompatible shapes.
    pub fn binary_cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.binary_cross_entropy_with(target, None, Reduction::Mean)
    }

    /// [`Tensor::binary_cross_entropy`] with a `weight`, which broadcasts, and a reduction.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Tensor, nn::Reduction};
    /// let (p, target) = (Tensor::new([0.5f32, 0.5])?, Tensor::new([1.0f32, 0.0])?);
    /// let weight = Tensor::new([0.0f32, 3.0])?;
    /// let loss = p.binary_cross_entropy_with(&target, Some(&weight), Reduction::Sum)?;
    /// assert!((loss.item::<f32>()? - 3.0 * 2f32.ln()).abs() < 1e-6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn binary_cross_entropy_with(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        DEF.run(&[self.into(), target.into(), Arg::optional(weight), reduction.into()])
    }
}

/// The logarithm clamped at -100, constant where it is clamped. NaN for negative arguments.
fn log(x: &Tensor) -> Result<Tensor> {
    let tiny = x.abs()?.le((-100f64).exp())?;
    tiny.where_cond(-100.0, &tiny.where_cond(1.0, x)?.log()?)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, target) = wide_pair(args)?;
    let loss = each(&x, &target)?;
    let loss = if let Some(weight) = optional(args, 2)? { loss.mul(&widened(&weight)?)? } else { loss };
    reduce_narrowed(args, 3, loss, 0b111)
}

/// The gradients of input, target and weight. Those of the clamped logarithms would be 0 where they are clamped.
fn formula(b: &Backward<'_>, g: &mut Grads<'_>) -> Result<()> {
    let (x, target) = (widened(&b.input(0)?)?, widened(&b.input(1)?)?);
    let weight = b.optional_input(2)?.map(|weight| widened(&weight)).transpose()?;
    let all = broadcast(DEF.name(), x.shape(), target.shape())?;
    let all = weight.as_ref().map_or(Ok(all.clone()), |w| broadcast(DEF.name(), &all, w.shape()))?;
    let grad = widened(b.grad(0)?)?.expand(&all)?;
    let grad = if b.str(3)? == "mean" { grad.div(all.iter().product::<usize>() as f64)? } else { grad };
    let weighted = || if let Some(weight) = &weight { grad.mul(weight) } else { Ok(grad.clone()) };
    g.set(0, || weighted()?.mul(&slope(&x, &target)?))?;
    g.set(1, || weighted()?.mul(&log(&x.rsub(1)?)?.sub(&log(&x)?)?))?;
    g.set(2, || grad.mul(&each(&x, &target)?))
}

/// The unreduced loss.
fn each(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    let other = target.rsub(1.0)?.mul(&log(&x.rsub(1.0)?)?)?;
    target.mul(&log(x)?)?.add(&other)?.neg()
}

/// `(x - target) / ((1 - x) x)`, clamped to ±1e12, also where `x` is 0 or 1.
fn slope(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    // The smallest positive value; it leaves every other `x` unchanged.
    let least = if x.dtype() == DType::F64 { f64::from_bits(1) } else { f64::from(f32::from_bits(1)) };
    x.sub(target)?.div(&x.rsub(1)?.mul(x)?.clamp_min(least)?)?.clamp(-1e12, 1e12)
}

/// `binary_cross_entropy`
pub static DEF: OpDef = OpDef::new(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, \
     str reduction='mean') -> Tensor",
    Rule::Structured(|args| super::rule(args, 3, 0b111)),
    Derivative::Formula { saves: 0b111, saves_outputs: 0, formula },
    || {
        let weighted =
            [uniform(&[4], 0.1, 0.9), uniform(&[4], 0.1, 0.9), plain(&[4]), SampleArg::Str("mean")];
        let pair = |sizes: &[usize]| [uniform(sizes, 0.1, 0.9), uniform(sizes, 0.1, 0.9)];
        let certain = [
            tensor(&[5], Fill::Values(vec![0.0, 1.0, 0.0, 1.0, 0.25])),
            tensor(&[5], Fill::Values(vec![1.0, 0.0, 0.0, 1.0, 1.0])),
            SampleArg::None,
            SampleArg::Str("none"),
        ];
        let no_probability = [
            tensor(&[5], Fill::Values(vec![-0.0, 3.0, -2.0, f64::NAN, -1e-6])),
            tensor(&[5], Fill::Values(vec![0.0, 1.0, 0.0, 0.0, 1.0])),
            SampleArg::None,
            SampleArg::Str("none"),
        ];
        let [certain, no_probability] =
            [certain, no_probability].map(|args| Sample { smooth: false, ..sample(args) });
        super::samples(vec![sample(weighted), certain, no_probability], pair, &[SampleArg::None])
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| super::errors(&[SampleArg::None]))
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);

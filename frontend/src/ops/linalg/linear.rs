//! `linear`
//!
//! Arguments:
//! - `weight`: the matrix `[outputs, inputs]`.
//! - `input`: `[.., inputs]`.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, optional, tensor};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{FIRST_THREE, FIRST_TWO, wrong_shape};
use crate::ops::sample::{Sample, SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// `self @ weight^T + bias`, for a weight `[out, in]` and inputs `[.., in]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 2.0])?;
    /// let weight = Tensor::from_vec(vec![1.0f32, 10.0], (1, 2))?;
    /// let bias = Tensor::new([100.0f32])?;
    /// assert_eq!(x.linear(&weight, Some(&bias))?.to_vec::<f32>()?, [121.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A weight that is not a matrix, or incompatible sizes.
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        DEF.run(&[self.into(), weight.into(), Arg::optional(bias)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (x, weight, bias) = (args.tensor(0)?.sizes(), args.tensor(1)?.sizes(), args.optional_tensor(2)?);
    let &[outputs, inputs] = weight else {
        return Err(wrong_shape(args, 1, "a matrix, [out, in]".into(), weight));
    };
    let Some((_, lead)) = x.split_last().filter(|(last, _)| **last == inputs) else {
        let expected = format!("{inputs} elements in the last dimension, as `weight` has columns");
        return Err(wrong_shape(args, 0, expected, x));
    };
    if let Some(bias) = bias.filter(|b| b.sizes() != [outputs]) {
        let expected = format!("a vector of {outputs} elements, as `weight` has rows");
        return Err(wrong_shape(args, 2, expected, bias.sizes()));
    }
    let operands = if bias.is_some() { FIRST_THREE } else { FIRST_TWO };
    let dtype = args.promote(operands)?;
    let mut sizes = Dims::from_slice(lead);
    sizes.push(outputs);
    let mut plan = Plan::one(dtype, sizes, dtype, Strides::Contiguous);
    plan.cast = operands;
    Ok(plan)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    apply(&tensor(args, 0)?, &tensor(args, 1)?, optional(args, 2)?.as_ref())
}

fn apply(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let Some(bias) = bias else {
        let weight = weight.t()?;
        return if x.rank() == 2 { x.mm(&weight) } else { x.matmul(&weight) };
    };
    if x.rank() == 2 {
        return bias.addmm(x, &weight.t()?);
    }
    let lead = &x.shape()[..x.rank() - 1];
    let flat = x.reshape_as_sizes(&[lead.iter().product(), weight.shape()[1]])?;
    let mut sizes = Dims::from_slice(lead);
    sizes.push(weight.shape()[0]);
    bias.addmm(&flat, &weight.t()?)?.reshape_as_sizes(&sizes)
}

fn samples() -> Vec<Sample> {
    let shapes: [&[usize]; 7] =
        [&[3], &[2, 3], &[2, 4, 3], &[2, 1, 2, 3], &[2, 1, 2, 1, 3], &[0, 3], &[1, 3]];
    let with = shapes.iter().map(|s| sample([plain(s), plain(&[2, 3]), plain(&[2])]));
    let without = shapes.iter().map(|s| sample([plain(s), plain(&[2, 3]), SampleArg::None]));
    with.chain(without).collect()
}

/// `linear`
pub static DEF: OpDef = OpDef::new(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    Rule::Structured(rule),
    Derivative::Composite,
    samples,
)
.dtypes(Dtypes::NUMERIC)
.errors(|| {
    vec![
        error([plain(&[2, 4]), plain(&[2, 3]), SampleArg::None], "3 elements"),
        error([plain(&[2, 3]), plain(&[2, 3]), plain(&[3])], "2 elements"),
        error([plain(&[2, 3]), plain(&[3]), SampleArg::None], "a matrix"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST);

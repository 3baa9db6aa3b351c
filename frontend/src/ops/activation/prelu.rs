//! `prelu`
//!
//! Arguments:
//! - `weight`: the factor of negative elements: one, or one for each channel.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, tensor, widened};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{FIRST, FIRST_TWO, binary_real, wrong_shape};
use crate::ops::sample::{Fill, error, plain, refuses_integer_pairs, sample, tensor as filled};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};
use smallvec::SmallVec;

impl Tensor {
    /// `x` if it is above 0, otherwise `weight * x`. The learned `weight` has one element, or one per channel (dimension 1)
    /// (K. He and others, "Delving deep into rectifiers", 2015).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![-2.0f32, -2.0, 2.0, 2.0], (2, 2))?;
    /// let weight = Tensor::new([0.5f32, 0.25])?;
    /// assert_eq!(x.prelu(&weight)?.to_vec::<f32>()?, [-1.0, -0.5, 2.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dtype that is not a float; a weight of more than one dimension, or whose length is neither 1 nor the number of
    /// channels.
    pub fn prelu(&self, weight: &Tensor) -> Result<Tensor> {
        DEF.run(&[self.into(), weight.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (t, weight, typing) = (args.tensor(0)?, args.tensor(1)?, binary_real(args)?);
    let channels = if t.ndim() < 2 { 1 } else { t.sizes()[1] };
    if weight.ndim() > 1 || (weight.numel() != 1 && weight.numel() != channels) {
        let expected = format!("of at most one dimension, with 1 element or {channels}");
        return Err(wrong_shape(args, 1, expected, weight.sizes()));
    }
    let mut plan = Plan::elementwise(args, FIRST, typing)?;
    plan.cast = FIRST_TWO;
    Ok(plan)
}

/// Reshapes the weight to broadcast with `ndim` dimensions, where dimension 1 holds the channels.
fn spread(weight: &Tensor, ndim: usize) -> Result<Tensor> {
    if weight.elem_count() == 1 {
        return weight.reshape(());
    }
    let mut sizes: SmallVec<[i64; 8]> = SmallVec::from_elem(1, ndim);
    sizes[1] = -1;
    weight.reshape(&sizes)
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let dtype = args.promote(FIRST_TWO)?;
    let operand = |i: usize| widened(&cast(tensor(args, i)?, dtype)?);
    let (x, weight) = (operand(0)?, operand(1)?);
    let below = x.mul(&spread(&weight, x.rank())?)?;
    cast(x.gt(0)?.where_cond(&x, &below)?, dtype)
}

/// `prelu`
pub static DEF: OpDef = OpDef::new(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_inputs(0b11, |b, g| {
        let (grad, x, weight) = (widened(b.grad(0)?)?, widened(&b.input(0)?)?, widened(&b.input(1)?)?);
        let above = x.gt(0)?;
        g.set(0, || above.where_cond(&grad, &grad.mul(&spread(&weight, x.rank())?)?))?;
        g.set(1, || {
            let each = above.where_cond(0, &grad.mul(&x)?)?;
            if weight.elem_count() == 1 {
                return each.sum_all()?.reshape_as_sizes(weight.shape());
            }
            let others: SmallVec<[i64; 8]> = (0..x.rank() as i64).filter(|&d| d != 1).collect();
            each.sum(&others)
        })
    }),
    || {
        let x = |sizes: &[usize]| filled(sizes, Fill::AwayFrom(-2.2, 2.2, 0.05));
        let call = |sizes: &[usize], weight: &[usize]| sample([x(sizes), plain(weight)]);
        vec![
            call(&[], &[]),
            call(&[7], &[1]),
            call(&[3, 4], &[4]),
            call(&[3, 4], &[1]),
            call(&[0, 3], &[3]),
            call(&[2, 3, 4], &[3]),
            call(&[2, 3, 2, 5], &[3]),
            call(&[2, 2, 2, 3, 2], &[2]),
        ]
    },
)
.dtypes(Dtypes::FLOAT)
.errors(|| {
    let shape = |sizes: &[usize], weight: &[usize]| error([plain(sizes), plain(weight)], "1 element or");
    let mut errors = vec![shape(&[2, 3], &[2]), shape(&[3], &[3]), shape(&[2, 3], &[1, 3])];
    errors.extend(refuses_integer_pairs());
    errors
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST);

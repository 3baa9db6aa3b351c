//! `channel_shuffle`
//!
//! Arguments:
//! - `groups`: the number of groups, whose channels are interleaved.

use super::geometry::joined;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor, whole};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::rules::{kept, wrong_shape, wrong_value};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

impl Tensor {
    /// Interleaves the channels of `groups` groups in `[batch, channels, ..]`: the channels, viewed as
    /// `[groups, channels / groups]`, are transposed (X. Zhang and others, "ShuffleNet", 2018).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![0, 1, 2, 3, 4, 5], (1, 6, 1))?;
    /// assert_eq!(x.channel_shuffle(2)?.to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer than 3 dimensions; a number of groups that does not divide the channels.
    pub fn channel_shuffle(&self, groups: usize) -> Result<Tensor> {
        DEF.run(&[self.into(), whole(groups)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let x = args.tensor(0)?;
    if x.ndim() < 3 {
        let expected = "of 3 or more dimensions, [batch, channels, ..]".to_string();
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    }
    let channels = x.sizes()[1];
    match usize::try_from(args.int(1)?) {
        Ok(groups @ 1..) if channels.is_multiple_of(groups) => {}
        _ => return Err(wrong_value(args, 1, format!("a divisor of the {channels} channels"))),
    }
    Ok(Plan::one(x.dtype(), Dims::from_slice(x.sizes()), x.dtype(), kept(x, x.sizes())))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, groups) = (tensor(args, 0)?, args.int(1)?);
    let split = x.unflatten(1, [groups, x.shape()[1] as i64 / groups])?;
    let dims: Vec<Vec<usize>> =
        [vec![0], vec![2, 1]].into_iter().chain((3..split.rank()).map(|d| vec![d])).collect();
    joined(&split, &dims, &x)
}

/// `channel_shuffle`
pub static DEF: OpDef = OpDef::new(
    "channel_shuffle(Tensor self, int groups) -> Tensor",
    Rule::Structured(rule),
    // The inverse is a shuffle with `channels / groups` groups.
    Derivative::of_grad(|b, g| {
        g.set(0, || b.grad(0)?.channel_shuffle((b.sizes(0)[1] / b.int(1)?.max(1) as usize).max(1)))
    }),
    || {
        let call = |sizes: &[usize], groups| sample([plain(sizes), SampleArg::Int(groups)]);
        vec![
            call(&[2, 6, 3], 2),
            call(&[2, 6, 2, 3], 3),
            call(&[1, 4, 3, 2], 4),
            call(&[2, 3, 4, 2], 1),
            call(&[1, 4, 2, 1, 3], 2),
            call(&[0, 4, 2, 2], 2),
        ]
    },
)
.errors(|| {
    let call = |sizes: &[usize], groups, message| error([plain(sizes), SampleArg::Int(groups)], message);
    vec![
        call(&[4, 4], 2, "of 3 or more dimensions"),
        call(&[1, 4, 2, 2], 0, "a divisor of the 4 channels"),
        call(&[1, 4, 2, 2], 3, "a divisor of the 4 channels"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT);

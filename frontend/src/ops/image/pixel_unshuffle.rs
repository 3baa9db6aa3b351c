//! `pixel_unshuffle`
//!
//! Arguments:
//! - `downscale_factor`: the divisor of height and width.

use super::geometry::{joined, with_factor};
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor, whole};
use crate::ops::def::{Derivative, OpDef, OpFlags};
use crate::ops::rules::{kept, wrong_shape};
use crate::ops::sample::{SampleArg, error, plain, sample};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Plan, Rule};

impl Tensor {
    /// Rearranges `[.., channels, height * factor, width * factor]` to `[.., channels * factor², height, width]`: the inverse
    /// of [`Tensor::pixel_shuffle`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec((0..16).collect(), (1, 4, 4))?;
    /// assert_eq!(x.pixel_unshuffle(2)?.shape(), [4, 2, 2]);
    /// assert_eq!(x.pixel_unshuffle(2)?.pixel_shuffle(2)?.to_vec::<i32>()?, x.to_vec::<i32>()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer than 3 dimensions; a factor of 0, or that does not divide height and width.
    pub fn pixel_unshuffle(&self, downscale_factor: usize) -> Result<Tensor> {
        DEF.run(&[self.into(), whole(downscale_factor)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (x, factor) = with_factor(args)?;
    let mut sizes = Dims::from_slice(x.sizes());
    let c = x.ndim() - 3;
    if !sizes[c + 1..].iter().all(|size| size.is_multiple_of(factor)) {
        let expected = format!("of height and width that the factor {factor} divides");
        return Err(wrong_shape(args, 0, expected, x.sizes()));
    }
    sizes[c + 1..].iter_mut().for_each(|size| *size /= factor);
    sizes[c] = sizes[c].saturating_mul(factor.saturating_mul(factor));
    let strides = kept(x, &sizes);
    Ok(Plan::one(x.dtype(), sizes, x.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, factor, c) = (tensor(args, 0)?, args.int(1)?, args.tensor(0)?.ndim() - 3);
    let [height, width] = [c + 1, c + 2].map(|d| x.shape()[d] as i64 / factor);
    let split = x.unflatten(c as i64 + 1, [height, factor])?.unflatten(c as i64 + 3, [width, factor])?;
    let groups: Vec<Vec<usize>> =
        (0..c).map(|d| vec![d]).chain([vec![c, c + 2, c + 4], vec![c + 1], vec![c + 3]]).collect();
    joined(&split, &groups, &x)
}

/// `pixel_unshuffle`
pub static DEF: OpDef = OpDef::new(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.pixel_shuffle(b.int(1)?.max(1) as usize))),
    || {
        let call = |sizes: &[usize], factor| sample([plain(sizes), SampleArg::Int(factor)]);
        vec![
            call(&[2, 4, 6], 2),
            call(&[2, 3, 4, 6], 2),
            call(&[1, 2, 3, 6], 3),
            call(&[2, 3, 4, 2], 1),
            call(&[2, 2, 1, 2, 4], 2),
            call(&[0, 2, 4, 4], 2),
        ]
    },
)
.errors(|| {
    let call = |sizes: &[usize], factor, message| error([plain(sizes), SampleArg::Int(factor)], message);
    vec![
        call(&[4, 4], 2, "of 3 or more dimensions"),
        call(&[1, 4, 2, 2], 0, "1 or more"),
        call(&[1, 1, 4, 3], 2, "the factor 2 divides"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT);

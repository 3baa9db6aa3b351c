//! `pixel_shuffle`
//!
//! Arguments:
//! - `upscale_factor`: the factor of height and width.

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
    /// Rearranges `[.., channels * factor², height, width]` to `[.., channels, height * factor, width * factor]`: groups of
    /// `factor²` channels become squares of pixels (W. Shi and others, "Real-time single image and video super-resolution using
    /// an efficient sub-pixel convolutional neural network", 2016).
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::from_vec(vec![1, 2, 3, 4], (4, 1, 1))?;
    /// let y = x.pixel_shuffle(2)?;
    /// assert_eq!((y.shape(), y.to_vec::<i32>()?), (&[1, 2, 2][..], vec![1, 2, 3, 4]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fewer than 3 dimensions; a factor of 0, or whose square does not divide the channels.
    pub fn pixel_shuffle(&self, upscale_factor: usize) -> Result<Tensor> {
        DEF.run(&[self.into(), whole(upscale_factor)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let (x, factor) = with_factor(args)?;
    let mut sizes = Dims::from_slice(x.sizes());
    let c = x.ndim() - 3;
    match factor.checked_mul(factor) {
        Some(square) if sizes[c].is_multiple_of(square) => sizes[c] /= square,
        _ => {
            let expected =
                format!("of channels (dimension {c}) that the square of the factor {factor} divides");
            return Err(wrong_shape(args, 0, expected, x.sizes()));
        }
    }
    sizes[c + 1..].iter_mut().for_each(|size| *size = size.saturating_mul(factor));
    let strides = kept(x, &sizes);
    Ok(Plan::one(x.dtype(), sizes, x.dtype(), strides))
}

fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, factor, c) = (tensor(args, 0)?, args.int(1)?, args.tensor(0)?.ndim() - 3);
    let channels = x.shape()[c] as i64 / (factor * factor);
    let split = x.unflatten(c as i64, [channels, factor, factor])?;
    let groups: Vec<Vec<usize>> =
        (0..=c).map(|d| vec![d]).chain([vec![c + 3, c + 1], vec![c + 4, c + 2]]).collect();
    joined(&split, &groups, &x)
}

/// `pixel_shuffle`
pub static DEF: OpDef = OpDef::new(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.pixel_unshuffle(b.int(1)?.max(1) as usize))),
    || {
        let call = |sizes: &[usize], factor| sample([plain(sizes), SampleArg::Int(factor)]);
        vec![
            call(&[8, 2, 3], 2),
            call(&[2, 8, 2, 3], 2),
            call(&[1, 9, 2, 2], 3),
            call(&[2, 3, 4, 2], 1),
            call(&[2, 2, 4, 1, 3], 2),
            call(&[0, 4, 2, 2], 2),
        ]
    },
)
.errors(|| {
    let call = |sizes: &[usize], factor, message| error([plain(sizes), SampleArg::Int(factor)], message);
    vec![
        call(&[4, 4], 2, "of 3 or more dimensions"),
        call(&[1, 4, 2, 2], 0, "1 or more"),
        call(&[1, 6, 2, 2], 2, "the square of the factor 2 divides"),
        call(&[1, 4, 2, 2], i64::MAX, "divides"),
    ]
})
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT);

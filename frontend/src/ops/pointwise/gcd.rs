//! `gcd`

use super::bitwise;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one};
use crate::ops::def::OpDef;
use crate::ops::forms;
use crate::ops::rules::FIRST_TWO;
use keyway_dispatcher::op::{Arg, Args};

forms! {
    /// The greatest common divisor of the magnitudes, broadcast and promoted; that of 0 and `x` is the magnitude of `x`. The
    /// magnitude of the least integer wraps to itself.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([12i64, -18, 0])?;
    /// assert_eq!(a.gcd(8)?.to_vec::<i64>()?, [4, 2, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats and bool; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn gcd<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: gcd_, out: gcd_out, on: 6;
}

/// The two operands in the promoted dtype.
pub(super) fn operands(args: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let dtype = args.promote(FIRST_TWO)?;
    let tensor = |i: usize| match args.get(i) {
        Arg::Tensor(t) => Some(Tensor::from_ref(t.clone())),
        _ => None,
    };
    let like = tensor(0).or_else(|| tensor(1));
    let operand = |i: usize| match (tensor(i), &like) {
        (Some(t), _) => cast(t, dtype),
        (None, Some(like)) => Tensor::full_with((), args.get(i), (dtype, like.device())),
        (None, None) => Tensor::full_with((), args.get(i), dtype),
    };
    Ok((operand(0)?, operand(1)?))
}

fn is_signed(t: &Tensor) -> bool {
    t.dtype().integer_range().is_some_and(|(least, _)| least < 0)
}

/// The negative magnitude, which each signed dtype represents; the magnitude itself of unsigned ones.
fn below_zero(t: &Tensor) -> Result<Tensor> {
    if is_signed(t) { t.minimum(&t.neg()?) } else { Ok(t.clone()) }
}

/// Euclid's algorithm on negative magnitudes, until all remainders are 0. The first step broadcasts the operands, as any
/// element-wise op does, so that the result has the memory format of one.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, y) = operands(args)?;
    let signed = is_signed(&x);
    let (mut a, mut b) = (below_zero(&x)?, below_zero(&y)?);
    loop {
        let done = b.eq(0)?;
        let rest = done.where_cond(0, &a.fmod(&done.where_cond(1, &b)?)?)?;
        (a, b) = (done.where_cond(&a, &b)?, rest);
        if b.eq(0)?.all(..)?.item::<bool>()? {
            break;
        }
    }
    if signed { a.neg() } else { Ok(a) }
}

/// `gcd`
pub static DEF: OpDef =
    bitwise::divisors("gcd(Tensor self, Tensor other) -> Tensor").decomposed(|args| one(compose(args)));

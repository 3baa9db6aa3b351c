//! `lcm`

use super::bitwise;
use super::gcd::operands;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::one;
use crate::ops::def::OpDef;
use crate::ops::forms;
use crate::tensor::Rounding;
use keyway_dispatcher::op::{Arg, Args};

forms! {
    /// The least common multiple of the magnitudes, broadcast and promoted; 0 if either operand is 0. Wraps beyond the range of
    /// the dtype.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([12i64, -3, 0])?;
    /// assert_eq!(a.lcm(8)?.to_vec::<i64>()?, [24, 24, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Floats and bool; shapes that do not broadcast, dtypes without a common one, tensors on different devices.
    pub fn lcm<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: lcm_, out: lcm_out, on: 6;
}

/// `|x / gcd(x, y)| |y|`.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, y) = operands(args)?;
    let divisor = x.gcd(&y)?;
    // Both operands are 0 if the divisor is.
    let divisor = divisor.eq(0)?.where_cond(1, &divisor)?;
    x.div_with(&divisor, Rounding::Trunc)?.abs()?.mul(&y.abs()?)
}

/// `lcm`
pub static DEF: OpDef =
    bitwise::divisors("lcm(Tensor self, Tensor other) -> Tensor").decomposed(|args| one(compose(args)));

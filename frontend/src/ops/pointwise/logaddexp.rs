//! `logaddexp`

use super::pair;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, one, widened};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::sample::{PAIRS, Sample, SampleArg, broadcast_errors, plain, refuses_integer_pairs, sample};
use crate::ops::{forms, rules};
use keyway_dispatcher::op::{Arg, Args};
use std::f64::consts::LN_2;

forms! {
    /// `log(exp(self) + exp(other))` without overflow, broadcast and promoted: addition in log space.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1000.0f64])?;
    /// assert_eq!(x.logaddexp(1000.0)?.to_vec::<f64>()?, [1000.0 + std::f64::consts::LN_2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Operands that are not floats; shapes that do not broadcast, tensors on different devices.
    pub fn logaddexp<'a>(&'a self, other: impl Into<Arg<'a>>), out: logaddexp_out;
}

/// `max(x, y) + log(1 + exp(-|x - y|))`. Equal operands first, since the difference of infinities is NaN.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, y, dtype) = pair::real(args)?;
    let greater = x.maximum(&y)?;
    let more = x.sub(&y)?.abs()?.neg()?.exp()?.log1p()?;
    let more = x.eq(&y)?.where_cond(LN_2, &more)?;
    cast(greater.add(&more)?, dtype)
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b)]));
    let numbers =
        [sample([plain(&[3, 4]), SampleArg::Float(0.75)]), sample([SampleArg::Int(1), plain(&[4])])];
    pairs.chain(numbers).collect()
}

/// `logaddexp`
pub static DEF: OpDef = OpDef::binary(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    rules::binary_real,
    Derivative::of_inputs(0b11, |b, g| {
        let [x, y] = pair::saved(b)?;
        let (x, y) = (widened(&x)?, widened(&y)?);
        // Equal infinities get half of the gradient each, as equal numbers do.
        let infinite = x.eq(&y)?.logical_and(&x.isinf()?)?;
        let ahead = infinite.where_cond(0, &x.sub(&y)?)?;
        g.set(0, || b.grad(0)?.mul(&ahead.sigmoid()?))?;
        g.set(1, || b.grad(0)?.mul(&ahead.neg()?.sigmoid()?))
    }),
)
.forms(Forms::Out)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(|| [broadcast_errors(&[]), refuses_integer_pairs()].concat())
.decomposed(|args| one(compose(args)))
.with(OpFlags::AUTOCAST_F32);

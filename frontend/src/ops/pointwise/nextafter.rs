//! `nextafter`

use super::pair;
use crate::error::Result;
use crate::ops::composite::{cast, one};
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::{
    Fill, PAIRS, Sample, SampleArg, broadcast_errors, plain, refuses_integer_pairs, sample, tensor,
};
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Arg, Args};

forms! {
    /// The next representable value of the dtype after `self` towards `other`, broadcast and promoted; `other` where both are
    /// equal. Only `self` has a gradient.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f64])?;
    /// assert_eq!(x.nextafter(2.0)?.to_vec::<f64>()?, [1.0 + f64::EPSILON]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Operands that are not floats; shapes that do not broadcast, tensors on different devices.
    pub fn nextafter<'a>(&'a self, other: impl Into<Arg<'a>>), in_place: nextafter_, out: nextafter_out;
}

/// Constants of a dtype: half the machine epsilon, the smallest positive value, and the largest finite value.
fn limits(dtype: DType) -> (f64, f64, f64) {
    match dtype {
        DType::F16 => (2f64.powi(-11), 2f64.powi(-24), 65_504.0),
        DType::BF16 => (2f64.powi(-8), 2f64.powi(-133), 255.0 * 2f64.powi(120)),
        DType::F32 => (2f64.powi(-24), 2f64.powi(-149), f64::from(f32::MAX)),
        _ => (2f64.powi(-53), f64::from_bits(1), f64::MAX),
    }
}

/// The neighbours of positive values, by additions that round (S. M. Rump, P. Zimmermann, S. Boldo, G. Melquiond, "Computing
/// predecessor and successor in rounding to nearest", BIT 49, 2009, algorithm 1).
fn neighbours(size: &Tensor) -> Result<[Tensor; 2]> {
    let (half, least, _) = limits(size.dtype());
    let share = half * (1.0 + 2.0 * half);
    let (step, scaled) = (size.mul(share)?, size.mul(1.0 / half)?);
    let scaled_step = scaled.mul(share)?;
    // For values so small that the fraction would underflow: the spacing of subnormal values is the smallest positive
    // value; other small values are scaled.
    let (tiny, small) = (size.lt(least / half)?, size.lt(0.5 / half / half * least)?);
    let least = size.new_full((), least)?;
    let of = |go: fn(&Tensor, &Tensor) -> Result<Tensor>| -> Result<Tensor> {
        let large = small.where_cond(&go(&scaled, &scaled_step)?.mul(half)?, &go(size, &step)?)?;
        tiny.where_cond(&go(size, &least)?, &large)
    };
    Ok([of(|x, e| x.sub(e))?, of(|x, e| x.add(e))?])
}

/// Computed in the dtype itself: the neighbours in f16 and bf16 differ from those in f32.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, y, dtype) = pair::real(args)?;
    let (x, y) = (cast(x, dtype)?, cast(y, dtype)?);
    let size = x.abs()?;
    let [less, more] = neighbours(&size)?;
    let less = size.eq(f64::INFINITY)?.where_cond(limits(dtype).2, &less)?;
    let zero = x.eq(0)?;
    let away = zero.logical_or(&x.gt(0)?.logical_xor(&y.lt(&x)?)?)?;
    let made = away.where_cond(&more, &less)?.copysign(&zero.where_cond(&y, &x)?)?;
    let made = x.eq(&y)?.where_cond(&y, &made)?;
    x.isnan()?.logical_or(&y.isnan()?)?.where_cond(f64::NAN, &made)
}

fn samples() -> Vec<Sample> {
    let pairs = PAIRS.iter().map(|(a, b)| sample([plain(a), plain(b)]));
    let corners = vec![0.0, -0.0, 1.0, 1.0, -1.0, 2.0, 0.5, -0.5];
    let among = vec![1.0, 0.0, 1.0, 0.0, -2.0, -2.0, 0.5, 0.0];
    let of = |values| tensor(&[8], Fill::Values(values));
    let more = [
        sample([plain(&[3, 4]), SampleArg::Float(0.75)]),
        sample([SampleArg::Int(1), plain(&[4])]),
        Sample { smooth: false, ..sample([of(corners), of(among)]) },
    ];
    pairs.chain(more).collect()
}

/// `nextafter`
pub static DEF: OpDef = OpDef::binary(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    rules::binary_real,
    // The derivative of a neighbour with respect to `self` is 1.
    Derivative::of_grad(|b, g| {
        g.set(0, || Ok(b.grad(0)?.clone()))?;
        g.set(1, || b.grad(0)?.zeros_like())
    }),
)
.dtypes(Dtypes::FLOAT)
.samples(samples)
.errors(|| [broadcast_errors(&[]), refuses_integer_pairs()].concat())
.decomposed(|args| one(compose(args)))
.with(OpFlags::EXACT)
.with(OpFlags::SIGNED_ZEROS);

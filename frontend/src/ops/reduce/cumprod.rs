//! `cumprod`

use super::scan::running;
use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{cast, widened};
use crate::ops::def::{Derivative, Forms, OpDef, OpFlags};
use crate::ops::sample::{Fill, SampleArg, error, plain, sample, tensor};
use crate::tensor::Int;
use keyway_dispatcher::op::{Arg, Rule};

impl Tensor {
    /// The cumulative product along `dim`. Integers and bool give i64.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// assert_eq!(x.cumprod(0)?.to_vec::<i64>()?, [1, 2, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range.
    pub fn cumprod(&self, dim: impl Int) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Int(dim.to_i64())])
    }
}

/// The magnitudes for which `grad * product / x` is accurate in f32.
const NEAR_ONE: (f64, f64) = (1.0 / (1u64 << 40) as f64, (1u64 << 40) as f64);

/// Whether the magnitudes of all elements of `x` and of its cumulative products are in [`NEAR_ONE`]. Waits for the device.
fn are_near_one(x: &Tensor, products: &Tensor) -> Result<bool> {
    let near = |t: &Tensor| {
        let size = t.abs()?;
        size.ge(NEAR_ONE.0)?.logical_and(&size.le(NEAR_ONE.1)?)
    };
    near(x)?.logical_and(&near(products)?)?.all(..)?.item::<bool>()
}

/// The gradient without a division, for zeros and products that overflow or underflow: element `i` is the product of all
/// elements before it times `s[i] = grad[i] + x[i + 1] * s[i + 1]`, a linear recurrence, computed by a parallel scan (G. E.
/// Blelloch, "Prefix sums and their applications", 1990).
fn by_recurrence(x: &Tensor, grad: &Tensor, dim: i64) -> Result<Tensor> {
    let n = x.dim(dim)?;
    let one = x.narrow(dim, 0, 1)?.ones_like()?;
    let before = Tensor::cat(&[&one, &x.narrow(dim, 0, n - 1)?], dim)?.cumprod(dim)?;
    let factors = Tensor::cat(&[&x.narrow(dim, 1, n - 1)?, &one], dim)?.flip([dim])?;
    let sums = running(vec![factors, grad.flip([dim])?], dim, |before, after| {
        Ok(vec![before[0].mul(&after[0])?, after[0].mul(&before[1])?.add(&after[1])?])
    })?;
    before.mul(&sums[1].flip([dim])?)
}

/// `cumprod`
pub static DEF: OpDef = OpDef::new(
    "cumprod(Tensor self, int dim) -> Tensor",
    Rule::Structured(super::cumsum::rule),
    Derivative::Formula {
        saves: 0b1,
        saves_outputs: 0,
        formula: |b, g| {
            g.set(0, || {
                let (x, grad, dim) = (b.input(0)?, b.grad(0)?, b.int(1)?);
                if x.rank() == 0 {
                    return Ok(grad.clone());
                }
                let (wide, gradient) = (widened(&x)?, widened(grad)?);
                let products = wide.cumprod(dim)?;
                let made = if are_near_one(&wide.detach(), &products.detach())? {
                    gradient.mul(&products)?.cumsum_reversed(dim)?.div(&wide)?
                } else {
                    by_recurrence(&wide, &gradient, dim)?
                };
                cast(made, x.dtype())
            })
        },
    },
    || {
        let call = |sizes: &[usize], dim: i64| sample([plain(sizes), SampleArg::Int(dim)]);
        let zeros = tensor(&[2, 4], Fill::Values(vec![1.5, 0.0, -0.5, 2.0, 0.0, 1.0, 0.0, 3.0]));
        let mut all = vec![
            call(&[], 0),
            call(&[5], 0),
            call(&[3, 4], 0),
            call(&[3, 4], -1),
            call(&[2, 3, 4], 1),
            call(&[2, 3, 2, 2], -2),
            call(&[2, 1, 2, 3, 2], 3),
            call(&[2, 0, 4], 1),
        ];
        all.push(sample([zeros, SampleArg::Int(1)]));
        all
    },
)
.forms(Forms::Out)
.errors(|| vec![error([plain(&[3]), SampleArg::Int(1)], "out of range")])
.with(OpFlags::MAY_OVERFLOW)
.with(OpFlags::AUTOCAST_F32)
.with(OpFlags::HOLOMORPHIC);

//! `fft_c2c`
//!
//! Arguments:
//! - `dim`: the dimensions, sequentially from the last one; negative values count from the last.
//! - `norm`: `backward` divides the inverse by the number of elements, `forward` the transform, `ortho` both by its square root.
//! - `forward`: whether the exponent is negative, that of the transform rather than its inverse.

use super::half_spectrum::{LIBRARY, checked, opposite};
use crate::Tensor;
use crate::error::Result;
use crate::ops::complex::require_complex;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The discrete Fourier transform of a c64 or c128 tensor along the dimensions `dims`, or with `forward` false its inverse.
    /// `norm` is `"backward"` (the inverse is divided by the number of elements `n` of a transform), `"ortho"` (both are divided
    /// by its square root) or `"forward"`. The functions of [`keyway::fft`](crate::fft) call this op.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let x = Tensor::new([Complex::new(1.0f32, 0.0), Complex::new(0.0, 2.0)])?;
    /// let y = x.fft_c2c(&[0], "backward", true)?;
    /// assert_eq!(y.to_vec::<Complex<f32>>()?, [Complex::new(1.0, 2.0), Complex::new(1.0, -2.0)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another dtype; a dimension out of range, of no elements, or named twice; another norm.
    pub fn fft_c2c(&self, dims: &[i64], norm: &str, forward: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Str(norm), Arg::Bool(forward)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let dtype = require_complex(args)?;
    checked(args)?;
    Ok(Plan::one(dtype, Dims::from_slice(args.tensor(0)?.sizes()), dtype, Strides::Contiguous))
}

/// `fft_c2c`
pub static DEF: OpDef = OpDef::new(
    "fft_c2c(Tensor self, int[] dim, str norm, bool forward) -> Tensor",
    Rule::Structured(rule),
    // The adjoint: the transform in the other direction with the same factor.
    Derivative::of_grad(|b, g| g.set(0, || b.grad(0)?.fft_c2c(b.ints(1)?, opposite(b.str(2)?), !b.bool(3)?))),
    Vec::new,
)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);

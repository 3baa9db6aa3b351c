//! `fft_c2r`
//!
//! Arguments:
//! - `dim`: the dimensions, sequentially from the last one; negative values count from the last.
//! - `norm`: `backward` divides the inverse by the number of elements, `forward` the transform, `ortho` both by its square root.
//! - `last_dim_size`: elements of the result along the last dimension, even or odd.

use super::half_spectrum::{LIBRARY, checked_last, opposite, weighted};
use crate::Tensor;
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::complex::require_complex;
use crate::ops::composite::whole;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::rules::{wrong_shape, wrong_value};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The inverse of [`Tensor::fft_r2c`] with `onesided`: real numbers from half a spectrum of c64 or c128 along the dimensions
    /// `dims`, the last of which has `last_dim_size / 2 + 1` elements. `norm` is that of [`Tensor::fft_c2c`], for an inverse
    /// transform. The imaginary parts at frequency 0 and, for an even size, at half the sampling rate, which a real signal does not
    /// have, are ignored. The functions of [`keyway::fft`](crate::fft) call this op.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let x = Tensor::new([Complex::new(10.0f32, 0.0), Complex::new(-2.0, 2.0), Complex::new(-2.0, 0.0)])?;
    /// assert_eq!(x.fft_c2r(&[0], "backward", 4)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another dtype; a dimension out of range, of no elements, or named twice; no dimension; another norm; a last dimension of
    /// another size.
    pub fn fft_c2r(&self, dims: &[i64], norm: &str, last_dim_size: usize) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Str(norm), whole(last_dim_size)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let dtype = require_complex(args)?;
    let last = checked_last(args)?;
    let len = match usize::try_from(args.int(3)?) {
        Ok(len) if len > 0 => len,
        _ => return Err(wrong_value(args, 3, "1 or more".to_string())),
    };
    let half = len / 2 + 1;
    if t.sizes()[last] != half {
        let expected = format!("{half} elements along dimension {last}, as half a spectrum of {len} has");
        return Err(wrong_shape(args, 0, expected, t.sizes()));
    }
    let mut sizes = Dims::from_slice(t.sizes());
    sizes[last] = len;
    Ok(Plan::one(dtype, sizes, dtype.to_real(), Strides::Contiguous))
}

/// The adjoint: elements with a conjugate in the other half count twice.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (grad, dims) = (b.grad(0)?, b.ints(1)?);
    let len = usize::try_from(b.int(3)?).unwrap_or(1);
    weighted(&grad.fft_r2c(dims, opposite(b.str(2)?), true)?, dims, len, 2.0)
}

/// `fft_c2r`
pub static DEF: OpDef = OpDef::new(
    "fft_c2r(Tensor self, int[] dim, str norm, int last_dim_size) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || derivative(b))),
    Vec::new,
)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);

//! `fft_r2c`
//!
//! Arguments:
//! - `dim`: the dimensions, sequentially from the last one; negative values count from the last.
//! - `norm`: `backward` divides the inverse by the number of elements, `forward` the transform, `ortho` both by its square root.
//! - `onesided`: whether the last dimension has only the frequencies from 0 to half the sampling rate.

use super::half_spectrum::{LIBRARY, checked_last, opposite, weighted};
use crate::autograd::Backward;
use crate::error::Result;
use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, Result as RuleResult};
use keyway_dispatcher::op::{Arg, Args, Plan, Rule, Strides};

impl Tensor {
    /// The discrete Fourier transform of an f32 or f64 tensor along the dimensions `dims`. With `onesided`, the last of them has
    /// the `n / 2 + 1` elements from frequency 0 to half the sampling rate; the rest of the spectrum is their conjugate. `norm` is
    /// that of [`Tensor::fft_c2c`]. The functions of [`keyway::fft`](crate::fft) call this op.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let y = Tensor::new([1.0f32, 2.0, 3.0, 4.0])?.fft_r2c(&[0], "backward", true)?;
    /// let wanted = [Complex::new(10.0, 0.0), Complex::new(-2.0, 2.0), Complex::new(-2.0, 0.0)];
    /// assert_eq!(y.to_vec::<Complex<f32>>()?, wanted);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Another dtype; a dimension out of range, of no elements, or named twice; no dimension; another norm.
    pub fn fft_r2c(&self, dims: &[i64], norm: &str, onesided: bool) -> Result<Tensor> {
        DEF.run(&[self.into(), Arg::Ints(dims), Arg::Str(norm), Arg::Bool(onesided)])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Plan> {
    let t = args.tensor(0)?;
    let dtype = t.dtype();
    let complex = match dtype {
        DType::F32 | DType::F64 => dtype.to_complex().unwrap_or(dtype),
        got => {
            let expected = "f32 or f64; use `to_dtype`".to_string();
            return Err(Error::DType { op: args.name(), argument: "self", expected, got });
        }
    };
    let last = checked_last(args)?;
    let mut sizes = Dims::from_slice(t.sizes());
    if args.bool(3)? {
        sizes[last] = sizes[last] / 2 + 1;
    }
    Ok(Plan::one(dtype, sizes, complex, Strides::Contiguous))
}

/// The real part of the adjoint. That of half a spectrum is the transform to real numbers, which counts the elements with a
/// conjugate twice.
fn derivative(b: &Backward<'_>) -> Result<Tensor> {
    let (grad, dims, norm) = (b.grad(0)?, b.ints(1)?, opposite(b.str(2)?));
    if !b.bool(3)? {
        return grad.fft_c2c(dims, norm, false)?.real();
    }
    let sizes = b.sizes(0);
    let last = dims.last().map_or(0, |&dim| if dim < 0 { dim + sizes.len() as i64 } else { dim });
    let len = sizes.get(last as usize).copied().unwrap_or(1);
    weighted(grad, dims, len, 0.5)?.fft_c2r(dims, norm, len)
}

/// `fft_r2c`
pub static DEF: OpDef = OpDef::new(
    "fft_r2c(Tensor self, int[] dim, str norm, bool onesided) -> Tensor",
    Rule::Structured(rule),
    Derivative::of_grad(|b, g| g.set(0, || derivative(b))),
    Vec::new,
)
.dtypes(Dtypes::COMPLEX)
.with(OpFlags::COMPLEX)
.in_library(LIBRARY);

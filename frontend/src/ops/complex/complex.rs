//! `complex`
//!
//! Arguments:
//! - `real`: real parts, in f32 or f64.
//! - `imag`: imaginary parts, of the dtype of `real`; they broadcast together.

use crate::Tensor;
use crate::error::Result;
use crate::ops::composite::{one, tensor};
use crate::ops::def::{Derivative, Dtypes, Forms, OpDef, OpFlags};
use crate::ops::rules::{FIRST_TWO, require};
use keyway_dispatcher::error::Result as RuleResult;
use keyway_dispatcher::op::{Args, Typing};

impl Tensor {
    /// Complex numbers with these real and imaginary parts, broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::complex(&Tensor::new([1.0f32])?, &Tensor::new([2.0f32])?)?;
    /// assert_eq!(z.to_vec::<Complex<f32>>()?, [Complex::new(1.0, 2.0)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dtypes other than f32 and f64, or different ones; shapes that do not broadcast.
    pub fn complex(real: &Tensor, imag: &Tensor) -> Result<Tensor> {
        DEF.run(&[real.into(), imag.into()])
    }
}

fn rule(args: &Args<'_>) -> RuleResult<Typing> {
    let (real, imag) = (args.tensor(0)?.dtype(), args.tensor(1)?.dtype());
    let complex = real.to_complex().filter(|_| !real.is_complex());
    require(args, 0, real, complex.is_some(), "f32 or f64")?;
    require(args, 1, imag, imag == real, "the dtype of the real part")?;
    Ok(Typing { compute: real, result: complex.unwrap_or(real) })
}

/// `complex`
pub static DEF: OpDef = OpDef::binary(
    "complex(Tensor real, Tensor imag) -> Tensor",
    rule,
    Derivative::of_grad(|b, g| {
        g.set(0, || b.grad(0)?.real())?;
        g.set(1, || b.grad(0)?.imag())
    }),
)
.forms(Forms::New)
.samples(Vec::new)
.errors(Vec::new)
.dtypes(Dtypes::COMPLEX)
.decomposed(|args| {
    one((|| {
        let sizes = args.broadcast(FIRST_TWO)?;
        let parts = [tensor(args, 0)?.expand(&sizes[..])?, tensor(args, 1)?.expand(&sizes[..])?];
        Tensor::stack(&parts, -1)?.view_as_complex()
    })())
})
.with(OpFlags::COMPLEX);

//! `polar`

use super::complex::DEF;
use crate::error::{Result, called};
use crate::{DType, Tensor};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// Complex numbers with these moduli and angles in radians: `abs cos(angle) + i abs sin(angle)`, broadcast.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Complex, Tensor};
    /// let z = Tensor::polar(&Tensor::new([2.0f64])?, &Tensor::new([0.0f64])?)?;
    /// assert_eq!(z.to_vec::<Complex<f64>>()?, [Complex::new(2.0, 0.0)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dtypes other than f32 and f64, or different ones; shapes that do not broadcast.
    pub fn polar(abs: &Tensor, angle: &Tensor) -> Result<Tensor> {
        called("polar", &["abs", "angle"], || {
            let wrong = |argument, expected: &str, got: &Tensor| {
                let expected = expected.to_string();
                Error::DType { op: "polar", argument, expected, got: got.dtype() }
            };
            if !matches!(abs.dtype(), DType::F32 | DType::F64) {
                return Err(wrong("abs", "f32 or f64", abs).into());
            }
            if angle.dtype() != abs.dtype() {
                return Err(wrong("angle", "the dtype of `abs`", angle).into());
            }
            DEF.run(&[(&abs.mul(&angle.cos()?)?).into(), (&abs.mul(&angle.sin()?)?).into()])
        })
    }
}

//! `polar`

use super::complex::DEF;
use crate::Tensor;
use crate::error::{Result, called};

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
            DEF.run(&[(&abs.mul(&angle.cos()?)?).into(), (&abs.mul(&angle.sin()?)?).into()])
        })
    }
}

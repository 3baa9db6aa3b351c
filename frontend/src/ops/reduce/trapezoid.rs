//! The trapezoidal rule.

use crate::Tensor;
use crate::error::{Result, called};
use crate::ops::composite::{narrowed_without_autocast, real};
use crate::ops::rules::float_of;
use crate::tensor::Int;
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// The integral along `dim` by the trapezoidal rule, of values at unit distances: `sum of (y[i] + y[i + 1]) / 2`. The
    /// integral of fewer than two values is 0.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([1.0f32, 5.0, 10.0])?.trapezoid(0)?.item::<f32>()?, 10.5);
    /// # Ok(()) }
    /// ```
    ///
    /// Integers and bool are cast to the default float dtype; f16 and bf16 are computed in f32.
    ///
    /// # Errors
    /// A dimension out of range; no dimension.
    #[doc(alias = "trapz")]
    pub fn trapezoid(&self, dim: impl Int) -> Result<Tensor> {
        self.trapezoid_with(1, dim)
    }

    /// [`Tensor::trapezoid`] with a `spacing`: the distance between neighbours as a number, or the coordinates of the values as a
    /// tensor, of one dimension or of the rank of `self`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let y = Tensor::new([[1.0f32, 5.0, 10.0]])?;
    /// assert_eq!(y.trapezoid_with(0.5, 1)?.to_vec::<f32>()?, [5.25]);
    /// let x = Tensor::new([0.0f32, 1.0, 3.0])?;
    /// assert_eq!(y.trapezoid_with(&x, 1)?.to_vec::<f32>()?, [18.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a `spacing` of another rank or size, or that is neither a number nor a tensor.
    pub fn trapezoid_with<'a>(&self, spacing: impl Into<Arg<'a>>, dim: impl Int) -> Result<Tensor> {
        const NAME: &str = "trapezoid";
        called(NAME, &["self", "spacing", "dim"], || {
            let wrong_shape = |argument, expected: String, t: &Tensor| -> crate::Error {
                Error::Shape { op: NAME, argument, expected, got: t.shape().into() }.into()
            };
            if self.rank() == 0 {
                return Err(wrong_shape("self", "of 1 dimension at least".to_string(), self));
            }
            let dim = wrap_dim(NAME, dim.to_i64(), self.rank())?;
            let y = real(self)?;
            let size = y.dim(dim as i64)?;
            let pairs = size.saturating_sub(1);
            let both = y.narrow(dim as i64, 0, pairs)?.add(&y.narrow(dim as i64, size - pairs, pairs)?)?;
            let (made, dtype) = match spacing.into() {
                Arg::Tensor(x) => {
                    let given = Tensor::from_ref(x.clone());
                    let x = real(&given)?;
                    let (x, along) = if x.rank() == 1 { (x, 0) } else { (x, dim) };
                    let fits = given.rank() == 1 || given.rank() == self.rank();
                    if !fits || x.dim(along as i64)? != size {
                        let expected = format!(
                            "[{size}], or of {} dimensions with size {size} in dimension {dim}",
                            self.rank()
                        );
                        return Err(wrong_shape("spacing", expected, &given));
                    }
                    let mut apart = x.narrow(along as i64, size - pairs, pairs)?.sub(&x.narrow(
                        along as i64,
                        0,
                        pairs,
                    )?)?;
                    if given.rank() == 1 {
                        let mut sizes = vec![1; self.rank() - dim];
                        sizes[0] = pairs;
                        apart = apart.reshape(&sizes)?;
                    }
                    let dtype = float_of(self.dtype()).promote(float_of(given.dtype()));
                    (both.mul(&apart)?.sum(dim as i64)?, dtype)
                }
                number @ (Arg::Int(_) | Arg::Float(_)) => {
                    (both.sum(dim as i64)?.mul(number)?, Some(float_of(self.dtype())))
                }
                other => {
                    let (expected, got) = ("a number or a tensor".to_string(), other.describe());
                    return Err(Error::Value { op: NAME, argument: "spacing", expected, got }.into());
                }
            };
            let made = made.mul(0.5)?;
            let own = made.dtype();
            narrowed_without_autocast(made, dtype.unwrap_or(own))
        })
    }
}

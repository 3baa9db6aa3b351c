//! The trapezoidal rule.

use crate::error::{Result, called};
use crate::ops::composite::{narrowed_without_autocast, real};
use crate::ops::rules::float_of;
use crate::tensor::Int;
use crate::{DType, Tensor};
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
            let areas = Areas::of(NAME, self, spacing.into(), dim.to_i64())?;
            areas.narrowed(areas.twice.sum(areas.dim)?)
        })
    }

    /// The integrals along `dim` by the trapezoidal rule from the first value to each of the others, at unit distances: the
    /// cumulative sum of `(y[i] + y[i + 1]) / 2`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let y = Tensor::new([1.0f32, 5.0, 10.0])?;
    /// assert_eq!(y.cumulative_trapezoid(0)?.to_vec::<f32>()?, [3.0, 10.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::trapezoid`].
    pub fn cumulative_trapezoid(&self, dim: impl Int) -> Result<Tensor> {
        self.cumulative_trapezoid_with(1, dim)
    }

    /// [`Tensor::cumulative_trapezoid`] with the `spacing` of [`Tensor::trapezoid_with`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (y, x) = (Tensor::new([1.0f32, 5.0, 10.0])?, Tensor::new([0.0f32, 1.0, 3.0])?);
    /// assert_eq!(y.cumulative_trapezoid_with(&x, 0)?.to_vec::<f32>()?, [3.0, 18.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::trapezoid_with`].
    pub fn cumulative_trapezoid_with<'a>(
        &self,
        spacing: impl Into<Arg<'a>>,
        dim: impl Int,
    ) -> Result<Tensor> {
        const NAME: &str = "cumulative_trapezoid";
        called(NAME, &["self", "spacing", "dim"], || {
            let areas = Areas::of(NAME, self, spacing.into(), dim.to_i64())?;
            areas.narrowed(areas.twice.cumsum(areas.dim)?)
        })
    }
}

/// Twice the areas of the trapezoids along a dimension, but for a common width.
struct Areas<'a> {
    twice: Tensor,
    dim: usize,
    width: Option<Arg<'a>>,
    /// The dtype of a result.
    dtype: Option<DType>,
}

impl<'a> Areas<'a> {
    fn of(op: &'static str, t: &Tensor, spacing: Arg<'a>, dim: i64) -> Result<Areas<'a>> {
        let wrong_shape = |argument, expected: String, t: &Tensor| -> crate::Error {
            Error::Shape { op, argument, expected, got: t.shape().into() }.into()
        };
        if t.rank() == 0 {
            return Err(wrong_shape("self", "of 1 dimension at least".to_string(), t));
        }
        let dim = wrap_dim(op, dim, t.rank())?;
        let y = real(t)?;
        let size = y.dim(dim)?;
        let pairs = size.saturating_sub(1);
        let both = y.narrow(dim, 0, pairs)?.add(&y.narrow(dim, size - pairs, pairs)?)?;
        match spacing {
            Arg::Tensor(x) => {
                let given = Tensor::from_ref(x.clone());
                let x = real(&given)?;
                let (x, along) = if x.rank() == 1 { (x, 0) } else { (x, dim) };
                let fits = given.rank() == 1 || given.rank() == t.rank();
                if !fits || x.dim(along)? != size {
                    let expected = format!(
                        "[{size}], or of {} dimensions with size {size} in dimension {dim}",
                        t.rank()
                    );
                    return Err(wrong_shape("spacing", expected, &given));
                }
                let mut apart = x.narrow(along, size - pairs, pairs)?.sub(&x.narrow(along, 0, pairs)?)?;
                if given.rank() == 1 {
                    let mut sizes = vec![1; t.rank() - dim];
                    sizes[0] = pairs;
                    apart = apart.reshape(&sizes)?;
                }
                let dtype = t.dtype().promote(given.dtype()).map(float_of);
                Ok(Areas { twice: both.mul(&apart)?, dim, width: None, dtype })
            }
            number @ (Arg::Int(_) | Arg::Float(_)) => {
                Ok(Areas { twice: both, dim, width: Some(number), dtype: Some(float_of(t.dtype())) })
            }
            other => {
                let (expected, got) = ("a number or a tensor".to_string(), other.describe());
                Err(Error::Value { op, argument: "spacing", expected, got }.into())
            }
        }
    }

    /// A sum of areas, from that of [`Areas::twice`].
    fn narrowed(&self, sum: Tensor) -> Result<Tensor> {
        let made = if let Some(width) = self.width { sum.mul(width)? } else { sum };
        let made = made.mul(0.5)?;
        let own = made.dtype();
        narrowed_without_autocast(made, self.dtype.unwrap_or(own))
    }
}

//! Aliases of views, and views that are short forms of others.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::{Int, IntoShape};
use keyway_dispatcher::dims::{Dims, wrap_dim};
use keyway_dispatcher::error::Error;
use smallvec::SmallVec;

fn integers(sizes: &[usize]) -> SmallVec<[i64; 8]> {
    sizes.iter().map(|&s| s as i64).collect()
}

impl Tensor {
    /// [`Tensor::transpose`] under NumPy's name.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3, 4))?.swapaxes(0, 2)?.shape(), [4, 3, 2]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn swapaxes(&self, axis0: impl Int, axis1: impl Int) -> Result<Tensor> {
        called("swapaxes", &["self", "axis0", "axis1"], || self.transpose(axis0, axis1))
    }

    /// [`Tensor::movedim`] under NumPy's name.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3, 4))?.moveaxis(0, 2)?.shape(), [3, 4, 2]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn moveaxis(&self, source: impl Int, destination: impl Int) -> Result<Tensor> {
        called("moveaxis", &["self", "source", "destination"], || self.movedim(source, destination))
    }

    /// [`Tensor::expand`] under NumPy's name.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1, 2])?.broadcast_to((2, 2))?;
    /// assert_eq!(x.to_vec2::<i32>()?, [[1, 2], [1, 2]]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Result<Tensor> {
        called("broadcast_to", &["self", "shape", "size"], || self.expand(shape))
    }

    /// [`Tensor::view`] with the sizes of `other`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, like) = (Tensor::zeros((2, 3))?, Tensor::zeros(6)?);
    /// assert_eq!(x.view_as(&like)?.shape(), [6]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn view_as(&self, other: &Tensor) -> Result<Tensor> {
        called("view_as", &["self"], || self.view(other.shape()))
    }

    /// [`Tensor::reshape`] with the sizes of `other`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, like) = (Tensor::zeros((2, 3))?.t()?, Tensor::zeros(6)?);
    /// assert_eq!(x.reshape_as(&like)?.shape(), [6]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn reshape_as(&self, other: &Tensor) -> Result<Tensor> {
        called("reshape_as", &["self"], || self.reshape(other.shape()))
    }

    /// [`Tensor::expand`] with the sizes of `other`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (x, like) = (Tensor::new([1, 2])?, Tensor::zeros((2, 2))?);
    /// assert_eq!(x.expand_as(&like)?.to_vec2::<i32>()?, [[1, 2], [1, 2]]);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn expand_as(&self, other: &Tensor) -> Result<Tensor> {
        called("expand_as", &["self"], || self.expand(other.shape()))
    }

    /// Flattens the dimensions from `start` to `end`, inclusive; a view where the strides allow it.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![0; 24], (2, 3, 4))?;
    /// assert_eq!(a.flatten(1, -1)?.shape(), [2, 12]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Dimensions out of range, or in the wrong order.
    pub fn flatten(&self, start: impl Int, end: impl Int) -> Result<Tensor> {
        called("flatten", &["self", "start", "end"], || {
            let start = start.to_i64();
            let end = end.to_i64();
            let (first, last) =
                (wrap_dim("flatten", start, self.rank())?, wrap_dim("flatten", end, self.rank())?);
            if first > last {
                return Err(Error::Value {
                    op: "flatten",
                    argument: "start, end",
                    expected: "a start that is not behind the end".to_string(),
                    got: format!("{start}, {end}"),
                }
                .into());
            }
            if self.rank() == 0 {
                return self.reshape([1]);
            }
            let mut sizes = Dims::from_slice(&self.shape()[..first]);
            // The product of flattened sizes may overflow for an empty tensor.
            let joined = &self.shape()[first..=last];
            let product = joined.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
            let beyond = || Error::SizeOverflow { op: "flatten", sizes: joined.into() };
            sizes.push(product.ok_or_else(beyond)?);
            sizes.extend_from_slice(&self.shape()[last + 1..]);
            self.reshape_as_sizes(&sizes)
        })
    }

    /// Flattens all dimensions.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3, 4))?.flatten_all()?.shape(), [24]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::reshape`].
    #[doc(alias = "ravel")]
    pub fn flatten_all(&self) -> Result<Tensor> {
        self.flatten(0, -1)
    }

    /// Flattens the dimensions from `start` on.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3, 4))?.flatten_from(1)?.shape(), [2, 12]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::flatten`].
    pub fn flatten_from(&self, start: impl Int) -> Result<Tensor> {
        called("flatten_from", &["self", "start"], || self.flatten(start, -1))
    }

    /// Flattens the dimensions up to and including `end`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::zeros((2, 3, 4))?.flatten_to(1)?.shape(), [6, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::flatten`].
    pub fn flatten_to(&self, end: impl Int) -> Result<Tensor> {
        called("flatten_to", &["self", "end"], || self.flatten(0, end))
    }

    /// A view with dimension `dim` split into `sizes`, one of which may be -1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::from_vec(vec![0; 24], (2, 12))?;
    /// assert_eq!(a.unflatten(1, (3, -1))?.shape(), [2, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A dimension out of range, sizes whose product is not its size.
    pub fn unflatten(&self, dim: impl Int, sizes: impl IntoShape) -> Result<Tensor> {
        called("unflatten", &["self", "dim", "sizes"], || {
            let dim = dim.to_i64();
            let sizes = sizes.into_ints();
            let at = wrap_dim("unflatten", dim, self.rank())?;
            let size = self.shape().get(at).copied().unwrap_or(1);
            let known = sizes.iter().filter(|&&s| s != -1).try_fold(1i64, |p, &s| p.checked_mul(s));
            let fits = match sizes.iter().filter(|&&s| s == -1).count() {
                0 => known == Some(size as i64),
                1 => known.is_some_and(|p| p > 0 && size as i64 % p == 0),
                _ => false,
            };
            if !fits || sizes.is_empty() {
                return Err(Error::Value {
                    op: "unflatten",
                    argument: "sizes",
                    expected: format!(
                        "sizes whose product is {size}, the size of dimension {at}, with at most one -1"
                    ),
                    got: format!("{sizes:?}"),
                }
                .into());
            }
            let rest = known.filter(|&p| p > 0).map_or(0, |p| size as i64 / p);
            let mut all = integers(&self.shape()[..at.min(self.rank())]);
            all.extend(sizes.iter().map(|&s| if s == -1 { rest } else { s }));
            all.extend(integers(self.shape().get(at + 1..).unwrap_or(&[])));
            self.view(&all)
        })
    }
}

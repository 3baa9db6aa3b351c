//! Medians and order statistics.

use crate::error::{Result, called};
use crate::tensor::Int;
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;

fn empty_dimension(op: &'static str, tensor: &Tensor) -> crate::Error {
    let expected = "not empty in the dimension that is reduced".to_string();
    Error::Shape { op, argument: "self", expected, got: tensor.shape().into() }.into()
}

impl Tensor {
    /// The median along `dim`, the lower one of two, and the index of an element that equals it, which gets its gradient; NaN
    /// propagates. Sorts all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[3, 1, 2], [9, 8, 7]])?;
    /// let (medians, indices) = x.median(1)?;
    /// assert_eq!((medians.to_vec::<i32>()?, indices.to_vec::<i64>()?), (vec![2, 8], vec![2, 1]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Bool; a dimension out of range or of size 0.
    pub fn median(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        self.medians(dim.to_i64(), false)
    }

    /// [`Tensor::median`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, indices) = Tensor::new([[1, 5, 3]])?.median_keepdim(1)?;
    /// assert_eq!((values.to_vec2::<i32>()?, indices.to_vec2::<i64>()?), (vec![vec![3]], vec![vec![2]]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn median_keepdim(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        self.medians(dim.to_i64(), true)
    }

    /// The median of all elements, the lower one of two; NaN propagates, and the median of an empty tensor is NaN.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3.0f32, 1.0, 2.0, 9.0])?.median_all()?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Bool; integers without elements.
    pub fn median_all(&self) -> Result<Tensor> {
        called("median", &["self"], || {
            if self.elem_count() == 0 && self.dtype().is_float() {
                return self.mean_all();
            }
            Ok(self.reshape(-1)?.median(0)?.0)
        })
    }

    /// [`Tensor::median`] of the elements that are not NaN; NaN if all are.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (medians, indices) = Tensor::new([[3.0f32, f32::NAN, 2.0]])?.nanmedian(1)?;
    /// assert_eq!((medians.to_vec::<f32>()?, indices.to_vec::<i64>()?), (vec![2.0], vec![2]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::median`].
    pub fn nanmedian(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        self.nanmedians(dim.to_i64(), false)
    }

    /// [`Tensor::nanmedian`] with the reduced dimension retained with size 1.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (values, _) = Tensor::new([[1.0f32, f32::NAN]])?.nanmedian_keepdim(1)?;
    /// assert_eq!(values.to_vec2::<f32>()?, [[1.0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn nanmedian_keepdim(&self, dim: impl Int) -> Result<(Tensor, Tensor)> {
        self.nanmedians(dim.to_i64(), true)
    }

    /// The median of all elements that are not NaN, the lower one of two; NaN if there is none.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([f32::NAN, 1.0, 2.0, 9.0])?.nanmedian_all()?.item::<f32>()?, 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::median_all`].
    pub fn nanmedian_all(&self) -> Result<Tensor> {
        called("nanmedian", &["self"], || {
            if self.elem_count() == 0 { self.median_all() } else { Ok(self.reshape(-1)?.nanmedian(0)?.0) }
        })
    }

    /// The `k`-th smallest element along `dim`, counted from 1, and the index of an element that equals it, which gets its
    /// gradient. NaN counts as the largest. Sorts all elements.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let (value, place) = Tensor::new([3, 1, 2])?.kthvalue(3, 0)?;
    /// assert_eq!((value.item::<i32>()?, place.item::<i64>()?), (3, 0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Bool; a dimension out of range; a `k` that is not in 1..=size.
    pub fn kthvalue(&self, k: usize, dim: impl Int) -> Result<(Tensor, Tensor)> {
        called("kthvalue", &["self", "k", "dim"], || {
            let dim = dim.to_i64();
            let size = self.shape().get(wrap_dim("kthvalue", dim, self.rank())?).copied().unwrap_or(1);
            if size == 0 {
                return Err(empty_dimension("kthvalue", self));
            }
            if k == 0 || k > size {
                let (op, argument, got) = ("kthvalue", "k", k.to_string());
                return Err(Error::Value { op, argument, expected: format!("within 1..={size}"), got }.into());
            }
            let (sorted, places) = self.sort(dim)?;
            if self.rank() == 0 {
                return Ok((sorted, places));
            }
            Ok((sorted.select(dim, k - 1)?, places.select(dim, k - 1)?))
        })
    }

    fn nanmedians(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        called("nanmedian", &["self", "dim"], || {
            // Without NaN both are the same; this refuses what is refused there.
            if !self.dtype().is_float() || self.rank() == 0 || self.dim(dim)? == 0 {
                return self.medians(dim, keepdim);
            }
            let (sorted, places) = self.sort_with(dim, false, true)?;
            // NaN sorts after all numbers.
            let last = sorted.isnan()?.logical_not()?.sum_keepdim(dim)?.sub(1)?;
            let at = last.floor_divide(2)?.maximum(0)?;
            let (value, index) = (sorted.gather(dim, &at)?, places.gather(dim, &at)?);
            if keepdim { Ok((value, index)) } else { Ok((value.squeeze(dim)?, index.squeeze(dim)?)) }
        })
    }

    fn medians(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        called("median", &["self", "dim"], || {
            if self.dtype() == DType::BOOL {
                let expected = "a number dtype".to_string();
                return Err(
                    Error::DType { op: "median", argument: "self", expected, got: self.dtype() }.into()
                );
            }
            let (sorted, places) = self.sort_with(dim, false, true)?;
            if self.rank() == 0 {
                return Ok((sorted, places));
            }
            let n = self.dim(dim)?;
            let last = n.checked_sub(1).ok_or_else(|| empty_dimension("median", self))?;
            let at = |x: &Tensor, i: usize| x.narrow(dim, i, 1);
            // NaN sorts after all numbers, so the last element is NaN if any is.
            let nan = if self.dtype().is_float() { Some(at(&sorted, last)?.isnan()?) } else { None };
            let choose = |x: &Tensor| -> Result<Tensor> {
                let chosen = match &nan {
                    Some(nan) => nan.where_cond(&at(x, last)?, &at(x, last / 2)?)?,
                    None => at(x, last / 2)?.copy()?,
                };
                if keepdim { Ok(chosen) } else { chosen.squeeze(dim) }
            };
            Ok((choose(&sorted)?, choose(&places)?))
        })
    }
}

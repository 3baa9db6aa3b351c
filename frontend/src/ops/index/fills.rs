//! Writing of slices and of elements of the flattened tensor, implemented with `index_put`.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::Int;
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::op::Arg;

impl Tensor {
    /// A copy of this tensor with the slices at `index` along `dim` filled with `value`: a number, or a tensor without
    /// dimensions. A negative index counts from the end.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1, 2, 3], [4, 5, 6]])?;
    /// let at = Tensor::new([0i64, -1])?;
    /// assert_eq!(a.index_fill(1, &at, 9)?.to_vec::<i32>()?, [9, 2, 9, 9, 5, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Indices that are no vector of integers, or out of range; a dimension out of range; a `value` with dimensions.
    pub fn index_fill<'a>(&self, dim: impl Int, index: &Tensor, value: impl Into<Arg<'a>>) -> Result<Tensor> {
        filled("index_fill", self, dim.to_i64(), index, value.into(), |t, indices, value| {
            t.index_put(indices, value)
        })
    }

    /// [`Tensor::index_fill`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([1, 2, 3])?;
    /// a.index_fill_(0, &Tensor::new([1i64])?, 9)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 9, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a leaf that requires a gradient.
    pub fn index_fill_<'a>(
        &self,
        dim: impl Int,
        index: &Tensor,
        value: impl Into<Arg<'a>>,
    ) -> Result<Tensor> {
        filled("index_fill_", self, dim.to_i64(), index, value.into(), |t, indices, value| {
            t.index_put_(indices, value)
        })
    }

    /// A copy of this tensor with the elements at `index` of the flattened tensor replaced by those of `source`, or with them
    /// added if `accumulate`. A negative index counts from the end. Of equal indices the last one is written.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1, 2], [3, 4]])?;
    /// let at = Tensor::new([1i64, -1])?;
    /// assert_eq!(a.put(&at, &Tensor::new([8, 9])?, false)?.to_vec::<i32>()?, [1, 8, 3, 9]);
    /// assert_eq!(a.put(&at, &Tensor::new([8, 9])?, true)?.to_vec::<i32>()?, [1, 10, 3, 13]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Indices that are no integers, or out of range; a `source` of another number of elements or another dtype.
    pub fn put(&self, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        called("put", &["self", "index", "source", "accumulate"], || {
            let (index, source) = elements("put", index, source)?;
            let flat = self.reshape(-1)?;
            flat.index_put_with(&[Some(&index)], &source, accumulate)?.reshape(self.shape())
        })
    }

    /// [`Tensor::put`] in place.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[1, 2], [3, 4]])?;
    /// a.put_(&Tensor::new([2i64])?, &Tensor::new([9])?, false)?;
    /// assert_eq!(a.to_vec::<i32>()?, [1, 2, 9, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same; a leaf that requires a gradient.
    pub fn put_(&self, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        called("put_", &["self", "index", "source", "accumulate"], || {
            if !self.is_contiguous() {
                return self.copy_(&self.put(index, source, accumulate)?);
            }
            let (index, source) = elements("put_", index, source)?;
            self.view(-1)?.index_put_with_(&[Some(&index)], &source, accumulate)?;
            Ok(self.clone())
        })
    }
}

/// Refuses indices that are no integers: a bool tensor would be a mask.
fn integers(op: &'static str, index: &Tensor) -> Result<()> {
    if index.dtype().is_integer() {
        return Ok(());
    }
    let expected = "an integer dtype".to_string();
    Err(Error::DType { op, argument: "index", expected, got: index.dtype() }.into())
}

/// Indices and source as vectors.
fn elements(op: &'static str, index: &Tensor, source: &Tensor) -> Result<(Tensor, Tensor)> {
    integers(op, index)?;
    if index.elem_count() != source.elem_count() {
        let expected = format!("of {} elements, one for each index", index.elem_count());
        return Err(Error::Shape { op, argument: "source", expected, got: source.shape().into() }.into());
    }
    Ok((index.reshape(-1)?, source.reshape(-1)?))
}

/// Fills slices of `t` by `write`, which puts values at indices.
fn filled<'a>(
    op: &'static str,
    t: &Tensor,
    dim: i64,
    index: &Tensor,
    value: Arg<'a>,
    write: impl Fn(&Tensor, &[Option<&Tensor>], Arg<'a>) -> Result<Tensor>,
) -> Result<Tensor> {
    called(op, &["self", "dim", "index", "value"], || {
        integers(op, index)?;
        let dim = wrap_dim(op, dim, t.rank())?;
        if index.rank() > 1 {
            let expected = "of one dimension at most".to_string();
            return Err(Error::Shape { op, argument: "index", expected, got: index.shape().into() }.into());
        }
        if let Arg::Tensor(value) = value
            && value.ndim() > 0
        {
            let expected = "of no dimension".to_string();
            return Err(Error::Shape { op, argument: "value", expected, got: value.sizes().into() }.into());
        }
        let index = index.reshape(-1)?;
        let mut indices = vec![None; dim];
        indices.push(Some(&index));
        if t.rank() > 0 {
            return write(t, &indices, value);
        }
        write(&t.reshape(1)?, &indices, value)?.reshape(())
    })
}

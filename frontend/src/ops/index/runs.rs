//! Distinct runs of equal neighbours, and distinct slices.

use super::unique::Unique;
use crate::error::{Result, called};
use crate::tensor::{Int, Reduce};
use crate::{DType, Tensor};
use keyway_dispatcher::dims::wrap_dim;
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The first element of each run of equal neighbours, of the flattened tensor. A NaN equals no neighbour. The result has no
    /// gradient. Waits for the device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert_eq!(Tensor::new([3, 3, 1, 3])?.unique_consecutive()?.to_vec::<i32>()?, [3, 1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Errors of the device.
    pub fn unique_consecutive(&self) -> Result<Tensor> {
        Ok(self.unique_consecutive_all()?.values)
    }

    /// [`Tensor::unique_consecutive`] with the index of each element's run, and the lengths of the runs.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let found = Tensor::new([3, 3, 1])?.unique_consecutive_all()?;
    /// assert_eq!(found.inverse.to_vec::<i64>()?, [0, 0, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The same.
    pub fn unique_consecutive_all(&self) -> Result<Unique> {
        called("unique_consecutive", &["self"], || {
            let line = self.detach().reshape(-1)?;
            let made = runs(&line, |before, after| after.ne(before))?;
            Ok(Unique { inverse: made.inverse.reshape(self.shape())?, ..made })
        })
    }

    /// [`Tensor::unique_consecutive_all`] of the slices along `dim`: a run has equal slices.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let found = Tensor::new([[1, 2], [1, 2], [1, 3]])?.unique_consecutive_dim(0)?;
    /// assert_eq!(found.values.to_vec2::<i32>()?, [[1, 2], [1, 3]]);
    /// assert_eq!(found.inverse.to_vec::<i64>()?, [0, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No dimension; a dimension out of range; another dimension of size 0.
    pub fn unique_consecutive_dim(&self, dim: impl Int) -> Result<Unique> {
        const NAME: &str = "unique_consecutive_dim";
        called(NAME, &["self", "dim"], || {
            let (rows, dim) = rows(NAME, self, dim.to_i64())?;
            let made = runs(&rows, |before, after| after.ne(before)?.any(1))?;
            let firsts = made.values;
            Ok(Unique { values: self.detach().index_select(dim, &firsts)?, ..made })
        })
    }

    /// The distinct slices along `dim` in lexicographical order, with the index of each slice in the result, and counts. A slice
    /// with a NaN is distinct. The result has no gradient. Sorts the elements of one position of the slices after another, until
    /// all slices are distinct, and waits for the device each time.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let found = Tensor::new([[1, 3], [1, 2], [1, 3]])?.unique_dim(0)?;
    /// assert_eq!(found.values.to_vec2::<i32>()?, [[1, 2], [1, 3]]);
    /// assert_eq!(found.inverse.to_vec::<i64>()?, [1, 0, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`Tensor::unique_consecutive_dim`].
    pub fn unique_dim(&self, dim: impl Int) -> Result<Unique> {
        const NAME: &str = "unique_dim";
        called(NAME, &["self", "dim"], || {
            let (rows, dim) = rows(NAME, self, dim.to_i64())?;
            let count = rows.dim(0)?;
            // The rank of each row among those compared so far: equal for rows that are equal so far.
            let mut ranks = Tensor::zeros_with(count, (DType::I64, self.device()))?;
            let mut distinct = count.min(1);
            for column in rows.transpose(0, 1)?.contiguous()?.unbind(0)? {
                if distinct == count {
                    break;
                }
                let own = column.unique_all()?;
                // Both factors are at most the number of rows.
                let both = ranks.mul(own.values.elem_count() as i64)?.add(&own.inverse)?.unique_all()?;
                (ranks, distinct) = (both.inverse, both.values.elem_count());
            }
            let positions = Tensor::arange_with(0, count as i64, 1, (DType::I64, self.device()))?;
            let none = positions.new_full(distinct, count as i64)?;
            let firsts = none.scatter_reduce(0, &ranks, &positions, Reduce::Amin)?;
            let counts = ranks.new_zeros(distinct)?.scatter_add(0, &ranks, &ranks.ones_like()?)?;
            Ok(Unique { values: self.detach().index_select(dim, &firsts)?, inverse: ranks, counts })
        })
    }
}

/// The slices along `dim` as rows of a matrix without a graph, and the dimension counted from 0.
fn rows(op: &'static str, t: &Tensor, dim: i64) -> Result<(Tensor, usize)> {
    let refuse = |expected: &str| -> crate::Error {
        let (expected, got) = (expected.to_string(), t.shape().into());
        Error::Shape { op, argument: "self", expected, got }.into()
    };
    if t.rank() == 0 {
        return Err(refuse("of one dimension at least"));
    }
    let at = wrap_dim(op, dim, t.rank())?;
    let width: usize = t.shape().iter().enumerate().filter(|(i, _)| *i != at).map(|(_, size)| size).product();
    if width == 0 {
        return Err(refuse("not empty but for the dimension of the slices"));
    }
    Ok((t.detach().movedim(at, 0)?.reshape((t.shape()[at], width))?, at))
}

/// The runs of equal neighbours along dimension 0. The values are elements of a vector, and indices of rows of a matrix.
fn runs(lines: &Tensor, differ: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Unique> {
    let n = lines.dim(0)?;
    let whole = |count| Tensor::zeros_with(count, (DType::I64, lines.device()));
    if n == 0 {
        let values = if lines.rank() == 1 { lines.copy()? } else { whole(0)? };
        return Ok(Unique { values, inverse: whole(0)?, counts: whole(0)? });
    }
    let new = differ(&lines.narrow(0, 0, n - 1)?, &lines.narrow(0, 1, n - 1)?)?;
    let new = Tensor::cat(&[new.new_ones(1)?, new], 0)?;
    let starts = new.nonzero()?.select(1, 0)?;
    let ends = Tensor::cat(&[starts.slice(0, Some(1), None, 1)?, starts.new_full(1, n as i64)?], 0)?;
    let inverse = new.to_dtype(DType::I64)?.cumsum(0)?.sub(1)?;
    let counts = ends.sub(&starts)?;
    let values = if lines.rank() == 1 { lines.index_select(0, &starts)? } else { starts.contiguous()? };
    Ok(Unique { values, inverse, counts })
}

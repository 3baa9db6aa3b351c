//! The indices of the triangles of a matrix.

use crate::Tensor;
use crate::error::{Result, called};
use crate::tensor::{Int, IntoOptions, TensorOptions};
use keyway_dispatcher::error::Error;
use std::ops::Range;

impl Tensor {
    /// The row and column indices of the elements on and below the diagonal of a matrix of this size, in row-major order, as
    /// i64 `[2, count]`.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let at = Tensor::tril_indices(2, 2)?;
    /// assert_eq!(at.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory.
    pub fn tril_indices(rows: usize, columns: usize) -> Result<Tensor> {
        Tensor::tril_indices_with(rows, columns, 0, ())
    }

    /// [`Tensor::tril_indices`] for the diagonal `offset` above the main one, with an optional dtype and device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let at = Tensor::tril_indices_with(2, 2, 0, DType::I32)?;
    /// assert_eq!(at.to_vec2::<i32>()?, [[0, 1, 1], [0, 0, 1]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory; an unavailable device.
    pub fn tril_indices_with(
        rows: usize,
        columns: usize,
        offset: impl Int,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("tril_indices", &["rows", "columns", "offset", "options"], || {
            let offset = offset.to_i64();
            // Column `c` of row `r` is in the triangle if `c - r <= offset`.
            let first = usize::try_from(offset.checked_neg().unwrap_or(i64::MAX)).unwrap_or(0);
            let end = |row: usize| within(row as i128 + i128::from(offset) + 1, columns);
            indices("tril_indices", first.min(rows)..rows, columns, options.into_options()?, |row| {
                0..end(row)
            })
        })
    }

    /// [`Tensor::tril_indices`] of the elements on and above the diagonal.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let at = Tensor::triu_indices(2, 2)?;
    /// assert_eq!(at.to_vec::<i64>()?, [0, 0, 1, 0, 1, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory.
    pub fn triu_indices(rows: usize, columns: usize) -> Result<Tensor> {
        Tensor::triu_indices_with(rows, columns, 0, ())
    }

    /// [`Tensor::triu_indices`] for the diagonal `offset` above the main one, with an optional dtype and device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let at = Tensor::triu_indices_with(2, 2, 1, DType::I32)?;
    /// assert_eq!(at.to_vec2::<i32>()?, [[0], [1]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Out of memory; an unavailable device.
    pub fn triu_indices_with(
        rows: usize,
        columns: usize,
        offset: impl Int,
        options: impl IntoOptions,
    ) -> Result<Tensor> {
        called("triu_indices", &["rows", "columns", "offset", "options"], || {
            let offset = offset.to_i64();
            let start = |row: usize| within(row as i128 + i128::from(offset), columns);
            let end = within(columns as i128 - i128::from(offset), rows);
            indices("triu_indices", 0..end, columns, options.into_options()?, |row| start(row)..columns)
        })
    }
}

/// Clamps to `0..=most`.
fn within(at: i128, most: usize) -> usize {
    usize::try_from(at.max(0)).map_or(most, |at| at.min(most))
}

/// The indices of the columns `of_row` of each of these rows; no row is empty unless `columns` is 0.
fn indices(
    op: &'static str,
    rows: Range<usize>,
    columns: usize,
    options: TensorOptions,
    of_row: impl Fn(usize) -> Range<usize>,
) -> Result<Tensor> {
    let rows = if columns == 0 { 0..0 } else { rows };
    let too_many = || Error::Value {
        op,
        argument: "rows",
        expected: "a number of elements that memory holds".to_string(),
        got: format!("{} rows of up to {columns} elements", rows.len()),
    };
    // The row lengths increase or decrease by 1, except that rows with all columns have equal lengths.
    let [first, last] = [rows.start, rows.end.saturating_sub(1)].map(|row| of_row(row).len() as u128);
    let (low, high) = (first.min(last), first.max(last));
    let ramp = high - low;
    let count = match rows.len() as u128 {
        0 => 0,
        rows => {
            ((low + high - 1).saturating_mul(ramp) / 2).saturating_add((rows - ramp).saturating_mul(high))
        }
    };
    let count = usize::try_from(count).map_err(|_| too_many())?;
    let mut all: Vec<i64> = Vec::new();
    all.try_reserve_exact(count.saturating_mul(2)).map_err(|_| too_many())?;
    for row in rows.clone() {
        all.extend(of_row(row).map(|_| row as i64));
    }
    all.extend(rows.flat_map(of_row).map(|column| column as i64));
    Tensor::from_vec(all, (2, count))?.to(TensorOptions { device: Some(options.device()), ..options })
}

//! The places of a matrix's triangles.

use crate::error::Result;
use crate::{Device, Tensor};
use keyway_dispatcher::error::Error;

impl Tensor {
    /// The rows and the columns of the elements on and below a diagonal of a matrix of this size, in row-major order, as i64
    /// `[2, count]`; `offset` counts the diagonals above the main one.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor};
    /// let at = Tensor::tril_indices(2, 2, 0, Device::CPU)?;
    /// assert_eq!(at.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub fn tril_indices(rows: usize, columns: usize, offset: i64, device: Device) -> Result<Tensor> {
        let end = |row: i64| row.saturating_add(offset).saturating_add(1);
        indices("tril_indices", rows, columns, device, |row| (0, end(row)))
    }

    /// As [`Tensor::tril_indices`], of the elements on and above that diagonal.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::{Device, Tensor};
    /// let at = Tensor::triu_indices(2, 2, 1, Device::CPU)?;
    /// assert_eq!(at.to_vec::<i64>()?, [0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub fn triu_indices(rows: usize, columns: usize, offset: i64, device: Device) -> Result<Tensor> {
        let start = |row: i64| row.saturating_add(offset);
        indices("triu_indices", rows, columns, device, |row| (start(row), i64::MAX))
    }
}

/// Row by row the columns from one to before the other.
fn indices(
    op: &'static str,
    rows: usize,
    columns: usize,
    device: Device,
    range: impl Fn(i64) -> (i64, i64),
) -> Result<Tensor> {
    let bounds = |row: usize| {
        let (start, end) = range(row as i64);
        let within = |at: i64| usize::try_from(at.max(0)).map_or(columns, |at| at.min(columns));
        (within(start), within(end))
    };
    // No row of no columns is looked at.
    let rows = if columns == 0 { 0 } else { rows };
    let count = (0..rows).try_fold(0usize, |sum, row| {
        let (start, end) = bounds(row);
        sum.checked_add(end.saturating_sub(start))
    });
    let bytes = count.and_then(|count| count.checked_mul(16)).filter(|&bytes| bytes <= isize::MAX as usize);
    let (Some(count), Some(_)) = (count, bytes) else {
        let expected = "fewer elements than memory holds".to_string();
        let got = format!("{rows} rows of {columns}");
        return Err(Error::Value { op, argument: "rows", expected, got }.into());
    };
    let mut places: Vec<i64> = Vec::new();
    let too_many = |_| Error::Value {
        op,
        argument: "rows",
        expected: "fewer elements than memory holds".to_string(),
        got: format!("{count} elements"),
    };
    places.try_reserve_exact(2 * count).map_err(too_many)?;
    for row in 0..rows {
        let (start, end) = bounds(row);
        places.extend((start..end).map(|_| row as i64));
    }
    for row in 0..rows {
        let (start, end) = bounds(row);
        places.extend((start..end).map(|column| column as i64));
    }
    Tensor::from_vec(places, &[2, count])?.to_device(device)
}

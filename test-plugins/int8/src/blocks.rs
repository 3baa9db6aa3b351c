//! A quantised tensor as slices.

use crate::layout;
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{Error, Real, Tensor};
use keyway_test_faults as faults;

/// The parts of an argument of this layout: rows of blocks along the last dimension.
pub struct Blocks<'a> {
    /// Elements of the last dimension.
    pub columns: usize,
    /// Elements of a block.
    pub block: usize,
    /// Blocks of a row.
    pub per_row: usize,
    /// The quantised values, `[rows, per_row, block]`, padded with zeros at the end of a row.
    pub codes: Contiguous<'a, i8>,
    /// `[rows, per_row]`.
    pub scales: Contiguous<'a, f32>,
    /// Whether the codes are not contiguous in memory.
    pub gaps: bool,
}

/// Whether the tensor is of this plugin's layout.
pub fn is_int8(tensor: &Tensor<'_>) -> bool {
    tensor.n_components() == 2 && Some(tensor.layout()) == layout::number()
}

/// The number of rows and the elements of one.
pub fn rows_and_columns(sizes: &[i64]) -> (usize, usize) {
    let columns = sizes.last().map_or(1, |&size| size as usize);
    let rows = sizes.iter().rev().skip(1).map(|&size| size as usize).product();
    (rows, columns)
}

impl<'a> Blocks<'a> {
    /// Reads a tensor of this layout in the host's memory.
    pub fn read(tensor: &Tensor<'a>) -> Result<Blocks<'a>, Error> {
        let codes = tensor.component(0)?;
        let &[_, per_row, block] = codes.sizes() else {
            return Err(Error::InvalidArgument {
                argument: "codes",
                expected: "of shape [rows, blocks, block]".into(),
                got: format!("{:?}", codes.sizes()),
            });
        };
        Ok(Blocks {
            columns: rows_and_columns(tensor.sizes()).1,
            block: block as usize,
            per_row: per_row as usize,
            codes: codes.view()?.contiguous()?,
            scales: tensor.component(1)?.view()?.contiguous()?,
            gaps: !codes.is_contiguous(),
        })
    }

    /// The value of one element.
    pub fn value(&self, row: usize, column: usize) -> f64 {
        let block = row * self.per_row + column / self.block;
        let mut scaled = block;
        if faults::is("int8_far_scale") {
            scaled = row * self.per_row + (column / self.block).min(3);
        }
        let mut code = block * self.block + column % self.block;
        if self.gaps && faults::is("int8_codes_packed") {
            code /= 2;
        }
        f64::from(self.codes[code]) * f64::from(self.scales[scaled])
    }

    /// All values in row-major order.
    pub fn values<T: Real>(&self, rows: usize) -> impl Iterator<Item = T> + '_ {
        (0..rows)
            .flat_map(move |row| (0..self.columns).map(move |column| T::from_f64(self.value(row, column))))
    }
}

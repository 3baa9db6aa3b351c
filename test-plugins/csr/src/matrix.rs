//! Conversions between a CSR tensor and slices.

use crate::layout;
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{Arg, Call, Error, OwnedTensor, Plain, Tensor, new_composite, new_host_tensor};

/// The parts of a CSR argument.
pub struct Matrix<'a, T: Plain> {
    pub rows: usize,
    pub columns: usize,
    pub crow: Contiguous<'a, i64>,
    pub col: Contiguous<'a, i64>,
    pub values: Contiguous<'a, T>,
}

/// Whether the tensor is of this plugin's layout.
pub fn is_csr(tensor: &Tensor<'_>) -> bool {
    tensor.n_components() == 3 && Some(tensor.layout()) == layout::number()
}

/// The error for arguments that no kernel of this plugin serves.
pub fn unsupported(what: impl Into<String>) -> Error {
    Error::Unsupported { what: what.into() }
}

/// The two sizes of a matrix.
pub fn matrix_sizes(tensor: &Tensor<'_>) -> Result<[usize; 2], Error> {
    match *tensor.sizes() {
        [rows, columns] => Ok([rows as usize, columns as usize]),
        ref other => Err(unsupported(format!(
            "the layout test.keyway/csr for a shape of {other:?}, which is no matrix,"
        ))),
    }
}

impl<'a, T: Plain> Matrix<'a, T> {
    /// Reads a CSR tensor in host-accessible memory.
    pub fn read(tensor: &Tensor<'a>) -> Result<Self, Error> {
        if !is_csr(tensor) {
            return Err(unsupported("a tensor of another layout than test.keyway/csr here"));
        }
        if tensor.device() != 0 {
            return Err(unsupported(
                "the layout test.keyway/csr in the memory of another device than the CPU; move it with `to_device`: it",
            ));
        }
        let [rows, columns] = matrix_sizes(tensor)?;
        Ok(Matrix {
            rows,
            columns,
            crow: tensor.component(0)?.view()?.contiguous()?,
            col: tensor.component(1)?.view()?.contiguous()?,
            values: tensor.component(2)?.view()?.contiguous()?,
        })
    }

    /// The range of the entries of one row.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.crow[row] as usize..self.crow[row + 1] as usize
    }

    /// Calls `body` with row, column and value of each entry.
    pub fn each(&self, mut body: impl FnMut(usize, usize, T)) {
        for row in 0..self.rows {
            for at in self.row(row) {
                body(row, self.col[at] as usize, self.values[at]);
            }
        }
    }
}

/// A new host tensor with these elements.
pub fn vector<T: Plain>(values: &[T]) -> Result<OwnedTensor, Error> {
    let mut made = new_host_tensor::<T>(&[values.len() as i64])?;
    made.view_mut::<T>()?.assign(values.iter().copied());
    Ok(made)
}

/// Entries in order of rows and columns, as they are gathered.
pub struct Builder<T> {
    sizes: [usize; 2],
    crow: Vec<i64>,
    col: Vec<i64>,
    values: Vec<T>,
}

impl<T: Plain> Builder<T> {
    /// An empty matrix.
    pub fn new(sizes: [usize; 2]) -> Self {
        Builder { sizes, crow: vec![0], col: Vec::new(), values: Vec::new() }
    }

    /// Adds an entry to the current row.
    pub fn entry(&mut self, column: usize, value: T) {
        self.col.push(column as i64);
        self.values.push(value);
    }

    /// Ends the current row.
    pub fn end_row(&mut self) {
        self.crow.push(self.col.len() as i64);
    }

    /// The tensor.
    pub fn build(self) -> Result<OwnedTensor, Error> {
        let (crow, col, values) = (vector(&self.crow)?, vector(&self.col)?, vector(&self.values)?);
        composite::<T>(self.sizes, &[Arg::Owned(&crow), Arg::Owned(&col), Arg::Owned(&values)])
    }
}

/// A CSR tensor of these components.
pub fn composite<T: Plain>(sizes: [usize; 2], components: &[Arg<'_>]) -> Result<OwnedTensor, Error> {
    let number = layout::number().ok_or_else(|| unsupported("a layout without a number"))?;
    new_composite(number, T::dtype(), &sizes.map(|s| s as i64), components, &[])
}

/// A matrix with the same pattern and other values.
pub fn with_values<T: Plain>(pattern: &Tensor<'_>, values: &OwnedTensor) -> Result<OwnedTensor, Error> {
    let components =
        [Arg::Tensor(pattern.component(0)?), Arg::Tensor(pattern.component(1)?), Arg::Owned(values)];
    composite::<T>(matrix_sizes(pattern)?, &components)
}

/// Sets the first output.
pub fn give(call: &Call<'_>, made: OwnedTensor) -> Result<(), Error> {
    call.set_output(0, made)
}

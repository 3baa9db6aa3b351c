//! CSR matrices: components, and conversion to and from COO.
//!
//! Kernels that read a sparse tensor by [`Coo::read`](crate::coo::Coo::read) accept CSR too, as coalesced COO: 16 bytes for each
//! entry are written. Kernels that need the rows alone read a [`Csr`].

use crate::coo::{Coo, PIECE, Part, new_tensor, one, unsupported, wrong};
use crate::layout_csr as layout;
use crate::number::{Number, by_size};
use keyway_cpu_loops::{Contiguous, ViewExt};
use keyway_sdk::author::{
    Arg, Call, Error, OwnedTensor, Scratch, Tensor, new_composite, new_host_tensor, parallel_chunks_mut,
};

/// A sparse matrix: row `i` has the entries from `crow[i]` up to `crow[i + 1]`, in the order of their columns, each column
/// once.
#[derive(Debug)]
pub struct Csr<'a> {
    /// Rows and columns.
    pub sizes: [i64; 2],
    /// Number of entries.
    pub nnz: usize,
    /// `[rows + 1]`, i64.
    pub crow: Part<'a>,
    /// `[nnz]`, i64.
    pub col: Part<'a>,
    /// `[nnz]`.
    pub values: Part<'a>,
}

/// Whether a tensor is of this layout.
pub fn is_csr(tensor: &Tensor<'_>) -> bool {
    tensor.n_components() == 3 && Some(tensor.layout()) == layout::number()
}

/// Whether the result of a call should be CSR if possible: some argument is, and none is COO.
pub fn is_wanted(call: &Call<'_>) -> bool {
    let mut any = false;
    for index in 0..call.n_args() {
        let list = call.tensors(index).ok();
        let listed = list.iter().flat_map(|list| list.iter());
        for tensor in call.tensor(index).ok().into_iter().chain(listed) {
            if crate::coo::is_coo(&tensor) {
                return false;
            }
            any |= is_csr(&tensor);
        }
    }
    any
}

/// Computes output 0 of a call whose argument `index` is CSR: the same pattern with the values that `make` returns for its
/// values. Returns whether it applied; other layouts are left unchanged.
///
/// # Errors
/// Mismatched components; errors of `make`.
pub fn map_values(
    call: &Call<'_>,
    index: usize,
    make: impl FnOnce(Arg<'_>) -> Result<OwnedTensor, Error>,
) -> Result<bool, Error> {
    let tensor = call.tensor(index)?;
    if !is_csr(&tensor) {
        return Ok(false);
    }
    let csr = Csr::read(tensor)?;
    let values = make(csr.values.arg())?;
    csr.with_values(values).give(call)?;
    Ok(true)
}

impl<'a> Csr<'a> {
    /// Reads a CSR tensor, and checks that the sizes of its components match.
    ///
    /// # Errors
    /// Another layout; mismatched components.
    pub fn read(tensor: Tensor<'a>) -> Result<Csr<'a>, Error> {
        if !is_csr(&tensor) {
            return Err(unsupported("a tensor of another layout than sparse_csr here"));
        }
        let &[rows, columns] = tensor.sizes() else {
            return Err(unsupported(format!(
                "sparse_csr of shape {:?}, which is no matrix,",
                tensor.sizes()
            )));
        };
        let (crow, col, values) = (tensor.component(0)?, tensor.component(1)?, tensor.component(2)?);
        let bounds = rows.saturating_add(1);
        if crow.sizes() != [bounds] {
            let expected = format!("of shape [{bounds}], one more than the {rows} rows");
            return Err(wrong("crow_indices", expected, format!("shape {:?}", crow.sizes())));
        }
        let &[nnz] = col.sizes() else {
            return Err(wrong("col_indices", "of shape [nnz]", format!("shape {:?}", col.sizes())));
        };
        if values.sizes() != [nnz] {
            let expected = format!("of shape [{nnz}], one for each of `col_indices`");
            return Err(wrong("values", expected, format!("shape {:?}", values.sizes())));
        }
        let (crow, col, values) = (Part::Given(crow), Part::Given(col), Part::Given(values));
        Ok(Csr { sizes: [rows, columns], nnz: nnz as usize, crow, col, values })
    }

    /// The dtype's code.
    pub fn dtype(&self) -> u16 {
        self.values.tensor().dtype()
    }

    /// The row pointers: from 0 to `nnz`, non-decreasing. A component may have been changed since it was checked.
    ///
    /// # Errors
    /// Invalid row pointers; memory that the host cannot read.
    pub fn begins(&self) -> Result<Contiguous<'_, i64>, Error> {
        let crow = self.crow.tensor().view::<i64>()?.contiguous()?;
        let (first, last) = (crow.first().copied(), crow.last().copied());
        let shown = |number: Option<i64>| number.map_or("none".to_string(), |number| number.to_string());
        if first != Some(0) {
            return Err(wrong("crow_indices", "0 as the first", shown(first)));
        }
        if last != Some(self.nnz as i64) {
            let expected = format!("the count of `col_indices` as the last, {}", self.nnz);
            return Err(wrong("crow_indices", expected, shown(last)));
        }
        if crow.windows(2).fold(false, |falls, pair| falls | (pair[0] > pair[1])) {
            let row = crow.windows(2).position(|pair| pair[0] > pair[1]).unwrap_or(0);
            let got = format!("{} and then {} at row {row}", crow[row], crow[row + 1]);
            return Err(wrong("crow_indices", "numbers that do not fall", got));
        }
        Ok(crow)
    }

    /// The unchecked columns: one may be out of range.
    ///
    /// # Errors
    /// Memory that the host cannot read.
    pub fn unchecked_columns(&self) -> Result<Contiguous<'_, i64>, Error> {
        self.col.tensor().view::<i64>()?.contiguous()
    }

    /// The columns, all in range.
    ///
    /// # Errors
    /// As [`Csr::begins`].
    pub fn columns(&self) -> Result<Contiguous<'_, i64>, Error> {
        let col = self.unchecked_columns()?;
        let width = self.sizes[1];
        if col.iter().fold(false, |any, &at| any | (at as u64 >= width as u64)) {
            let at = col.iter().find(|&&at| at as u64 >= width as u64).copied().unwrap_or(-1);
            return Err(wrong("col_indices", format!("columns from 0 and below {width}"), at.to_string()));
        }
        Ok(col)
    }

    /// Returns an error unless the columns of each row increase.
    ///
    /// # Errors
    /// As [`Csr::begins`] and [`Csr::columns`]; a row whose columns do not increase.
    pub fn check_order(&self) -> Result<(), Error> {
        let (begins, columns) = (self.begins()?, self.columns()?);
        for (row, pair) in begins.windows(2).enumerate() {
            let of_row = &columns[pair[0] as usize..pair[1] as usize];
            if let Some(pair) = of_row.windows(2).find(|pair| pair[0] >= pair[1]) {
                return Err(wrong(
                    "col_indices",
                    "columns that rise within each row; `sparse_coo` takes entries in any order, `to_sparse_csr` sorts them",
                    format!("{} and then {} in row {row}", pair[0], pair[1]),
                ));
            }
        }
        Ok(())
    }

    /// The same entries as coalesced COO; the values are shared.
    ///
    /// # Errors
    /// As [`Csr::begins`]; insufficient memory.
    pub fn into_coo(self) -> Result<Coo<'a>, Error> {
        let nnz = self.nnz;
        let mut made = new_host_tensor::<i64>(&[2, nnz as i64])?;
        if let (Some(out), true) = (made.view_mut::<i64>()?.as_mut_slice(), nnz > 0) {
            let (begins, columns) = (self.begins()?, self.columns()?);
            let (rows, cols) = out.split_at_mut(nnz);
            parallel_chunks_mut(rows, PIECE, |piece, out| {
                let first = (piece * PIECE) as i64;
                // Binary search for the row that contains the first entry.
                let mut row = begins.partition_point(|&begin| begin <= first) - 1;
                let mut at = 0;
                while at < out.len() {
                    let end = ((begins[row + 1] - first) as usize).min(out.len());
                    out[at..end].fill(row as i64);
                    (at, row) = (end, row + 1);
                }
            })?;
            parallel_chunks_mut(cols, PIECE, |piece, out| {
                out.copy_from_slice(&columns[piece * PIECE..][..out.len()]);
            })?;
        }
        let (sizes, indices) = (self.sizes.to_vec(), Part::Made(made));
        Ok(Coo { sizes, sparse_dim: 2, nnz, coalesced: true, indices, values: self.values })
    }

    /// Converts coalesced COO; columns and values are shared.
    ///
    /// # Errors
    /// A tensor that is not a matrix or has dense dimensions; mismatched components.
    pub fn of(coo: &Coo<'a>) -> Result<OwnedTensor, Error> {
        let (&[rows, columns], 2) = (&coo.sizes[..], coo.sparse_dim) else {
            return Err(unsupported(format!(
                "a tensor of shape {:?} with {} sparse dimensions as sparse_csr, which is for matrices,",
                coo.sizes, coo.sparse_dim
            )));
        };
        let mut crow = new_host_tensor::<i64>(&[rows.saturating_add(1)])?;
        if let Some(out) = crow.view_mut::<i64>()?.as_mut_slice() {
            row_begins(coo.index()?[..coo.nnz].iter().map(|&row| row as usize), coo.nnz, out)?;
        }
        let col = one("select", &[coo.indices.arg(), Arg::Int(0), Arg::Int(1)])?;
        build([rows, columns], coo.dtype(), &[Arg::Owned(&crow), Arg::Owned(&col), coo.values.arg()])
    }

    /// The transposed matrix, by a counting sort of the entries by column, stable in the rows.
    ///
    /// # Errors
    /// Mismatched components; insufficient memory.
    pub fn transposed(&self) -> Result<OwnedTensor, Error> {
        by_size!(self.dtype(), transposed(self))
    }

    /// The same rows with other values.
    pub fn with_values(self, values: OwnedTensor) -> Csr<'a> {
        Csr { values: Part::Made(values), ..self }
    }

    /// Sets this as the first output.
    ///
    /// # Errors
    /// Errors of the host.
    pub fn give(&self, call: &Call<'_>) -> Result<(), Error> {
        let parts = [self.crow.arg(), self.col.arg(), self.values.arg()];
        call.set_output(0, build(self.sizes, self.dtype(), &parts)?)
    }
}

fn transposed<T: Number>(csr: &Csr<'_>) -> Result<OwnedTensor, Error> {
    let (begins, columns) = (csr.begins()?, csr.columns()?);
    let values = csr.values.tensor().view_bits::<T>()?.contiguous()?;
    let [rows, width] = csr.sizes;
    let mut crow = new_host_tensor::<i64>(&[width.saturating_add(1)])?;
    let mut col = new_host_tensor::<i64>(&[csr.nnz as i64])?;
    let mut made = new_tensor(csr.dtype(), &[csr.nnz as i64])?;
    if let (Some(crow), Some(col), Some(made)) = (
        crow.view_mut::<i64>()?.as_mut_slice(),
        col.view_mut::<i64>()?.as_mut_slice(),
        made.view_bits_mut::<T>()?.as_mut_slice(),
    ) {
        crow.fill(0);
        columns.iter().for_each(|&column| crow[column as usize + 1] += 1);
        let mut next = Scratch::<u64>::zeroed(width as usize)?;
        for column in 0..next.len() {
            next[column] = crow[column] as u64;
            crow[column + 1] += crow[column];
        }
        for (row, pair) in begins.windows(2).enumerate() {
            for entry in pair[0] as usize..pair[1] as usize {
                let next = &mut next[columns[entry] as usize];
                col[*next as usize] = row as i64;
                made[*next as usize] = values[entry];
                *next += 1;
            }
        }
    }
    build([width, rows], csr.dtype(), &[Arg::Owned(&crow), Arg::Owned(&col), Arg::Owned(&made)])
}

/// Whether both are CSR with the same row pointers and columns, checked without reading them.
pub fn share_rows(a: &Tensor<'_>, b: &Tensor<'_>) -> bool {
    let same_part = |(a, b): (Tensor<'_>, Tensor<'_>)| {
        a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides()
    };
    is_csr(a) && is_csr(b) && a.components().zip(b.components()).take(2).all(same_part)
}

fn build(sizes: [i64; 2], dtype: u16, parts: &[Arg<'_>]) -> Result<OwnedTensor, Error> {
    let number = layout::number().ok_or_else(|| unsupported("a layout without a number"))?;
    new_composite(number, dtype, &sizes, parts, &[])
}

/// The error for entries that are marked as sorted but are not.
pub fn out_of_order() -> Error {
    wrong("coalesced", "1 only of entries in row-major order", "a component that was changed")
}

/// The row pointers of entries that are sorted by row.
///
/// # Errors
/// Unsorted entries, and rows out of range.
pub fn row_begins(rows: impl Iterator<Item = usize>, nnz: usize, out: &mut [i64]) -> Result<(), Error> {
    let (count, mut next) = (out.len().saturating_sub(1), 0);
    for (entry, row) in rows.enumerate() {
        if row.wrapping_add(1) == next {
            continue;
        }
        if row < next || row >= count {
            return Err(out_of_order());
        }
        out[next..=row].fill(entry as i64);
        next = row + 1;
    }
    out[next..].fill(nnz as i64);
    Ok(())
}

//! Sparse CSR matrices: constructors and queries.

use super::Tensor;
use super::shape::{IntoShape, sizes};
use super::sparse::{as_i64, composed, sparse_layout, wrong};
use crate::error::layouts::CSR;
use crate::error::{Result, called};

impl Tensor {
    /// A sparse CSR matrix: row `i` has the entries from `crow_indices[i]` up to `crow_indices[i + 1]`, with columns in
    /// `col_indices` and values in `values`. `crow_indices` has the shape `[rows + 1]`, begins with 0, never decreases and ends
    /// with `nnz`; `col_indices` has the shape `[nnz]` and increases within each row; `values` has the shape `[nnz]`. Indices of
    /// any integer dtype are stored as i64; the tensor shares memory with those that are i64 and with `values`, to which
    /// gradients flow.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let crow = Tensor::new([0i64, 1, 3])?;
    /// let col = Tensor::new([2i64, 0, 2])?;
    /// let values = Tensor::new([3.0f32, 4.0, 5.0])?;
    /// let a = Tensor::sparse_csr(&crow, &col, &values, (2, 3))?;
    /// assert_eq!(a.to_dense()?.to_vec::<f32>()?, [0.0, 0.0, 3.0, 4.0, 0.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// No backend that implements `sparse_csr`; sizes of rank other than 2 (use `sparse_coo` for stacks of matrices); components
    /// whose dtypes, ranks or counts do not fit; row pointers and columns that are not as above.
    #[doc(alias = "sparse_csr_tensor")]
    pub fn sparse_csr(
        crow_indices: &Tensor,
        col_indices: &Tensor,
        values: &Tensor,
        shape: impl IntoShape,
    ) -> Result<Tensor> {
        called("sparse_csr", &["crow_indices", "col_indices", "values", "shape"], || {
            let sizes = sizes(CSR, shape)?;
            let layout = sparse_layout(CSR, CSR, values.device())?;
            let shape = |t: &Tensor| format!("shape {:?}", t.shape());
            let &[rows, _] = sizes.as_slice() else {
                let expected = "two, of one matrix; batches of matrices are held by `sparse_coo`";
                return Err(wrong(CSR, "sizes", expected, format!("{:?}", sizes.as_slice())));
            };
            let crow_indices = &as_i64(CSR, "crow_indices", crow_indices)?;
            let col_indices = &as_i64(CSR, "col_indices", col_indices)?;
            for (indices, argument) in [(crow_indices, "crow_indices"), (col_indices, "col_indices")] {
                if indices.rank() != 1 {
                    let expected = "of one dimension; batches of matrices are held by `sparse_coo`";
                    return Err(wrong(CSR, argument, expected, shape(indices)));
                }
            }
            if rows.checked_add(1) != Some(crow_indices.elem_count()) {
                let expected =
                    format!("of {} elements, one more than the {rows} rows", rows.saturating_add(1));
                return Err(wrong(CSR, "crow_indices", expected, shape(crow_indices)));
            }
            let nnz = col_indices.elem_count();
            if values.shape() != [nnz] {
                let expected = format!("of shape [{nnz}], one for each element of `col_indices`");
                return Err(wrong(CSR, "values", expected, shape(values)));
            }
            let parts = [crow_indices.clone(), col_indices.clone(), values.clone()];
            composed(CSR, layout, &sizes, &parts, &[])
        })
    }

    /// The row pointers of a CSR matrix: i64 of shape `[rows + 1]`; memory is shared.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [4.0, 5.0]])?.to_sparse_csr()?;
    /// assert_eq!(a.crow_indices()?.to_vec::<i64>()?, [0, 1, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    pub fn crow_indices(&self) -> Result<Tensor> {
        called("crow_indices", &["self"], || {
            self.compressed("crow_indices")?;
            self.component("crow_indices")
        })
    }

    /// The column of each entry of compressed rows, i64 of shape `[nnz]`; memory is shared.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [4.0, 5.0]])?.to_sparse_csr()?;
    /// assert_eq!(a.col_indices()?.to_vec::<i64>()?, [1, 0, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    pub fn col_indices(&self) -> Result<Tensor> {
        called("col_indices", &["self"], || {
            self.compressed("col_indices")?;
            self.component("col_indices")
        })
    }

    /// Whether this is a CSR matrix.
    pub(super) fn is_compressed(&self) -> bool {
        self.layout().name() == CSR && self.as_ref().components().len() == 3
    }

    fn compressed(&self, op: &'static str) -> Result<()> {
        if self.is_compressed() {
            return Ok(());
        }
        let got = format!("one of layout {}; `to_sparse_csr` makes one of a matrix", self.layout());
        Err(wrong(op, "self", format!("a tensor of layout {CSR}"), got))
    }
}

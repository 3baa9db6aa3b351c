//! Sparse COO tensors: constructors; and queries of every sparse tensor.

use super::Tensor;
use super::shape::{self, IntoShape};
use crate::error::layouts::{COO, CSR, SERVED_BY};
use crate::error::{Error, Result, called};
use crate::{Device, Layout};
use keyway_dispatcher::Error as DispatchError;
use keyway_dispatcher::dtype::DType;
use keyway_dispatcher::layouts::may_repeat;
use keyway_dispatcher::registry::{FallbackPolicy, layout_ops};
use keyway_dispatcher::table;
use std::path::Path;

/// A tensor of these components, with errors in the name of `op`.
pub(super) fn composed(
    op: &'static str,
    layout: Layout,
    sizes: &[usize],
    parts: &[Tensor],
    attrs: &[i64],
) -> Result<Tensor> {
    let dtype = parts.last().map_or(DType::F32, Tensor::dtype);
    Tensor::from_components(layout, sizes, dtype, parts, attrs).map_err(|mut error| {
        if let Error::Dispatch(
            DispatchError::Value { op: said, .. }
            | DispatchError::Shape { op: said, .. }
            | DispatchError::Rejected { op: said, .. },
        ) = &mut error
        {
            *said = op;
        }
        error
    })
}

/// The layout of this name, one of those above, for tensors on a device.
///
/// # Errors
/// No loaded backend implements it; on the CPU, no backend implements it there, as when only a GPU backend provides it.
pub(crate) fn sparse_layout(name: &'static str, op: &'static str, device: Device) -> Result<Layout> {
    crate::runtime::start()?;
    let found = Layout::from_name(name).filter(|&layout| is_served(layout, device));
    found.ok_or_else(|| Error::NoLayout {
        op,
        layout: name,
        served_by: SERVED_BY,
        refused: refused(SERVED_BY),
    })
}

/// Whether a backend provides a layout, and on the CPU implements it there; other devices report their own errors.
pub(crate) fn is_served(layout: Layout, device: Device) -> bool {
    let table = table::current();
    let helped = !matches!(table.fallback(device.kind), FallbackPolicy::Error);
    table.layout(layout).is_some()
        && (device.kind != Device::CPU.kind || helped || layout_ops(layout, device.kind).is_some())
}

/// The reason why an existing library was not loaded, if its file name is that of this backend.
fn refused(backend: &str) -> Option<String> {
    let name = backend.strip_prefix("keyway-").unwrap_or(backend).replace('-', "_");
    let rejected = &crate::runtime::backends()?.rejected;
    let named = |path: &Path| path.file_name().is_some_and(|file| file.to_string_lossy().contains(&name));
    rejected.iter().find(|one| named(&one.path)).map(|one| one.error.to_string())
}

/// The error for an argument that does not fit.
pub(super) fn wrong(
    op: &'static str,
    argument: &'static str,
    expected: impl Into<String>,
    got: impl Into<String>,
) -> Error {
    DispatchError::Value { op, argument, expected: expected.into(), got: got.into() }.into()
}

/// Converts indices of any integer dtype to i64, the dtype of indices in layouts; i64 indices share memory.
pub(super) fn as_i64(op: &'static str, argument: &'static str, indices: &Tensor) -> Result<Tensor> {
    match indices.dtype() {
        DType::I64 => Ok(indices.clone()),
        dtype if dtype.is_integer() => indices.to_dtype(DType::I64),
        dtype => Err(wrong(op, argument, "of an integer dtype", dtype.to_string())),
    }
}

impl Tensor {
    /// A sparse COO tensor: entry `n` has the coordinate `indices[.., n]` and the value `values[n]`. `indices` has an integer
    /// dtype, stored as i64, and the shape `[sparse_dim, nnz]`; `values` has the shape `[nnz, dense sizes...]`, and `sizes` lists
    /// the sizes of the sparse dimensions followed by the dense ones. Duplicate coordinates add up. The tensor shares memory with
    /// `values`, and with `indices` if they are i64; gradients flow to `values`: that of an entry is the gradient at its
    /// coordinate.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let indices = Tensor::from_vec(vec![0i64, 1, 1, 2, 0, 2], (2, 3))?;
    /// let values = Tensor::new([3.0f32, 4.0, 5.0])?;
    /// let a = Tensor::sparse_coo(&indices, &values, (2, 3))?;
    /// assert_eq!(a.to_dense()?.to_vec::<f32>()?, [0.0, 0.0, 3.0, 4.0, 0.0, 5.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// As a leaf ([`Tensor::requires_grad_`]), it has a sparse gradient with the same indices, duplicates included: each
    /// duplicate has the full gradient at its coordinate, as if each were added separately.
    ///
    /// # Errors
    /// No backend for `sparse_coo`; components whose dtypes, ranks or counts do not fit; an index that is negative or beyond its
    /// size; sizes whose product overflows.
    #[doc(alias = "sparse_coo_tensor")]
    pub fn sparse_coo(indices: &Tensor, values: &Tensor, shape: impl IntoShape) -> Result<Tensor> {
        called("sparse_coo", &["indices", "values", "shape"], || {
            let sizes = shape::sizes(COO, shape)?;
            let layout = sparse_layout(COO, COO, values.device())?;
            let indices = &as_i64(COO, "indices", indices)?;
            let &[sparse_dim, nnz] = indices.shape() else {
                let got = format!("shape {:?}", indices.shape());
                return Err(wrong(COO, "indices", "of two dimensions, [sparse_dim, nnz]", got));
            };
            if sparse_dim > sizes.len() {
                let expected = format!("a matrix of at most {} rows, one for each size", sizes.len());
                return Err(wrong(COO, "indices", expected, format!("{sparse_dim} rows")));
            }
            let expected: Vec<usize> =
                std::iter::once(nnz).chain(sizes[sparse_dim..].iter().copied()).collect();
            if values.shape() != expected {
                let expected = format!("of shape {expected:?}: a block for each column of `indices`");
                return Err(wrong(COO, "values", expected, format!("shape {:?}", values.shape())));
            }
            let parts = [indices.clone(), values.clone()];
            // One entry is in order.
            composed(COO, layout, &sizes, &parts, &[i64::from(nnz < 2)])
        })
    }

    /// The values as a strided tensor: duplicates are added up, and unstored elements are 0; this tensor itself if it is strided.
    /// The same as [`Tensor::to_strided`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([1.0f32, 0.0])?;
    /// assert!(x.to_dense()?.ptr_eq(&x));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A layout that cannot be converted to strided.
    pub fn to_dense(&self) -> Result<Tensor> {
        called("to_dense", &["self"], || self.to_strided())
    }

    /// Whether this is a sparse tensor, COO or CSR.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// assert!(!Tensor::eye(3)?.is_sparse());
    /// # Ok(()) }
    /// ```
    ///
    /// PyTorch's `is_sparse` is true only for COO, `is_sparse_csr` for CSR; [`Tensor::layout`] distinguishes them.
    #[doc(alias = "is_sparse_csr")]
    pub fn is_sparse(&self) -> bool {
        self.is_coordinates() || self.is_compressed()
    }

    /// Whether this is a sparse COO tensor.
    pub(crate) fn is_coordinates(&self) -> bool {
        self.layout().name() == COO && self.as_ref().components().len() == 2
    }

    /// Fails unless this is a sparse tensor of coordinates.
    fn coordinates(&self, op: &'static str) -> Result<()> {
        if self.is_coordinates() {
            return Ok(());
        }
        let got = format!("one of layout {}; `to_sparse` makes one of a strided tensor", self.layout());
        Err(wrong(op, "self", format!("a tensor of layout {COO}"), got))
    }

    /// Fails unless this is a sparse tensor: of coordinates, or of compressed rows.
    fn entries(&self, op: &'static str) -> Result<()> {
        if self.is_compressed() || self.is_coordinates() {
            return Ok(());
        }
        let got = format!("one of layout {}; `to_sparse` makes one of a strided tensor", self.layout());
        Err(wrong(op, "self", format!("a sparse tensor, of layout {COO} or {CSR}"), got))
    }

    /// Converts CSR to COO; other layouts are returned unchanged.
    pub(crate) fn as_coordinates(&self) -> Result<Tensor> {
        if self.is_compressed() { self.to_sparse_with(2) } else { Ok(self.clone()) }
    }

    /// The tensor without duplicates: [`Tensor::coalesce`] if its layout may contain some, according to its attribute
    /// `coalesced`; otherwise the tensor itself. Other composite layouts need no kernel for `coalesce`.
    pub(crate) fn without_duplicates(&self) -> Result<Tensor> {
        if may_repeat(self.as_ref()) { self.coalesce() } else { Ok(self.clone()) }
    }

    /// Whether the entries of a sparse tensor are known to be in row-major order without duplicates. This holds for a tensor
    /// without entries, and for CSR.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let indices = Tensor::new([[0i64, 0, 2]])?;
    /// let a = Tensor::sparse_coo(&indices, &Tensor::new([1.0f32, 2.0, 3.0])?, 3)?;
    /// assert!(!a.is_coalesced()?);
    /// assert!(a.coalesce()?.is_coalesced()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    pub fn is_coalesced(&self) -> Result<bool> {
        called("is_coalesced", &["self"], || {
            self.entries("is_coalesced")?;
            Ok(self.is_compressed() || self.attrs().first() == Some(&1) || self.nnz()? == 0)
        })
    }

    /// The indices of a sparse tensor, i64 of shape `[sparse_dim, nnz]`; memory is shared.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [4.0, 0.0]])?.to_sparse()?;
    /// assert_eq!(a.indices()?.to_vec2::<i64>()?, [[0, 1], [1, 0]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    #[doc(alias = "_indices")]
    pub fn indices(&self) -> Result<Tensor> {
        called("indices", &["self"], || {
            self.coordinates("indices")?;
            self.component("indices")
        })
    }

    /// The values of a sparse tensor, of shape `[nnz, dense sizes...]`, or `[nnz]` for CSR; memory is shared, and gradients flow
    /// through. For a tensor that is not coalesced these are the stored entries, possibly with duplicates: `coalesce()?.values()`
    /// are their sums. A result that requires grad has no duplicates.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [4.0, 0.0]])?.to_sparse()?;
    /// assert_eq!(a.values()?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    #[doc(alias = "_values")]
    pub fn values(&self) -> Result<Tensor> {
        called("values", &["self"], || {
            self.entries("values")?;
            self.component("values")
        })
    }

    /// Number of stored entries of a sparse tensor, including explicit zeros and duplicates.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let a = Tensor::new([[0.0f32, 3.0], [4.0, 0.0]])?.to_sparse()?;
    /// assert_eq!(a.nnz()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    #[doc(alias = "_nnz")]
    pub fn nnz(&self) -> Result<usize> {
        self.entries("nnz")?;
        // The last size of the indices of coordinates, and of the columns of compressed rows.
        let parts = self.as_ref().components();
        Ok(parts[parts.len() - 2].sizes().last().copied().unwrap_or(0))
    }

    /// Number of sparse dimensions of a sparse tensor: the first ones.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let indices = Tensor::new([[0i64, 2]])?;
    /// let a = Tensor::sparse_coo(&indices, &Tensor::ones((2, 4))?, (3, 4))?;
    /// assert_eq!((a.sparse_dim()?, a.dense_dim()?), (1, 1));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    pub fn sparse_dim(&self) -> Result<usize> {
        self.entries("sparse_dim")?;
        if self.is_compressed() {
            return Ok(2);
        }
        Ok(self.as_ref().components()[0].sizes().first().copied().unwrap_or(0))
    }

    /// Number of dense dimensions of a sparse tensor: the last ones, within each entry.
    ///
    /// ```no_run
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let indices = Tensor::new([[0i64, 2]])?;
    /// let a = Tensor::sparse_coo(&indices, &Tensor::ones((2, 4, 5))?, (3, 4, 5))?;
    /// assert_eq!(a.dense_dim()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A tensor of another layout.
    pub fn dense_dim(&self) -> Result<usize> {
        called("dense_dim", &["self"], || Ok(self.rank().saturating_sub(self.sparse_dim()?)))
    }
}

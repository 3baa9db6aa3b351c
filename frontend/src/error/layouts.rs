//! The sparse layouts, and the backend that errors name for them.

/// The name of the COO layout, for any backend.
pub(crate) const COO: &str = "sparse_coo";
/// The name of the layout of compressed rows.
pub(crate) const CSR: &str = "sparse_csr";
/// The backend for these layouts, named in errors.
pub(crate) const SERVED_BY: &str = "keyway-sparse";

/// The backend of this project that implements a layout of this name.
pub(crate) fn served_by(layout: &str) -> Option<&'static str> {
    [COO, CSR].contains(&layout).then_some(SERVED_BY)
}

//! The sparse backend of Keyway, a plugin: the layouts `sparse_coo` and `sparse_csr` and their kernels on the CPU.
//!
//! A COO tensor (`sparse_coo`) has `sparse_dim` leading sparse dimensions, followed by dense ones. Its components are
//! `indices` (i64, `[sparse_dim, nnz]`) and `values` (`[nnz, dense sizes...]`), its attribute is `coalesced`: entries are
//! in row-major order without duplicates. Every op adds duplicates: a kernel of an op that is not linear coalesces first.
//!
//! A CSR matrix (`sparse_csr`) has the components `crow_indices` (i64, `[rows + 1]`), `col_indices` (i64, `[nnz]`) and `values`
//! (`[nnz]`), and no attribute: columns increase within each row, so that there are no duplicates.
//!
//! Decisions:
//! - a kernel reads CSR as coalesced COO (`Coo::read`), and its result is CSR if it is a matrix and no argument is COO. So every
//!   COO op on matrices accepts both, and mixed arguments result in COO. If rows alone are needed, or the pattern is preserved,
//!   nothing is converted: products, `transpose`, functions of the values, conversions. Separate kernels for each op would
//!   duplicate everything;
//! - batches of matrices are three-dimensional COO tensors: CSR matrices with different `nnz` have no common shape;
//! - element-wise computations on the stored values are computed by the op of that name on the component `values`, through the
//!   host: the kernels here compute coordinates, and the backend of strided tensors computes values. So every dtype of that
//!   backend is supported here, with its accuracy and its speed. Separate kernels for the values would duplicate the CPU
//!   backend's mathematics;
//! - an op without a kernel here is an error, as is a case that a kernel does not support: nothing becomes strided implicitly.
//!   The message names `to_dense()`;
//! - unstored elements count as 0 in sums, means, norms and extremes, and as minus infinity in softmax. A stored 0 is an element
//!   like others: 0 times infinity is NaN if it is stored;
//! - sums that cancel remain as explicit zeros, so that the pattern of a result depends on the patterns of the arguments alone;
//! - duplicates are added in the order of the entries, and work is split by the number of entries alone, so that results are
//!   bitwise identical for any number of threads;
//! - kernels read indices through checked slices and check their range at each call, one pass of a few per cent: a component
//!   may have been changed in place since it was checked, and bad input never panics;
//! - a product with a strided operand is linear, so it uses entries in their order, including duplicates, which is faster than
//!   sorting them. With infinities that may differ from the product of the sum of duplicates: a result that is not finite is
//!   computed again, from coalesced entries;
//! - a gradient is projected on the pattern of its tensor: each entry has the gradient at its coordinate, duplicates included.
//!
//! Scratch memory is proportional to the entries, rows and dense operands; each module states its own.

mod coalesce;
mod coo;
mod csr;
mod dense;
mod kernels;
mod layout;
mod layout_csr;
mod number;
mod packed;
mod sort;
mod split;

keyway_sdk::plugin! {
    name: "keyway-sparse",
    version: env!("CARGO_PKG_VERSION"),
    description: "Sparse tensors as coordinates and as compressed rows on the CPU",
    devices: ["cpu"],
    layouts: ["sparse_coo", "sparse_csr"],
    setup: |contents| {
        layout::learn_number()?;
        layout_csr::learn_number()?;
        contents.layout(&layout::API).layout_ops(&layout::OPS);
        contents.layout(&layout_csr::API).layout_ops(&layout_csr::OPS);
        Ok(())
    },
}

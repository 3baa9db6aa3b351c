//! Keyway's sparse tensors: the layouts `sparse_coo` and `sparse_csr` and their kernels on the CPU, a plugin.
//!
//! A tensor of coordinates (`sparse_coo`) has `sparse_dim` sparse dimensions, the first ones, and dense ones behind them. Its components are `indices`
//! (i64, `[sparse_dim, nnz]`) and `values` (`[nnz, dense sizes...]`), its attribute is `coalesced`: entries come in
//! row-major order, and each place once. Entries of one place are added up, whatever the op: a kernel of an op that is not
//! linear coalesces first.
//!
//! A matrix of compressed rows (`sparse_csr`) has the components `crow_indices` (i64, `[rows + 1]`), `col_indices` (i64,
//! `[nnz]`) and `values` (`[nnz]`), and no attribute: columns rise within each row, so that each place comes once.
//!
//! Decisions:
//! - a kernel reads compressed rows as coalesced coordinates (`Coo::read`), and what it gives is compressed if it is a matrix
//!   and no argument is coordinates. So every op of coordinates that takes matrices takes both, and mixed ones give
//!   coordinates. Where rows alone are needed, or the pattern stays, nothing is converted: products, `transpose`, functions of
//!   the values, conversions. Kernels of their own for each op would say everything twice;
//! - batches of matrices are coordinates of three dimensions: compressed rows that differ in their counts have no common shape;
//! - what is computed element by element on the stored values is computed by the op of that name on the component `values`,
//!   through the host: the kernels here know places, and the backend that serves strided tensors knows numbers. So every
//!   dtype that it serves is served here, with its accuracy and its speed. Kernels of their own for the values would be the
//!   CPU backend's mathematics a second time;
//! - an op of which no kernel is here is an error, as is a case that a kernel does not serve: nothing becomes strided on the
//!   way. The message names `to_dense()`;
//! - what is not stored counts as 0 in sums, means, norms and extremes, and as minus infinity in softmax. A stored 0 is an element
//!   like others: 0 times infinity is NaN where it is stored;
//! - sums that cancel stay as stored zeros, so that the pattern of a result depends on the patterns of the arguments alone;
//! - duplicates are added in the order of the entries, and work is cut by the count of entries alone, so that results have
//!   the same bits at any number of threads;
//! - kernels read indices through checked slices and check their range at each call, one pass of a few per cent: a component
//!   may have been changed in place since it was checked, and bad input never panics;
//! - a product with a strided operand is linear, so it takes entries as they come, several of one place among them, which is
//!   cheaper than to sort them. Where infinities meet that is another number than that of the place's sum: a result that
//!   is not finite is computed once more, of coalesced entries;
//! - a gradient is projected on the pattern of its tensor: each entry gets the gradient at its place, duplicates included.
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

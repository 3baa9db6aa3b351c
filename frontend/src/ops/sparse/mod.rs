//! Ops of sparse tensors; backends define the sparse layouts.

pub(crate) mod lines;

crate::ops::family! {
    coalesce,
    sampled_mm,
    sparse_mask,
    to_sparse,
    to_sparse_csr,
}

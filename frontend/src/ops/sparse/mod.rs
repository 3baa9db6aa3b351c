//! Ops of tensors that store some of their elements: which layouts there are, backends say.

pub(crate) mod lines;

crate::ops::family! {
    coalesce,
    sampled_mm,
    sparse_mask,
    to_sparse,
    to_sparse_csr,
}

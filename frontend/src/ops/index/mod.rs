//! Indexing, gather, scatter, sorting, padding and concatenation.

mod bags;
mod bincount;
mod block_diag;
mod fills;
mod geometry;
mod repeat_interleave;
mod runs;
mod segments;
mod take;

crate::ops::family! {
    #[allow(clippy::module_inception)]
    index,
    adam_rows,
    argsort,
    cat,
    constant_pad,
    embedding,
    embedding_bag,
    embedding_sparse,
    flip,
    gather,
    index_add,
    index_copy,
    index_put,
    index_reduce,
    index_select,
    isin,
    masked_fill,
    masked_scatter,
    masked_select,
    nonzero,
    one_hot,
    pad,
    repeat,
    roll,
    scatter,
    scatter_add,
    scatter_reduce,
    searchsorted,
    sort,
    stack,
    take_along_dim,
    tile,
    topk,
    unique,
}

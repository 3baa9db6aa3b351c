//! Ops that join, move and choose elements by their place.

mod bags;
mod geometry;

crate::ops::family! {
    adam_rows,
    argsort,
    cat,
    constant_pad,
    embedding,
    embedding_bag,
    embedding_sparse,
    flip,
    gather,
    #[allow(clippy::module_inception)]
    index,
    index_add,
    index_copy,
    index_put,
    index_select,
    masked_fill,
    masked_select,
    nonzero,
    one_hot,
    pad,
    repeat,
    roll,
    scatter,
    scatter_add,
    searchsorted,
    sort,
    stack,
    take_along_dim,
    tile,
    topk,
    unique,
}

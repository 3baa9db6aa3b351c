//! Tensors from a rule: lines and triangles. Those of one value are in [`crate::tensor`].

mod triangle;
mod triangle_indices;

crate::ops::family! {
    arange,
    eye,
    linspace,
    tril,
    triu,
}

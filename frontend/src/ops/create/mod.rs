//! Tensors filled by a formula: ranges and triangles. Constant tensors are in [`crate::tensor`].

mod triangle;
mod triangle_indices;

crate::ops::family! {
    arange,
    eye,
    linspace,
    tril,
    triu,
}

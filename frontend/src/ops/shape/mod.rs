//! Views: other sizes and strides over the same memory.

crate::ops::family! {
    expand,
    reshape,
    transpose,
    view,
}

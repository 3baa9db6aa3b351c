//! Views: other sizes and strides over the same memory.

crate::ops::family! {
    expand,
    transpose,
    view,
}

//! Attention.

crate::ops::family! {
    scaled_dot_product_attention,
}

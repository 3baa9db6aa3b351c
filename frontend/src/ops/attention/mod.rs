//! Attention.

mod scores;

crate::ops::family! {
    flash_attention,
    flash_attention_backward,
    scaled_dot_product_attention,
}

//! Normalisations.

crate::ops::family! {
    layer_norm,
    layer_norm_backward,
    log_softmax,
    softmax,
}

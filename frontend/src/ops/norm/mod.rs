//! Normalisations.

mod channels;

crate::ops::family! {
    batch_norm,
    channel_norm,
    group_norm,
    instance_norm,
    layer_norm,
    layer_norm_backward,
    log_softmax,
    rms_norm,
    softmax,
}

//! Normalization ops.

mod channels;
mod renorm;

crate::ops::family! {
    batch_norm,
    channel_norm,
    channel_norm_backward,
    channel_sums,
    cosine_similarity,
    frozen_norm,
    group_norm,
    group_norm_backward,
    instance_norm,
    layer_norm,
    layer_norm_backward,
    local_response_norm,
    log_softmax,
    log_softmax_backward,
    normalize,
    rms_norm,
    rms_norm_backward,
    softmax,
    softmax_backward,
}

//! Normalisations.

mod channels;

crate::ops::family! {
    batch_norm,
    channel_norm,
    channel_norm_backward,
    cosine_similarity,
    group_norm,
    instance_norm,
    layer_norm,
    layer_norm_backward,
    local_response_norm,
    log_softmax,
    normalize,
    rms_norm,
    softmax,
}

//! Copies and conversions, which preserve values up to rounding.

crate::ops::family! {
    clone,
    component,
    copy,
    fill,
    from_components,
    pin_memory,
    sparse_mask_like,
    to_device,
    to_dtype,
    to_layout,
}

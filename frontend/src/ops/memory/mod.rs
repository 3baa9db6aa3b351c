//! Copies and conversions, which preserve values up to rounding.

crate::ops::family! {
    clone,
    component,
    copy,
    fill,
    from_components,
    pin_memory,
    project_like,
    to_device,
    to_dtype,
    to_layout,
}

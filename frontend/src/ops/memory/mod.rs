//! Ops that move values without changing them, beyond rounding.

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

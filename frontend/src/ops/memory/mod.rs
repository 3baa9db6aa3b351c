//! Ops that move values without changing them, beyond rounding.

crate::ops::family! {
    clone,
    copy,
    fill,
    pin_memory,
    to_device,
    to_dtype,
    to_layout,
}

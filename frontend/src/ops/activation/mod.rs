//! Activations with parameters, gates or several pieces.

mod clipped;

crate::ops::family! {
    glu,
    glu_backward,
    prelu,
}

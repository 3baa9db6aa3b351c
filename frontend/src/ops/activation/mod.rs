//! Activations that are more than a function of each element.

mod clipped;

crate::ops::family! {
    glu,
    glu_backward,
    prelu,
}

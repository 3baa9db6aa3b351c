//! Activations that are more than a function of each element.

crate::ops::family! {
    glu,
    prelu,
}

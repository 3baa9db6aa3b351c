//! Ops that work on each element by itself.

crate::ops::family! {
    add,
    exp,
    gt,
    mul,
}

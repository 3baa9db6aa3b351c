//! Ops that make one number out of many.

crate::ops::family! {
    sum,
}

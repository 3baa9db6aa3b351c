//! Losses.

crate::ops::family! {
}

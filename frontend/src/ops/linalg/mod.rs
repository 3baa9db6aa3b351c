//! Products of matrices and vectors.

crate::ops::family! {
    mm,
}

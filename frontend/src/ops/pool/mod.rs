//! Pooling: the largest element or the mean under a window that moves over one to three spatial dimensions.

mod calls;
mod geometry;
mod options;

pub use options::{AvgPoolOptions, MaxPoolOptions};

crate::ops::family! {
    avg_pool,
    avg_pool_backward,
    max_pool,
    max_pool_backward,
}

//! Pooling: maximum, mean or power mean over a sliding window of one to three spatial dimensions.

mod adaptive;
mod calls;
mod geometry;
mod options;
mod unpool;

pub(crate) use adaptive::mean;
pub(crate) use geometry::{rank, sizes, spatial, with_spatial};
pub use options::{AvgPoolOptions, LpPoolOptions, MaxPoolOptions, MaxUnpoolOptions, OutputSize};

crate::ops::family! {
    adaptive_avg_pool,
    adaptive_avg_pool_backward,
    adaptive_max_pool,
    avg_pool,
    avg_pool_backward,
    lp_pool,
    max_pool,
    max_pool_backward,
    max_pool_values,
    max_unpool,
}

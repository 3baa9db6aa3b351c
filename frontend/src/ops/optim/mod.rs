//! Steps of optimisers: one call for all parameters, of which a backend may make one walk through memory or one launch.

mod lists;

pub(crate) use lists::go_together;

crate::ops::family! {
    adam_step,
    sgd_step,
}

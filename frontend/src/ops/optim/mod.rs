//! Optimizer steps: one call for all parameters, which a backend may serve with one pass over memory or one kernel launch.

mod lists;

pub(crate) use lists::go_together;

crate::ops::family! {
    adam_step,
    sgd_step,
}

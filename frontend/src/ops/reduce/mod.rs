//! Reductions and scans.

mod aminmax;
mod cases;
mod cumulative;
mod extremum;
mod forms;
mod histogram;
mod median;
mod mode;
pub mod quantile;
mod scan;
mod spread;
mod trapezoid;
mod truth;

crate::ops::family! {
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    cummax,
    cummin,
    cumprod,
    cumsum,
    diff,
    logcumsumexp,
    logsumexp,
    max,
    mean,
    min,
    nanmean,
    nansum,
    norm,
    prod,
    std,
    std_mean,
    sum,
    var,
    var_mean,
}

//! Ops that make one number out of many.

mod aminmax;
mod cases;
mod extremum;
mod forms;
mod median;
mod spread;
mod truth;

crate::ops::family! {
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumprod,
    cumsum,
    diff,
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

//! Ops that make one number out of many.

mod cases;
mod extremum;
mod spread;
mod truth;

crate::ops::family! {
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logsumexp,
    max,
    mean,
    min,
    norm,
    prod,
    std,
    sum,
    var,
}

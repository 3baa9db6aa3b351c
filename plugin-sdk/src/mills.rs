//! Polynomials of the Mills ratio of the normal distribution, for the derivative of `gelu` and for `erfc`.
//!
//! The Mills ratio `M(x) = (1 - Phi(x)) / phi(x)` is the upper tail of the standard normal distribution divided by its
//! density (J. P. Mills, "Table of the ratio", Biometrika 18, 1926). The polynomials approximate `(x + 4) M(x)` in powers
//! of `1 - 8 / (x + 4)`. They are least-squares fits, weighted by the density up to where the relative error of the
//! derivative of `gelu` is significant, and reweighted until their errors are equal (Lawson's algorithm).

/// For `x` from 0 to 39, with f64 precision.
pub const WIDE: [f64; 19] = [
    1.893219063308471,
    -1.523770910820876,
    0.9704095548672615,
    -0.46754096294404507,
    0.15139176243728011,
    -0.018900451716919175,
    -0.00872229816115641,
    0.004087860106788824,
    0.00033426935197295793,
    -0.0005792686411135669,
    -4.882391611356492e-06,
    8.801618906687895e-05,
    1.9853413961421496e-06,
    -1.456379347116027e-05,
    -1.7023386207832722e-06,
    2.1600968678056618e-06,
    5.906908366483363e-07,
    -1.4688391603613058e-07,
    -6.225144644464261e-08,
];

/// For `x` from 0 to 14.5, with f32 precision.
pub const NARROW: [f64; 9] = [
    1.8932189,
    -1.5237719,
    0.9704165,
    -0.46750197,
    0.15137668,
    -0.019187145,
    -0.009032296,
    0.004485247,
    0.0013009992,
];

/// `(x + 4) e^(x^2) erfc(x)` in powers of `(x - 4) / (x + 4)`, for `x` from 0 to 28: interpolated at the zeros of a Chebyshev
/// polynomial with weights of relative errors, at most 5.5e-16.
pub const SCALED: [f64; 21] = [
    1.095995661000491,
    -0.9765487290808864,
    0.7732087022652312,
    -0.5408538313128007,
    0.3308515878783134,
    -0.17401093725244177,
    0.07638151490204452,
    -0.02637005317568621,
    0.00611205575389842,
    -0.00028096004828847605,
    -0.0004550534645094846,
    0.00017681785329035966,
    -3.6314238931910024e-06,
    -1.887396165570362e-05,
    4.683431327222623e-06,
    1.4445805985487228e-06,
    -8.268845944455933e-07,
    -9.314264318554981e-08,
    1.0506935915995339e-07,
    7.461551723360206e-09,
    -6.606630030954918e-09,
];

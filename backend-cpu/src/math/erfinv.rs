//! The inverse of the error function: the quantile of `(1 + x) / 2` by the square root of 2. The rational functions are those of
//! M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37, 1988.

use super::log::{log_f32, log_f64};
use super::{polynomial_f32, polynomial_f64};
use std::f64::consts::FRAC_1_SQRT_2;

/// Up to here the middle of the distribution is meant.
const MIDDLE_ENDS: f64 = 0.85;
/// Numerator and denominator: in the middle, of `0.180625 - (x / 2)^2`.
const MIDDLE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];
/// Outside, of the depth less 1.6: the root of the logarithm of the share that lies beyond.
const OUTSIDE: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        0.000_774_545_014_278_341_4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        0.000_547_593_808_499_534_5,
        1.050_750_071_644_416_9e-09,
    ],
];
/// From a depth of 5 on, of the depth less 5: no number of f32 below 1 lies there.
const TAIL: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-05,
        2.010_334_399_292_288_1e-07,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        0.000_786_869_131_145_613_3,
        1.846_318_317_510_054_8e-05,
        1.421_511_758_316_446e-07,
        2.044_263_103_389_939_7e-15,
    ],
];

/// The coefficients in f32.
const fn short(of: [[f64; 8]; 2]) -> [[f32; 8]; 2] {
    let mut to = [[0.0; 8]; 2];
    let mut i = 0;
    while i < 16 {
        to[i / 8][i % 8] = of[i / 8][i % 8] as f32;
        i += 1;
    }
    to
}
const MIDDLE32: [[f32; 8]; 2] = short(MIDDLE);
const OUTSIDE32: [[f32; 8]; 2] = short(OUTSIDE);

/// The inverse of the error function, at most 6 ulp; infinity at 1, NaN beyond.
#[inline(always)]
pub fn erfinv_f32(x: f32) -> f32 {
    let size = x.abs();
    let quotient = |x: f32, of: &[[f32; 8]; 2]| polynomial_f32(x, &of[0]) / polynomial_f32(x, &of[1]);
    let middle = quotient(0.180_625 - 0.25 * x * x, &MIDDLE32) * (0.5 * FRAC_1_SQRT_2) as f32 * x;
    let depth = (-log_f32((1.0 - size) * 0.5)).sqrt();
    let outside = quotient(depth - 1.6, &OUTSIDE32) * FRAC_1_SQRT_2 as f32;
    let outside = if size == 1.0 { f32::INFINITY } else { outside };
    if size <= MIDDLE_ENDS as f32 { middle } else { outside.copysign(x) }
}

/// The inverse of the error function, to 16 digits; infinity at 1, NaN beyond.
#[inline(always)]
pub fn erfinv_f64(x: f64) -> f64 {
    let size = x.abs();
    let quotient = |x: f64, of: &[[f64; 8]; 2]| polynomial_f64(x, &of[0]) / polynomial_f64(x, &of[1]);
    let middle = quotient(0.180_625 - 0.25 * x * x, &MIDDLE) * (0.5 * FRAC_1_SQRT_2) * x;
    let depth = (-log_f64((1.0 - size) * 0.5)).sqrt();
    let (near, far) = (quotient(depth - 1.6, &OUTSIDE), quotient(depth - 5.0, &TAIL));
    let outside = if depth <= 5.0 { near } else { far } * FRAC_1_SQRT_2;
    let outside = if size == 1.0 { f64::INFINITY } else { outside };
    if size <= MIDDLE_ENDS { middle } else { outside.copysign(x) }
}

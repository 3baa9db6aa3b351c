//! `erfinv`

use super::gamma::{operand, polynomial};
use crate::error::Result;
use crate::ops::composite::{cast, one};
use crate::ops::def::{Derivative, Facts, OpDef};
use crate::ops::sample::{Fill, Sample, sample, tensor, unary};
use crate::ops::{forms, rules};
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Args, Decomposition, Part};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

forms! {
    /// The number whose error function each element is: infinite at 1 and -1, NaN beyond. Integers become f32.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// let x = Tensor::new([0.0f32, 1.0])?.erfinv()?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the backend reports.
    pub fn erfinv(&self), in_place: erfinv_, out: erfinv_out, on: 0.5;
}

/// Numerators and denominators of the rational approximations of the normal distribution's quantiles by M. J. Wichura,
/// "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37, 1988: in the middle, between
/// there and a tail of e^-25, and in the tail.
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

fn quotient(x: &Tensor, [above, below]: [[f64; 8]; 2]) -> Result<Tensor> {
    polynomial(x, above)?.div(&polynomial(x, below)?)
}

/// The quantile of `(1 + x) / 2` by the square root of 2. The share of the tail, `(1 - |x|) / 2`, is exact.
fn compose(args: &Args<'_>) -> Result<Tensor> {
    let (x, dtype) = operand(args)?;
    let size = x.abs()?;
    let middle = quotient(&x.square()?.mul(-0.25)?.add(0.180_625)?, MIDDLE)?.mul(&x)?.mul(0.5)?;
    let depth = size.rsub(1)?.mul(0.5)?.log()?.neg()?.sqrt()?;
    let mut outside = quotient(&depth.sub(1.6)?, OUTSIDE)?;
    // No number of f32 that is below 1 lies deeper.
    if x.dtype() == DType::F64 {
        outside = depth.le(5)?.where_cond(&outside, &quotient(&depth.sub(5)?, TAIL)?)?;
    }
    let outside = size.eq(1)?.where_cond(f64::INFINITY, &outside)?;
    let outside = x.lt(0)?.where_cond(&outside.neg()?, &outside)?;
    let made = size.le(0.85)?.where_cond(&middle, &outside)?.mul(FRAC_1_SQRT_2)?;
    // Beyond 1 there is no logarithm, and a sign of NaN is none.
    cast(made, dtype)
}

fn samples() -> Vec<Sample> {
    let mut samples = unary(-0.95, 0.95);
    let ends = vec![1.0, -1.0, 0.0, -0.0, 0.999, -0.85, 1.5, -2.0];
    samples.push(Sample { smooth: false, ..sample([tensor(&[8], Fill::Values(ends))]) });
    samples
}

/// `erfinv`
pub static DEF: OpDef = OpDef::unary(
    "erfinv(Tensor self) -> Tensor",
    rules::unary_float,
    Derivative::of_output(|b, g| {
        g.set(0, || b.grad(0)?.mul(&b.output(0)?.square()?.exp()?.mul(1.0 / FRAC_2_SQRT_PI)?))
    }),
)
.samples(samples)
.with(Facts::KEEPS_ZERO)
.decomposed(Decomposition {
    run: |args| one(compose(args)),
    parts: &[
        Part::widened("abs"),
        Part::widened("add"),
        Part::widened("div"),
        Part::widened("eq"),
        Part::widened("fill"),
        Part::widened("le"),
        Part::widened("log"),
        Part::widened("lt"),
        Part::widened("mul"),
        Part::widened("neg"),
        Part::widened("sqrt"),
        Part::widened("square"),
        Part::widened("sub"),
        Part::widened("to_dtype"),
        Part::widened("where"),
        Part::new("to_dtype"),
    ],
});

//! What the logarithm of the gamma function and its derivatives share: polynomials between 1 and 2, recurrences from there, and
//! Stirling's series for large numbers.
//!
//! Sources: the recurrences, series and reflections are those of NIST's "Digital Library of Mathematical Functions", 5.5, 5.11 and
//! 5.15. The polynomials interpolate at Chebyshev's points what was computed with 60 digits. They are of quotients that are far
//! from 0, so that results keep their digits where the functions cross 0: at 1, at 2 and at [`ROOT`].

use crate::error::Result;
use crate::ops::composite::{cast, tensor, widened};
use crate::ops::rules::float_of;
use crate::{DType, Tensor};
use keyway_dispatcher::op::{Args, Part};
use std::f64::consts::PI;

/// The ops that `lgamma` and `digamma` are composed of.
pub(super) const PARTS: &[Part] = &[
    Part::widened("abs"),
    Part::widened("add"),
    Part::widened("div"),
    Part::widened("eq"),
    Part::widened("fill"),
    Part::widened("floor"),
    Part::widened("gt"),
    Part::widened("le"),
    Part::widened("log"),
    Part::widened("lt"),
    Part::widened("mul"),
    Part::widened("neg"),
    Part::widened("reciprocal"),
    Part::widened("round"),
    Part::widened("sin"),
    Part::widened("square"),
    Part::widened("sub"),
    Part::widened("to_dtype"),
    Part::widened("where"),
    Part::new("to_dtype"),
    Part::fixed("logical_and", DType::BOOL),
];

/// `log(gamma(x)) / ((x - 1) (x - 2))` for `x` from 1 to 2 in powers of `2 x - 3`, up to 9e-18 of it.
const LOG_WIDE: [f64; 21] = [
    0.483_128_950_540_980_9,
    -0.072_979_947_957_152_97,
    0.015_727_850_268_641_21,
    -0.003_913_560_937_631_659,
    0.001_049_818_664_450_871_8,
    -0.000_294_550_701_400_926_5,
    8.510_090_378_468_051e-05,
    -2.509_432_984_849_446e-05,
    7.511_391_531_729_657_6e-06,
    -2.274_240_971_132_041e-06,
    6.948_440_187_550_096e-07,
    -2.138_843_561_161_159e-07,
    6.623_601_939_725_099e-08,
    -2.057_761_163_373_013e-08,
    6.434_152_357_291_201e-09,
    -2.073_282_784_239_821_4e-09,
    6.533_268_528_434_416e-10,
    -1.639_381_600_999_890_3e-10,
    5.181_989_844_944_36e-11,
    -3.533_898_162_275_879e-11,
    1.127_335_495_516_504_8e-11,
];

/// The same up to 4e-9, for f32.
const LOG_NARROW: [f64; 10] = [
    0.483_128_952_280_385_5,
    -0.072_979_948_494_032_47,
    0.015_727_763_465_079_11,
    -0.003_913_534_145_648_777_5,
    0.001_050_506_109_198_335_6,
    -0.000_294_762_858_716_007_06,
    8.321_862_486_648_516e-05,
    -2.451_356_571_883_962e-05,
    9.557_596_313_288_895e-06,
    -2.905_242_852_889_400_4e-06,
];

/// `digamma(x) / (x - ROOT)` for `x` from 1 to 2 in powers of `2 x - 3`, up to 2e-17 of it.
const SLOPE_WIDE: [f64; 22] = [
    0.951_055_876_031_833,
    -0.211_813_710_640_730_26,
    0.060_135_621_060_193_55,
    -0.018_550_615_381_738_605,
    0.005_936_795_278_433_826,
    -0.001_935_066_664_783_266_7,
    0.000_636_888_028_319_074,
    -0.000_210_748_412_157_330_07,
    6.995_020_484_160_625e-05,
    -2.325_823_828_431_376e-05,
    7.741_156_881_253_708e-06,
    -2.578_107_848_270_217e-06,
    8.591_324_222_417_666e-07,
    -2.862_875_528_003_868_6e-07,
    9.500_926_192_924_096e-08,
    -3.166_618_072_027_162e-08,
    1.103_708_843_885_43e-08,
    -3.678_886_818_364_554_5e-09,
    8.668_257_373_761_658e-10,
    -2.889_363_639_216_111e-10,
    2.476_547_444_003_176_4e-10,
    -8.255_129_720_081_04e-11,
];

/// The same up to 4e-9, for f32.
const SLOPE_NARROW: [f64; 11] = [
    0.951_055_876_031_832_8,
    -0.211_813_748_737_645_33,
    0.060_135_633_753_744_06,
    -0.018_549_857_673_541_014,
    0.005_936_542_817_179_836,
    -0.001_939_249_387_065_373_6,
    0.000_638_281_667_825_382_9,
    -0.000_201_460_028_369_254_25,
    6.685_542_578_011_98e-05,
    -3.197_972_706_117_315_5e-05,
    1.064_705_925_055_927_2e-05,
];

/// Where `digamma` is 0 above 0, and what the f64 next to it leaves out.
const ROOT: (f64, f64) = (1.461_632_144_968_362_2, 9.549_995_429_965_697e-17);

/// Numbers from here on take the series.
const LARGE: f64 = 9.0;

/// Bernoulli's numbers of even index, from the second on.
const BERNOULLI: [f64; 10] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43_867.0 / 798.0,
    -174_611.0 / 330.0,
];

/// The argument in the float dtype of the computation, f16 and bf16 as f32, and the dtype of the result.
pub(super) fn operand(args: &Args<'_>) -> Result<(Tensor, DType)> {
    let t = tensor(args, 0)?;
    let dtype = float_of(t.dtype());
    Ok((widened(&cast(t, dtype)?)?, dtype))
}

/// A polynomial by its coefficients, that of the lowest power first.
pub(super) fn polynomial(x: &Tensor, coefficients: impl IntoIterator<Item = f64>) -> Result<Tensor> {
    let all: Vec<f64> = coefficients.into_iter().collect();
    let mut made: Option<Tensor> = None;
    for &c in all.iter().rev() {
        made = Some(match made {
            Some(sum) => sum.mul(x)?.add(c)?,
            None => x.full_like(c)?,
        });
    }
    made.map_or_else(|| x.zeros_like(), Ok)
}

/// How many terms of the series the dtype has digits for.
fn terms(dtype: DType) -> usize {
    if dtype == DType::F64 { BERNOULLI.len() } else { 4 }
}

/// Of numbers above 0 and below [`LARGE`] the one between 1 and 2 that lies a whole number below, if they are above 2, and a sum
/// over those in between: `join` of the sum so far and each of them.
fn lowered(x: &Tensor, start: f64, join: fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<(Tensor, Tensor)> {
    let (mut near, mut sum) = (x.clone(), x.full_like(start)?);
    for _ in 2..LARGE as usize + 1 {
        let (above, less) = (near.gt(2)?, near.sub(1)?);
        sum = above.where_cond(&join(&sum, &less)?, &sum)?;
        near = above.where_cond(&less, &near)?;
    }
    Ok((near, sum))
}

/// `log(gamma(x))` of numbers above 0.
pub(super) fn log_gamma_above_0(x: &Tensor) -> Result<Tensor> {
    let (near, product) = lowered(x, 1.0, |product, factor| product.mul(factor))?;
    // With `u` from 0 to 1 the logarithm for `1 + u` is `u (u - 1)` times the polynomial; all differences are exact.
    let below = x.lt(1)?;
    let u = below.where_cond(x, &near.sub(1)?)?;
    let wide = x.dtype() == DType::F64;
    let list: &[f64] = if wide { &LOG_WIDE } else { &LOG_NARROW };
    let inner = u.mul(&u.sub(1)?)?.mul(&polynomial(&u.add(&u)?.sub(1)?, list.iter().copied())?)?;
    let log = x.log()?;
    let small = inner.add(&below.where_cond(&log.neg()?, &product.log()?)?)?;

    let inverse = x.reciprocal()?;
    let coefficient = |(k, b): (usize, &f64)| b / ((2 * k + 2) * (2 * k + 1)) as f64;
    let series = BERNOULLI.iter().enumerate().take(terms(x.dtype())).map(coefficient);
    let series = polynomial(&inverse.square()?, series)?.mul(&inverse)?;
    // Half the logarithm of 2 pi, less a half.
    let large = x.sub(0.5)?.mul(&log.sub(1)?)?.add(&series.add(0.418_938_533_204_672_7)?)?;
    x.lt(LARGE)?.where_cond(&small, &large)
}

/// `digamma(x)` of numbers above 0.
pub(super) fn digamma_above_0(x: &Tensor) -> Result<Tensor> {
    let (near, sum) = lowered(x, 0.0, |sum, term| sum.add(&term.reciprocal()?))?;
    let wide = x.dtype() == DType::F64;
    let (root, rest) = if wide {
        ROOT
    } else {
        let narrow = f64::from(ROOT.0 as f32);
        (narrow, ROOT.0 - narrow)
    };
    let (list, below): (&[f64], _) = (if wide { &SLOPE_WIDE } else { &SLOPE_NARROW }, x.lt(1)?);
    // Below 1 the polynomial is of `x + 1`, whose rounding would be seen.
    let distance = below.where_cond(&x.sub(root - 1.0)?, &near.sub(root)?)?.sub(rest)?;
    let u = below.where_cond(x, &near.sub(1)?)?;
    let inner = polynomial(&u.add(&u)?.sub(1)?, list.iter().copied())?.mul(&distance)?;
    let inverse = x.reciprocal()?;
    let small = inner.add(&below.where_cond(&inverse.neg()?, &sum)?)?;

    let coefficient = |(k, b): (usize, &f64)| -b / (2 * k + 2) as f64;
    let series = BERNOULLI.iter().enumerate().take(terms(x.dtype())).map(coefficient);
    let square = inverse.square()?;
    let series = polynomial(&square, series)?.mul(&square)?;
    let large = x.log()?.sub(&inverse.mul(0.5)?)?.add(&series)?;
    x.lt(LARGE)?.where_cond(&small, &large)
}

/// The sine of pi times the distance from the nearest whole number, 0 or above.
pub(super) fn sine(x: &Tensor) -> Result<Tensor> {
    x.sub(&x.round()?)?.abs()?.mul(PI)?.sin()
}

/// The cotangent of pi times `x`, infinite at whole numbers. Near its zeros it is a sine, which keeps its digits there.
pub(super) fn cotangent(x: &Tensor) -> Result<Tensor> {
    let r = x.sub(&x.round()?)?;
    let size = r.abs()?;
    let made = size.rsub(0.5)?.mul(PI)?.sin()?.div(&size.mul(PI)?.sin()?)?;
    r.lt(0)?.where_cond(&made.neg()?, &made)
}

/// Whether each element is a whole number and not above 0: where the gamma function is infinite. Minus infinity is one.
pub(super) fn is_pole(x: &Tensor) -> Result<Tensor> {
    x.le(0)?.logical_and(&x.eq(&x.floor()?)?)
}

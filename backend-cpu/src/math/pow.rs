//! `pow`.
//!
//! In f32 a block is looked at first: where all bases are positive normal numbers and no result is far beyond f32, the special cases are left out. The arithmetic of the others is the same, so a value does not depend on
//! its neighbours. The loops of f32 and of f64 are apart, so that the first take as many elements at once as f32 allows.

use super::exp::bound_f64;
use super::log::{split_f32, split_normal_f32};
use super::{fma_f64, polynomial_f64};

/// `1.5 * 2^52`: adding it leaves a rounded integer in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Beyond this exponent of 2 all is 0 or infinity in f32.
const LARGEST: f32 = 200.0;

/// `log2(1 + f) / f` for `1 + f` within `sqrt(1/2) .. sqrt(2)` to 2^-35, for results that become f32.
const LOG2: [f64; 13] = [
    1.4426950408708794,
    -0.7213475209631551,
    0.48089836017624593,
    -0.3606736553159397,
    0.2885373943787391,
    -0.24045433696411458,
    0.20617283226753289,
    -0.1802710257712851,
    0.15878356832499568,
    -0.14349039375114367,
    0.1449505299974389,
    -0.1414478821133463,
    0.07553790398947319,
];

/// `(2^r - 1) / r` for `|r| <= 1/2`, error 2^-27 of `2^r`.
const EXP2: [f64; 6] = [
    0.6931471880262288,
    0.24022650760568126,
    0.055503571142190775,
    0.009618082557277844,
    0.0013390863364671239,
    0.00015453162945122594,
];

/// `y (e + log2(1 + f))`
#[inline(always)]
fn product(f: f32, e: f32, y: f32) -> f64 {
    let f = f64::from(f);
    f64::from(y) * fma_f64(f, polynomial_f64(f, &LOG2), f64::from(e))
}

/// `2^p` for `|p| <= LARGEST`; 0 or infinity where that is beyond f32.
#[inline(always)]
fn exp2(p: f64) -> f32 {
    let t = p + ROUND;
    let r = p - (t - ROUND);
    let fraction = fma_f64(r, polynomial_f64(r, &EXP2), 1.0);
    // The whole part goes to the exponent; of `t` it is in the low bits, and nothing else is.
    f64::from_bits(fraction.to_bits().wrapping_add(t.to_bits() << 52)) as f32
}

/// `x^y`, at most 1 ulp, with the special cases of IEEE 754 `pow`.
#[inline(always)]
pub fn pow_f32(x: f32, y: f32) -> f32 {
    let magnitude = x.abs();
    let (f, e) = split_f32(magnitude);
    // The logarithm of zero, of infinity and of NaN.
    let e = if magnitude == 0.0 { f32::NEG_INFINITY } else { e };
    let e = if magnitude < f32::INFINITY { e } else { magnitude };
    let power = exp2(bound_f64(product(f, e, y), -f64::from(LARGEST), f64::from(LARGEST)));
    let power = if magnitude == 1.0 && !y.is_nan() { 1.0 } else { power };

    let integer = y.trunc() == y;
    let half = 0.5 * y;
    let odd = integer & (half.trunc() != half);
    let negative = x.is_sign_negative();
    let signed = if negative & odd { -power } else { power };
    let undefined = (x < 0.0) & !integer & (magnitude != f32::INFINITY);
    let value = if undefined { f32::NAN } else { signed };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { value }
}

/// Elements that are looked at together.
const BLOCK: usize = 64;

/// `out = x^y` for each element; see [`pow_f32`].
pub fn pow_slice_f32(x: &[f32], y: &[f32], out: &mut [f32]) {
    let ((xs, x), (ys, y)) = (x.as_chunks::<BLOCK>(), y.as_chunks::<BLOCK>());
    let (outs, out) = out.as_chunks_mut::<BLOCK>();
    xs.iter().zip(ys).zip(outs).for_each(|((x, y), out)| pow_block(x, y, out));
    x.iter().zip(y).zip(out).for_each(|((x, y), out)| *out = pow_f32(*x, *y));
}

#[inline(always)]
fn pow_block(x: &[f32; BLOCK], y: &[f32; BLOCK], out: &mut [f32; BLOCK]) {
    let (mut f, mut e, mut special) = ([0.0; BLOCK], [0.0; BLOCK], 0u32);
    for i in 0..BLOCK {
        (f[i], e[i]) = split_normal_f32(x[i]);
        // `|log2 x|` is at most `|e| + 1`.
        let moderate = (e[i].abs() + 1.0) * y[i].abs() <= LARGEST;
        special |= u32::from(!(moderate & (x[i] >= f32::MIN_POSITIVE) & (x[i] < f32::INFINITY)));
    }
    if special == 0 {
        for i in 0..BLOCK {
            out[i] = exp2(product(f[i], e[i], y[i]));
        }
    } else {
        for i in 0..BLOCK {
            out[i] = pow_f32(x[i], y[i]);
        }
    }
}

/// `x^y` by the system's function: a vector form needs a logarithm of twice the precision.
#[inline(always)]
pub fn pow_f64(x: f64, y: f64) -> f64 {
    x.powf(y)
}

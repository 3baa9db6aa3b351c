//! Compares f32 functions with f64 ones over a sample of all bit patterns, and f64 functions with a table of exact values
//! (`facts.txt`: function, arguments, value, and rounding error of the value, as bits).

use super::*;

/// One of this number of bit patterns is tested; the stride is odd, so that every mantissa bit varies.
const STRIDE: usize = if cfg!(debug_assertions) { 97 * 61 } else { 97 };

/// Error in ULP of the exact value's binade.
fn ulps_f32(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got.is_nan() && exact.is_nan() {
        return 0.0;
    }
    if got == rounded {
        // The sign of zero counts.
        return if got == 0.0 && got.is_sign_negative() != exact.is_sign_negative() { 1e9 } else { 0.0 };
    }
    if !got.is_finite() || !rounded.is_finite() {
        // One step beyond the largest finite value is one ulp; any other infinity is wrong.
        let nearest = got.abs().max(rounded.abs()) == f32::INFINITY
            && got.abs().min(rounded.abs()) == f32::MAX
            && got.is_sign_negative() == rounded.is_sign_negative();
        return if nearest { 1.0 } else { f64::INFINITY };
    }
    let exponent = (exact.abs().log2().floor() as i32).max(-126);
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 23)
}

fn worst_f32(name: &str, bound: f64, f: fn(f32) -> f32, exact: fn(f64) -> f64) {
    let (mut worst, mut at) = (0.0, 0.0);
    let specials = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, f32::MAX, f32::MIN, f32::INFINITY];
    let specials = specials.into_iter().chain([f32::NEG_INFINITY, f32::NAN, 1e-45, -1e-45]);
    let sample = (0..=u32::MAX).step_by(STRIDE).map(f32::from_bits);
    for x in specials.chain(sample) {
        let error = ulps_f32(f(x), exact(f64::from(x)));
        if error > worst {
            (worst, at) = (error, x);
        }
    }
    println!("{name}_f32: {worst:.3} ulp at {at:e}");
    assert!(worst <= bound, "{name}_f32({at:e}) = {:e}: {worst} ulp", f(at));
}

#[test]
fn exponentials_f32() {
    worst_f32("exp", 1.0, exp_f32, f64::exp);
    worst_f32("expm1", 2.0, expm1_f32, f64::exp_m1);
    worst_f32("sigmoid", 2.0, sigmoid_f32, |x| 1.0 / (1.0 + (-x).exp()));
}

#[test]
fn shares_are_exponentials_down_to_where_they_are_0() {
    let share = |x: f32| if x <= 0.0 || x.is_nan() { exp_share_f32(x) } else { 1.0 };
    let exact = |x: f64| match x {
        x if x > 0.0 => 1.0,
        x if x < -87.0 => 0.0,
        x => x.exp(),
    };
    worst_f32("exp_share", 1.0, share, exact);
    for i in 0..70_800 {
        let x = -f64::from(i) / 100.0;
        let (got, near) = (exp_share_f64(x), x.exp());
        assert!(
            (got - near).abs() <= 2.0 * f64::EPSILON * near,
            "exp_share_f64({x}) = {got:e}, not {near:e}"
        );
    }
    assert_eq!([exp_share_f64(-708.5), exp_share_f64(f64::NEG_INFINITY)], [0.0; 2]);
    assert!(exp_share_f64(f64::NAN).is_nan());
}

#[test]
fn logarithms_f32() {
    worst_f32("log", 1.0, log_f32, f64::ln);
    worst_f32("log1p", 2.0, log1p_f32, f64::ln_1p);
    worst_f32("log2", 2.0, log2_f32, f64::log2);
    worst_f32("log10", 2.0, log10_f32, f64::log10);
}

#[test]
fn inverse_of_the_error_function() {
    worst_f32("erfinv", 6.0, erfinv_f32, erfinv_f64);
    // From a table with 70 digits.
    for (x, exact) in [
        (0.5, 0.476_936_276_204_469_9),
        (-0.5, -0.476_936_276_204_469_9),
        (1e-300, 8.862_269_254_527_58e-301),
        (0.9, 1.163_087_153_676_674),
        (1.0 - 1e-10, 4.572_824_958_544_925),
    ] {
        let got = erfinv_f64(x);
        assert!(
            (got - exact).abs() <= 8.0 * f64::EPSILON * exact.abs(),
            "erfinv({x}) = {got:e}, not {exact:e}"
        );
    }
    for i in -849..850 {
        let x = f64::from(i) / 1000.0;
        assert!((erf_f64(erfinv_f64(x)) - x).abs() <= 2e-15, "{x}");
    }
    assert_eq!([erfinv_f64(1.0), erfinv_f64(-1.0)], [f64::INFINITY, f64::NEG_INFINITY]);
    assert!(erfinv_f64(1.5).is_nan() && erfinv_f32(-2.0).is_nan() && erfinv_f32(f32::NAN).is_nan());
    assert_eq!(erfinv_f32(-0.0).to_bits(), (-0.0f32).to_bits());
}

/// Bounds: above 0 in ULP of the value; below 0, where the functions have a zero between any two integers, in ULP of at
/// least 1.
#[test]
fn gamma_functions() {
    // Error bounds in f64 above and below 0, and in f32.
    type Row = (&'static str, fn(f64) -> f64, fn(f32) -> f32, [f64; 4]);
    let rows: [Row; 3] = [
        ("lgamma", lgamma_f64, lgamma_f32, [4.0, 4.0, 4.0, 8.0]),
        ("digamma", digamma_f64, digamma_f32, [4.0, 4.0, 4.0, 16.0]),
        ("trigamma", trigamma_f64, trigamma_f32, [4.0; 4]),
    ];
    for (name, wide, narrow, bounds) in rows {
        let mut worst = [(0.0, 0.0); 4];
        // Records the difference from the exact value, in units of this size.
        let mut note = |at: usize, x: f64, difference: f64, size: f64| {
            let error = if difference == 0.0 { 0.0 } else { difference.abs() / size };
            if error > worst[at].0 || error.is_nan() {
                worst[at] = (error, x);
            }
        };
        for (_, [x, _, value, rest]) in facts().filter(|(n, _)| *n == name) {
            let least = if x < 0.0 { 1.0f64 } else { 0.0 };
            note(usize::from(x < 0.0), x, (wide(x) - value) - rest, value.abs().max(least) * f64::EPSILON);
        }
        for i in 1..60_000 {
            let x = (i as f32 / 4096.0).powi(if i % 3 == 0 { 3 } else { 1 });
            for x in [x, -x] {
                if x < 0.0 && x == x.round() {
                    continue;
                }
                let exact = wide(f64::from(x));
                let least = if x < 0.0 { 1.0f64 } else { 0.0 };
                let unit = exact.abs().max(least) * f64::from(f32::EPSILON);
                note(2 + usize::from(x < 0.0), f64::from(x), f64::from(narrow(x)) - exact, unit);
            }
        }
        println!("{name}: {worst:?}");
        for ((error, x), bound) in worst.into_iter().zip(bounds) {
            assert!(error <= bound, "{name}({x:e}): {error} ulp");
        }
    }
    let whole = [0.0, -0.0, -1.0, -2.0, -1e300, f64::NEG_INFINITY];
    assert_eq!(whole.map(lgamma_f64), [f64::INFINITY; 6]);
    assert_eq!(whole.map(|x| lgamma_f32(x as f32)), [f32::INFINITY; 6]);
    assert_eq!(whole[..5].iter().map(|x| trigamma_f64(*x)).collect::<Vec<_>>(), [f64::INFINITY; 5]);
    assert!(trigamma_f64(f64::NEG_INFINITY).is_nan() && trigamma_f32(f32::NEG_INFINITY).is_nan());
    assert_eq!([digamma_f64(0.0), digamma_f64(-0.0)], [f64::NEG_INFINITY, f64::INFINITY]);
    assert!(whole[2..].iter().all(|x| digamma_f64(*x).is_nan() && digamma_f32(*x as f32).is_nan()));
    let ends = [lgamma_f64, digamma_f64, trigamma_f64].map(|f| f(f64::INFINITY));
    assert_eq!(ends, [f64::INFINITY, f64::INFINITY, 0.0]);
    assert_eq!([lgamma_f32(3e38), lgamma_f32(1.0), lgamma_f32(2.0)], [f32::INFINITY, 0.0, 0.0]);
    assert!([lgamma_f64, digamma_f64, trigamma_f64].iter().all(|f| f(f64::NAN).is_nan()));
}

#[test]
fn trigonometry_f32() {
    worst_f32("sin", 2.0, sin_f32, f64::sin);
    worst_f32("cos", 2.0, cos_f32, f64::cos);
    worst_f32("tan", 2.0, tan_f32, f64::tan);
}

#[test]
fn inverse_trigonometry_f32() {
    worst_f32("asin", 2.0, asin_f32, f64::asin);
    worst_f32("acos", 2.0, acos_f32, f64::acos);
    worst_f32("atan", 2.0, atan_f32, f64::atan);
}

#[test]
fn hyperbolic_f32() {
    worst_f32("sinh", 1.0, sinh_f32, f64::sinh);
    worst_f32("cosh", 1.0, cosh_f32, f64::cosh);
    worst_f32("tanh", 2.0, tanh_f32, f64::tanh);
}

#[test]
fn inverse_hyperbolic_f32() {
    // The standard library's asinh and atanh are inaccurate for some arguments; ours in f64 are checked against the table.
    worst_f32("asinh", 3.0, asinh_f32, asinh_f64);
    worst_f32("acosh", 3.0, acosh_f32, acosh_f64);
    worst_f32("atanh", 2.0, atanh_f32, atanh_f64);
}

#[test]
fn error_function_f32() {
    worst_f32("erf", 2.0, erf_f32, erf_f64);
}

/// Digits by mpmath.
#[test]
fn complementary_error_function() {
    for (x, exact) in [
        (0.5, 0.4795001221869535),
        (2.0, 0.004677734981047266),
        (8.0, 1.1224297172982926e-29),
        (25.0, 8.300172571196523e-274),
        (-1.5, 1.9661051464753108),
    ] {
        let got = erfc_f64(x);
        assert!((got - exact).abs() <= 1.5e-15 * exact, "erfc({x}) = {got:e}, not {exact:e}");
    }
    assert_eq!(
        [erfc_f64(f64::INFINITY), erfc_f64(f64::NEG_INFINITY), f64::from(erfc_f32(0.0))],
        [0.0, 2.0, 1.0]
    );
    assert!(erfc_f64(f64::NAN).is_nan());
}

#[test]
fn normal_distribution_f32() {
    let mut x = -8.0f32;
    while x < 8.0 {
        let (got, exact) = (f64::from(normal_f32(x)), normal_f64(f64::from(x)));
        assert!((got - exact).abs() <= 1e-7, "normal_f32({x}) = {got}");
        // Below -3 the f64 reference itself loses relative precision.
        assert!(x < -3.0 || (got / exact - 1.0).abs() <= 4e-6, "normal_f32({x}) = {got}");
        x += 1.0 / 4096.0;
    }
    let ends = [f32::NEG_INFINITY, f32::MIN, -0.0, f32::MAX, f32::INFINITY, f32::NAN];
    assert_eq!(ends.map(normal_f32), [0.0, 0.0, 0.5, 1.0, 1.0, 0.0]);
}

/// Without fused multiply-add, the rounding error of the square dominates in the lower tail; near the root, cancellation of
/// the addends.
#[test]
fn slopes_of_gelu() {
    let bound = |x: f64, exact: f64| {
        let size = if x < 0.0 && x > -1.5 { exact.abs().max(0.25) } else { exact.abs() };
        let square = if cfg!(target_feature = "fma") { 0.0 } else { (x * x).min(1500.0) / 2.0 };
        (8.0 + if x < 0.0 { square } else { 0.0 }) * size
    };
    for (_, [x, _, value, rest]) in facts().filter(|(name, _)| *name == "gelu_slope") {
        let got = gelu_slope_f64(x);
        let error = ((got - value) - rest).abs();
        assert!(error <= bound(x, value) * f64::EPSILON, "gelu_slope_f64({x:e}) = {got:e}, not {value:e}");
    }
    let mut x = -16.0f32;
    while x < 8.0 {
        let (got, exact) = (f64::from(gelu_slope_f32(x)), gelu_slope_f64(f64::from(x)));
        let error = (got - exact).abs();
        let most = bound(f64::from(x), exact) * f64::from(f32::EPSILON) + 32.0 * f64::from(f32::from_bits(1));
        assert!(error <= most, "gelu_slope_f32({x}) = {got:e}, not {exact:e}");
        x += 1.0 / 4096.0;
    }
    let ends = [f32::NEG_INFINITY, f32::MIN, -0.0, 0.0, f32::MAX, f32::INFINITY];
    assert_eq!(ends.map(gelu_slope_f32), [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]);
    assert_eq!(ends.map(|x| gelu_slope_f64(x.into())), [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]);
    assert!(gelu_slope_f32(f32::NAN).is_nan() && gelu_slope_f64(f64::NAN).is_nan());
}

/// Arguments for functions of two variables: all special values and a range of ordinary ones.
fn pair_arguments() -> Vec<f32> {
    let mut values = vec![0.0, 1.0, 2.0, 3.0, 0.5, 1e-45, f32::MAX, f32::INFINITY, 16_777_217.0];
    let mut bits = 0u32;
    while bits < 0x7f80_0000 {
        values.push(f32::from_bits(bits));
        bits += 2_796_203;
    }
    let mut x = 0.013;
    while x < 150.0 {
        values.push(x);
        x *= 1.037;
    }
    let negative: Vec<f32> = values.iter().map(|v| -v).collect();
    values.extend(negative);
    values.push(f32::NAN);
    values
}

fn worst_pair(name: &str, bound: f64, f: fn(f32, f32) -> f32, exact: fn(f64, f64) -> f64) {
    let values = pair_arguments();
    let (mut worst, mut at) = (0.0, (0.0, 0.0));
    for &x in &values {
        for &y in &values {
            let error = ulps_f32(f(x, y), exact(f64::from(x), f64::from(y)));
            if error > worst {
                (worst, at) = (error, (x, y));
            }
        }
    }
    println!("{name}_f32: {worst:.3} ulp at {at:?}");
    assert!(worst <= bound, "{name}_f32{at:?} = {:e}: {worst} ulp", f(at.0, at.1));
}

#[test]
fn pairs_f32() {
    worst_pair("pow", 1.0, pow_f32, f64::powf);
    worst_pair("atan2", 2.0, atan2_f32, f64::atan2);
}

/// Blocks of ordinary arguments, with or without one special pair, have the results of single pairs.
#[test]
fn pow_does_not_depend_on_its_neighbours() {
    let specials = [0.0, -0.0, 1.0, -1.0, -2.5, 1e-45, 3e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let pairs = specials.iter().flat_map(|x| specials.iter().map(|y| (*x, *y)));
    let mut x: Vec<f32> = (1..700).map(|i| i as f32 * 0.0137).collect();
    let mut y: Vec<f32> = (1..700).map(|i| i as f32 * 0.031 - 10.0).collect();
    let mut out = vec![0.0; x.len()];
    for (i, (base, exponent)) in pairs.chain([(2.0, 3.0), (0.5, 1e30), (1.5, -1e30)]).enumerate() {
        let at = i * 37 % x.len();
        let before = std::mem::replace(&mut x[at], base);
        let exponent_before = std::mem::replace(&mut y[at], exponent);
        pow_slice_f32(&x, &y, &mut out);
        for ((x, y), out) in x.iter().zip(&y).zip(&out) {
            let alone = pow_f32(*x, *y);
            assert!(
                alone.to_bits() == out.to_bits() || alone.is_nan() && out.is_nan(),
                "{x:e}^{y:e}: {out:e}"
            );
        }
        (x[at], y[at]) = (before, exponent_before);
    }
}

type OneArgument = (&'static str, fn(f64) -> f64, fn(f64) -> f64, f64);

/// Function, our implementation, the reference (the standard library's, or ours if it has none), error bound.
const F64: [OneArgument; 20] = [
    ("exp", exp_f64, f64::exp, 1.0),
    ("expm1", expm1_f64, f64::exp_m1, 2.0),
    (
        "sigmoid",
        sigmoid_f64,
        |x| {
            if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
        },
        2.0,
    ),
    ("log", log_f64, f64::ln, 1.0),
    ("log1p", log1p_f64, f64::ln_1p, 2.0),
    ("log2", log2_f64, f64::log2, 2.0),
    ("log10", log10_f64, f64::log10, 2.0),
    ("sin", sin_f64, f64::sin, 1.0),
    ("cos", cos_f64, f64::cos, 1.0),
    ("tan", tan_f64, f64::tan, 2.0),
    ("sinh", sinh_f64, f64::sinh, 2.0),
    ("cosh", cosh_f64, f64::cosh, 2.0),
    ("tanh", tanh_f64, f64::tanh, 2.0),
    ("asin", asin_f64, f64::asin, 1.0),
    ("acos", acos_f64, f64::acos, 1.0),
    ("atan", atan_f64, f64::atan, 1.0),
    ("asinh", asinh_f64, asinh_f64, 2.0),
    ("acosh", acosh_f64, acosh_f64, 2.0),
    ("atanh", atanh_f64, atanh_f64, 2.0),
    ("erf", erf_f64, erf_f64, 1.0),
];

fn facts() -> impl Iterator<Item = (&'static str, [f64; 4])> {
    let table = include_str!("facts.txt");
    table.lines().map(|line| {
        let mut words = line.split(' ');
        let name = words.next().expect("a name");
        let number = |word| f64::from_bits(u64::from_str_radix(word, 16).expect("bits"));
        let numbers: Vec<f64> = words.map(number).collect();
        (name, numbers.try_into().expect("four numbers"))
    })
}

fn ulps_f64(got: f64, value: f64, rest: f64) -> f64 {
    let exponent = (value.to_bits() >> 52) & 0x7ff;
    let unit = if exponent > 52 { (exponent - 52) << 52 } else { 1 << (exponent.max(1) - 1) };
    let unit = f64::from_bits(unit);
    ((got - value) - rest).abs() / unit
}

#[test]
fn exact_values_f64() {
    for (name, ours, _, bound) in F64 {
        let mut worst = (0.0, 0.0);
        let mut count = 0;
        for (_, [x, _, value, rest]) in facts().filter(|(n, _)| *n == name) {
            let error = ulps_f64(ours(x), value, rest);
            worst = if error > worst.0 || error.is_nan() { (error, x) } else { worst };
            count += 1;
        }
        println!("{name}_f64: {:.3} ulp at {:e}", worst.0, worst.1);
        assert!(count > 0 && worst.0 <= bound, "{name}_f64({:e}): {} ulp", worst.1, worst.0);
    }
    for (_, [y, x, value, rest]) in facts().filter(|(n, _)| *n == "atan2") {
        let error = ulps_f64(atan2_f64(y, x), value, rest);
        assert!(error <= 2.0, "atan2_f64({y:e}, {x:e}): {error} ulp");
    }
}

/// Covers every exponent, subnormals, limits and NaN. The standard library's own error widens the bound.
#[test]
fn standard_library_f64() {
    let step = (1u64 << 43) + 0x1_2345_6789;
    for (name, ours, std, bound) in F64 {
        let specials = [0.0, 1.0, 0.5, 5e-324, f64::MAX, f64::INFINITY, f64::NAN, 709.79, 745.2];
        let sample = (0..).map(|i| i * step).take_while(|b| *b < 0x7ff0_0000_0000_0000);
        for x in specials.into_iter().chain(sample.map(f64::from_bits)).flat_map(|x| [x, -x]) {
            let (got, want) = (ours(x), std(x));
            let same = got == want && got.is_sign_negative() == want.is_sign_negative();
            let near = same || (got.is_nan() && want.is_nan()) || ulps_f64(got, want, 0.0) <= bound + 1.0;
            assert!(near, "{name}_f64({x:e}) = {got:e}, standard library {want:e}");
        }
    }
}

#[test]
fn atan2_f64_at_the_limits() {
    let values: Vec<f64> = pair_arguments().into_iter().map(f64::from).collect();
    let extra = [5e-324, f64::MAX, 1e-310, 1e290, 1e-250];
    let values: Vec<f64> = values.into_iter().chain(extra).flat_map(|v| [v, -v]).collect();
    for &y in &values {
        for &x in &values {
            let (got, want) = (atan2_f64(y, x), y.atan2(x));
            let same = got == want && got.is_sign_negative() == want.is_sign_negative();
            let near = same || (got.is_nan() && want.is_nan()) || ulps_f64(got, want, 0.0) <= 3.0;
            assert!(near, "atan2_f64({y:e}, {x:e}) = {got:e}, standard library {want:e}");
        }
    }
}

/// The standard library's error is little more than half an ulp.
#[test]
fn pow_f64_is_that_of_the_standard_library() {
    let extra = [
        5e-324,
        f64::MAX,
        1e-310,
        1e290,
        1e-250,
        1.0 - 1e-16,
        1.0 + 3e-16,
        709.3,
        1074.5,
        9_007_199_254_740_993.0,
    ];
    let narrow = pair_arguments().into_iter().map(f64::from);
    let values: Vec<f64> =
        narrow.chain(extra).flat_map(|v| [v, v * 1.000_000_123_4]).flat_map(|v| [v, -v]).collect();
    let (mut worst, mut at) = (0.0, (0.0, 0.0));
    for &x in &values {
        for &y in &values {
            let (got, want) = (pow_f64(x, y), x.powf(y));
            let same = got == want && got.is_sign_negative() == want.is_sign_negative();
            if same || (got.is_nan() && want.is_nan()) {
                continue;
            }
            let error = if got.is_finite() && want.is_finite() && got.signum() == want.signum() {
                ulps_f64(got, want, 0.0)
            } else {
                f64::INFINITY
            };
            if error > worst {
                (worst, at) = (error, (x, y));
            }
        }
    }
    println!("pow_f64: {worst:.3} ulp at {at:?}");
    assert!(
        worst <= 1.0,
        "pow_f64{at:?} = {:e}, standard library {:e}",
        pow_f64(at.0, at.1),
        at.0.powf(at.1)
    );
}

type SliceAndScalar<T> = (fn(&[T], &mut [T]), fn(T) -> T);

#[test]
fn slices_agree_with_scalars() {
    let mut x: Vec<f32> = (0..1000).map(|i| i as f32 * 0.37 - 180.0).collect();
    x[300] = 3e9;
    x[301] = f32::INFINITY;
    x[302] = f32::NAN;
    x[999] = -1e30;
    let wide: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
    let mut out = vec![0.0; x.len()];
    let mut wide_out = vec![0.0; x.len()];
    let narrow: [SliceAndScalar<f32>; 3] =
        [(sin_slice_f32, sin_f32), (cos_slice_f32, cos_f32), (tan_slice_f32, tan_f32)];
    for (slice, scalar) in narrow {
        // Each start shifts the elements' positions in the block and in the vector.
        for start in 0..9 {
            slice(&x[start..], &mut out[start..]);
            for (x, out) in x[start..].iter().zip(&out[start..]) {
                assert!(scalar(*x) == *out || (out.is_nan() && !x.is_finite()), "{x:e}");
            }
        }
    }
    let double: [SliceAndScalar<f64>; 3] =
        [(sin_slice_f64, sin_f64), (cos_slice_f64, cos_f64), (tan_slice_f64, tan_f64)];
    for (slice, scalar) in double {
        slice(&wide, &mut wide_out);
        for (x, out) in wide.iter().zip(&wide_out) {
            assert!(scalar(*x) == *out || (out.is_nan() && !x.is_finite()), "{x:e}");
        }
    }
}

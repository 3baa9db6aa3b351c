//! Gradients of values near the limits of their types, where intermediate values overflow or underflow and the result does not.

mod rehearsal_support;

use keyway::autograd::{self, BackwardOptions};
use keyway::nn::{Approximate, Reduction};
use keyway::{DType, Result, Tensor};
use rehearsal_support::load;

fn leaf(values: &[f64], dtype: DType) -> Result<Tensor> {
    Tensor::new(values)?.to_dtype(dtype)?.detach().requires_grad_(true)
}

/// The gradient of a sum, and that of the sum of this.
fn both(x: &Tensor, y: &Tensor) -> Result<[Vec<f64>; 2]> {
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let first = autograd::grad(&[&y.sum_all()?], &[x], options)?.remove(0).unwrap();
    let second = autograd::grad(&[&first.sum_all()?], &[x], BackwardOptions::default())?.remove(0).unwrap();
    Ok([first.to_vec_f64()?, second.to_vec_f64()?])
}

#[track_caller]
fn near(got: &[f64], wanted: &[f64], share: f64) {
    assert_eq!(got.len(), wanted.len());
    let close =
        |(got, wanted): (&f64, &f64)| (got - wanted).abs() <= share * wanted.abs() + f64::MIN_POSITIVE;
    assert!(got.iter().zip(wanted).all(close), "{got:?}, not {wanted:?}");
}

#[test]
fn elu_keeps_the_digits_of_small_slopes() -> Result<()> {
    let _guard = load(&[]);
    for (dtype, x, share) in [
        (DType::BF16, -8.0, 0.02),
        (DType::F16, -8.0, 2e-3),
        (DType::F32, -17.0, 1e-6),
        (DType::F64, -40.0, 1e-14),
    ] {
        let x_ = leaf(&[x, 3.0], dtype)?;
        let [first, second] = both(&x_, &x_.elu()?)?;
        near(&first, &[x.exp(), 1.0], share);
        near(&second, &[x.exp(), 0.0], share);
    }
    Ok(())
}

/// The gradients of a sum of `f` by both leaves.
fn of_two(x: &Tensor, y: &Tensor, f: fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<[Vec<f64>; 2]> {
    let made = autograd::grad(&[&f(x, y)?.sum_all()?], &[x, y], BackwardOptions::default())?;
    let [a, b] = [0, 1].map(|nth| made[nth].as_ref().unwrap().to_vec_f64());
    Ok([a?, b?])
}

/// Half an ULP, twice.
fn units(dtype: DType, n: f64) -> f64 {
    n * match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    }
}

#[test]
fn squares_of_legs_neither_overflow_nor_vanish() -> Result<()> {
    let _guard = load(&[]);
    for (dtype, size) in [
        (DType::F16, 2e-3),
        (DType::F16, 1e-4),
        (DType::F16, 3e4),
        (DType::BF16, 1e25),
        (DType::F32, 1e-22),
        (DType::F32, 1e25),
        (DType::F64, 1e-200),
        (DType::F64, 1e200),
    ] {
        let (y, x) = (leaf(&[size], dtype)?, leaf(&[size], dtype)?);
        let size = y.to_vec_f64()?[0];
        let [by_y, by_x] = of_two(&y, &x, |y, x| y.atan2(x))?;
        // The least f16 above 0 has one digit.
        let least = if dtype == DType::F16 { 2f64.powi(-24) } else { 0.0 };
        for (got, wanted) in [(by_y[0], 0.5 / size), (by_x[0], -0.5 / size)] {
            let off = (got - wanted).abs();
            assert!(off <= units(dtype, 3.0) * wanted.abs() + least, "{dtype} {size}: {got}, not {wanted}");
        }
        let [a, b] = of_two(&y, &x, |y, x| y.hypot(x))?;
        near(&[a[0], b[0]], &[std::f64::consts::FRAC_1_SQRT_2; 2], units(dtype, 2.0));
    }
    // The length is beyond the dtype, its gradient is not.
    for (dtype, size) in [(DType::F16, 6e4), (DType::F32, 3e38), (DType::F64, 1.5e308)] {
        let (y, x) = (leaf(&[size], dtype)?, leaf(&[size], dtype)?);
        let [a, b] = of_two(&y, &x, |y, x| y.hypot(x))?;
        near(&[a[0], b[0]], &[std::f64::consts::FRAC_1_SQRT_2; 2], units(dtype, 2.0));
    }
    // At the origin both are defined as 0.
    let (y, x) = (leaf(&[0.0], DType::F32)?, leaf(&[0.0], DType::F32)?);
    assert_eq!(of_two(&y, &x, |y, x| y.atan2(x))?, [[0.0], [0.0]]);
    assert_eq!(of_two(&y, &x, |y, x| y.hypot(x))?, [[0.0], [0.0]]);
    // y^2 / hypot^3
    let (x, y) = (leaf(&[3e25], DType::F32)?, leaf(&[4e25], DType::F32)?);
    near(&both(&x, &x.hypot(&y)?)?[1], &[0.64 / 5e25], 1e-6);
    Ok(())
}

#[test]
fn inverse_functions_have_gradients_far_out_and_near_their_ends() -> Result<()> {
    let _guard = load(&[]);
    for (dtype, x) in [(DType::F16, 256.0), (DType::F16, 3e4), (DType::F32, 2e19), (DType::F64, 1e200)] {
        for f in [Tensor::asinh, Tensor::acosh] {
            let x_ = leaf(&[x], dtype)?;
            let x = x_.to_vec_f64()?[0];
            f(&x_)?.backward()?;
            near(&x_.grad().unwrap().to_vec_f64()?, &[1.0 / x], units(dtype, 8.0));
        }
    }
    let x = leaf(&[2e19], DType::F32)?;
    near(&both(&x, &x.atan()?)?[0], &[2.5e-39], 1e-5);
    // 1 / sqrt(1 - x^2) at 1 - 2^-20.
    let end = 1.0 - 2f64.powi(-20);
    let x = leaf(&[end], DType::F32)?;
    near(&both(&x, &x.asin()?)?[0], &[724.077_516_568_577_8], 1e-6);
    near(&both(&x, &x.acos()?)?[0], &[-724.077_516_568_577_8], 1e-6);
    near(&both(&x, &x.atanh()?)?[0], &[724.077_516_568_577_8f64.powi(2)], 1e-6);
    Ok(())
}

/// A factor of a small gradient brings the product back into range.
#[test]
fn small_gradients_of_large_slopes() -> Result<()> {
    let _guard = load(&[]);
    type Function = fn(&Tensor) -> Result<Tensor>;
    let cases: [(Function, f64, f64); 6] = [
        (Tensor::reciprocal, 1e-3, -1e6),
        (Tensor::rsqrt, 1e-4, -0.5e6),
        (Tensor::log, 1e-5, 1e5),
        (Tensor::sqrt, 1e-5, 158.1),
        (|x| x.rdiv(1.0), 1e-3, -1e6),
        (|x| x.pow(3), 300.0, 2.7e5),
    ];
    for (nth, (f, x, slope)) in cases.into_iter().enumerate() {
        let x = leaf(&[x], DType::F16)?;
        let y = f(&x)?;
        if y.to_vec_f64()?[0].is_infinite() && nth < 5 {
            panic!("{nth}: {y}");
        }
        let gradients = Some(vec![Tensor::new([0.01f32])?.to_dtype(DType::F16)?]);
        y.backward_with(BackwardOptions { gradients, ..Default::default() })?;
        near(&x.grad().unwrap().to_vec_f64()?, &[0.01 * slope], 0.02);
    }
    Ok(())
}

/// Expected values by mpmath.
#[test]
fn functions_that_level_off_have_gradients() -> Result<()> {
    let _guard = load(&[]);
    type Function = fn(&Tensor) -> Result<Tensor>;
    let cases: [(&str, DType, Function, f64, f64, f64); 16] = [
        ("sigmoid", DType::F64, Tensor::sigmoid, 40.0, 4.248_354_255_291_589e-18, -4.248_354_255_291_589e-18),
        ("sigmoid", DType::F16, Tensor::sigmoid, 9.0, 1.233_793_497_648_489e-4, -1.233e-4),
        ("tanh", DType::F64, Tensor::tanh, 20.0, 1.699_341_702_116_635_7e-17, -3.398_683_404_233_271e-17),
        ("tanh", DType::F16, Tensor::tanh, 5.0, 1.815_832_309_438_068e-4, -3.631_3e-4),
        ("expm1", DType::F64, Tensor::expm1, -40.0, 4.248_354_255_291_589e-18, 4.248_354_255_291_589e-18),
        ("mish", DType::F64, Tensor::mish, 20.0, 1.0, -6.457_498_407_097_9e-16),
        ("mish", DType::F64, Tensor::mish, 25.0, 1.0, -3.703_199_707_856_074e-20),
        ("silu", DType::F64, Tensor::silu, 30.0, 1.000_000_000_002_713_7, -2.620_134_431_274_233e-12),
        ("softplus", DType::F32, Tensor::softplus, 19.0, 1.0, 5.602_796_374_754_612e-9),
        (
            "logsigmoid",
            DType::F64,
            Tensor::logsigmoid,
            50.0,
            1.928_749_847_963_917_8e-22,
            -1.928_749_847_963_917_8e-22,
        ),
        ("logsigmoid", DType::F64, Tensor::logsigmoid, -50.0, 1.0, -1.928_749_847_963_917_8e-22),
        ("softsign", DType::F32, Tensor::softsign, 1e4, 9.998_000_299_960_005e-9, -1.999_400_119_980_003e-12),
        ("tanhshrink", DType::F32, Tensor::tanhshrink, 1e-4, 9.999_999_933_333_334e-9, 2e-4),
        ("gelu", DType::F64, Tensor::gelu, 6.0, 1.000_000_035_464_8, -2.065_800_168_939_917e-7),
        ("gelu", DType::F16, Tensor::gelu, 300.0, 1.0, 0.0),
        (
            "gelu of tanh",
            DType::F64,
            |x| x.gelu_with(Approximate::Tanh),
            6.0,
            1.000_000_000_6,
            -6.824_247_274_157_189e-9,
        ),
    ];
    for (name, dtype, f, x, first, second) in cases {
        let x = leaf(&[x], dtype)?;
        let made = both(&x, &f(&x)?)?;
        for (made, wanted) in made.iter().zip([first, second]) {
            // The number above may be rounded too.
            let share = units(dtype, 32.0).max(1e-9);
            let least = if dtype == DType::F16 { 2f64.powi(-24) } else { 0.0 };
            let off = (made[0] - wanted).abs();
            assert!(off <= share * wanted.abs() + least, "{name} of {dtype}: {}, not {wanted}", made[0]);
        }
    }
    let (x, y) = (leaf(&[20.0], DType::F64)?, leaf(&[-20.0], DType::F64)?);
    near(&both(&x, &x.logaddexp(&y)?)?[1], &[4.248_354_255_291_589e-18], 1e-14);
    let x = leaf(&[1.0, 40.0], DType::F64)?;
    near(&both(&x, &x.glu()?)?[0], &[1.0, 4.248_354_255_291_589e-18], 1e-14);
    Ok(())
}

#[test]
fn equal_numbers_share_the_gradient_of_a_logarithm_of_sums() -> Result<()> {
    let _guard = load(&[]);
    for (dtype, x) in [(DType::F16, 1000.0), (DType::BF16, 300.0), (DType::F32, 1e8), (DType::F64, 1e17)] {
        let x = leaf(&[x; 8], dtype)?;
        let [first, second] = both(&x, &x.logsumexp(0)?)?;
        near(&first, &[0.125; 8], units(dtype, 1.0));
        assert!(second.iter().all(|g| g.abs() < 1e-6), "{second:?}");
        // The expected gradient of the i-th element is the sum of 1/j for all j from i on.
        let running: Vec<f64> = (1..=8).map(|i| (i..=8).map(|j| 1.0 / f64::from(j)).sum()).collect();
        near(&both(&x, &x.logcumsumexp(0)?)?[0], &running, units(dtype, 4.0));
    }
    let x = leaf(&[f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0, 1.0], DType::F32)?;
    near(&both(&x, &x.logcumsumexp(0)?)?[0], &[0.0, 0.0, 1.5, 0.5], 1e-6);
    Ok(())
}

/// Expected values by mpmath.
#[test]
fn losses_of_confident_logits_are_not_0() -> Result<()> {
    let _guard = load(&[]);
    let none = Tensor::new([0.0f32, 0.0, 1.0, 1.0])?;
    let weight = Tensor::new([3.0f32])?;
    let x = leaf(&[-17.0, 17.0, 17.0, -17.0], DType::F32)?;
    let of = |weight| x.binary_cross_entropy_with_logits_with(&none, None, weight, Reduction::None);
    let small = 4.139_937_633_089_747e-8;
    near(&of(None)?.to_vec_f64()?, &[small, 17.0, small, 17.0], 1e-6);
    near(&of(Some(&weight))?.to_vec_f64()?, &[small, 17.0, 3.0 * small, 51.0], 1e-6);
    let [first, second] = both(&x, &of(None)?)?;
    let slope = 4.139_937_547_394_331e-8;
    near(&first, &[slope, 1.0, -slope, -1.0], 1e-6);
    near(&second, &[4.139_937_376_003_501_6e-8; 4], 1e-6);
    near(&both(&x, &of(Some(&weight))?)?[0], &[slope, 1.0, -3.0 * slope, -3.0], 1e-6);
    // Probabilities beside 0 that are right, or wrong by no more than the bound of the gradient.
    let x = leaf(&[1e-20, 1e-10], DType::F32)?;
    let loss = x.binary_cross_entropy_with(&Tensor::new([0.0f32, 1.0])?, None, Reduction::Sum)?;
    near(&both(&x, &loss)?[0], &[1.0, -1e10], 1e-6);
    // Half a square over a wide bound, of a difference whose square is beyond f32.
    let x = leaf(&[1e25], DType::F32)?;
    let loss = x.smooth_l1_loss_with(&Tensor::new([0.0f32])?, 1e30, Reduction::Sum)?;
    near(&loss.to_vec_f64()?, &[5e19], 1e-6);
    near(&both(&x, &loss)?[0], &[1e-5], 1e-6);
    Ok(())
}

/// The reciprocal of a norm that f16 holds may be beyond f16.
#[test]
fn norms_and_deviations_of_small_numbers_have_gradients_in_f16() -> Result<()> {
    let _guard = load(&[]);
    let x = leaf(&[1e-5, 5e-6], DType::F16)?;
    let [a, b] = [x.to_vec_f64()?[0], x.to_vec_f64()?[1]];
    let norm = x.norm(0)?;
    let rounded = norm.to_vec_f64()?[0];
    norm.backward()?;
    near(&x.grad().unwrap().to_vec_f64()?, &[a / rounded, b / rounded], 2e-3);
    let x = leaf(&[1e-5, 5e-6, 2e-5], DType::F16)?;
    x.std(0)?.backward()?;
    let grad = x.grad().unwrap().to_vec_f64()?;
    assert!(grad.iter().all(|g| g.abs() < 1.0) && grad[2] > 0.0 && grad[1] < 0.0, "{grad:?}");
    Ok(())
}

/// Beside a large element a small one has no say, and is no reason for a NaN.
#[test]
fn powers_in_norms_have_second_derivatives_beside_small_numbers() -> Result<()> {
    let _guard = load(&[]);
    for (dtype, small) in [(DType::F16, 1e-5), (DType::F32, 1e-39), (DType::F64, 1e-310)] {
        for p in [1.5, 3.0, 4.0] {
            let x = leaf(&[1.0, small], dtype)?;
            let made = both(&x, &x.norm_with(p, 0, false)?)?;
            assert!(made.concat().iter().all(|g| g.is_finite()), "{dtype} {p}: {made:?}");
            assert!((made[0][0] - 1.0).abs() < 1e-3, "{made:?}");
        }
    }
    Ok(())
}

/// The gradient of `f` for an incoming gradient, in an element's dtype.
fn given(x: &[f64], grad: f64, dtype: DType, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<f64>> {
    let x = leaf(x, dtype)?;
    let y = f(&x)?;
    let gradients = Some(vec![y.full_like(grad)?]);
    let options = BackwardOptions { gradients, ..Default::default() };
    autograd::grad(&[&y], &[&x], options)?.remove(0).unwrap().to_vec_f64()
}

#[test]
fn an_incoming_gradient_leaves_the_range_with_no_factor_alone() -> Result<()> {
    let _guard = load(&[]);
    let f16 = |x: f64| keyway::f16::from_f64(x).to_f64();
    let near_f16 = |got: &[f64], wanted: &[f64]| near(got, wanted, 2e-3);
    near_f16(&given(&[110.0], 32768.0, DType::F16, |x| x.pow(-2))?, &[-2.0 * 32768.0 / 110f64.powi(3)]);
    assert_eq!(given(&[0.0], 32768.0, DType::F16, |x| x.pow(3))?, [0.0]);
    near_f16(&given(&[0.5], 32768.0, DType::F16, |x| x.pow(3))?, &[24576.0]);
    let (x, g) = (f16(1e-4), f16(1e-6));
    near(&given(&[x], g, DType::F16, |x| x.pow(0.5))?, &[0.5 * g * x.powf(-0.5)], 2e-3);
    let divisor = f16(2.826);
    let divided =
        given(&[divisor], 1024.0, DType::F16, |y| Tensor::full_with((1,), 197.125, DType::F16)?.div(y))?;
    near_f16(&divided, &[-1024.0 * 197.125 / divisor.powi(2)]);
    let y = f16(0.0016);
    let logarithm =
        given(&[y], f16(1e-3), DType::F16, |y| Tensor::full_with((1,), 120.0, DType::F16)?.xlogy(y))?;
    near_f16(&logarithm, &[f16(1e-3) * 120.0 / y]);
    let spread = given(&[3.0, -3.0].repeat(5), 32768.0, DType::F16, |x| x.var(..))?;
    near_f16(&spread, &[2.0 / 9.0 * 3.0 * 32768.0, -2.0 / 9.0 * 3.0 * 32768.0].repeat(5));
    for (x, share) in [(-19.0, 0.2), (-17.0, 0.02)] {
        near(&given(&[x], 32768.0, DType::F16, Tensor::elu)?, &[32768.0 * x.exp()], share);
        near(&given(&[x], 32768.0, DType::F16, Tensor::expm1)?, &[32768.0 * x.exp()], share);
    }
    // Slopes beyond f16: 1,049,000 and 2^-17 over 10 ln(10).
    let (x, g) = (f16(-1.001), f16(1e-3));
    let trigamma = given(&[x], 1.0, DType::F64, Tensor::digamma)?[0];
    near_f16(&given(&[x], g, DType::F16, Tensor::digamma)?, &[g * trigamma]);
    let (x, g) = (10.0, 2f64.powi(-17));
    let step = 2f64.powi(-25);
    let got = given(&[x], g, DType::F16, Tensor::log10)?[0];
    assert!((got - g / (x * 10f64.ln())).abs() <= step, "{got}");
    // Negative powers, whose slope is beyond f32.
    near(&given(&[3.57e-29], 7.6e-6, DType::F32, |x| x.pow(-0.5))?, &[-1.781_48e37], 1e-4);
    near(&given(&[1e-20], 1e-5, DType::F32, |x| x.pow(-1))?, &[-1e35], 1e-5);
    near(
        &given(&[1.0], 0.01, DType::F16, |e| Tensor::full_with((1,), 30000.0, DType::F16)?.pow(e))?,
        &[3092.0],
        2e-3,
    );
    Ok(())
}

#[test]
fn norms_of_small_powers_keep_small_elements_beside_large_ones() -> Result<()> {
    let _guard = load(&[]);
    for p in [0.5, 1.5] {
        let x = leaf(&[1e-30, 1e20], DType::F32)?;
        let y = x.norm_with(p, .., false)?;
        let got =
            autograd::grad(&[&y], &[&x], BackwardOptions::default())?.remove(0).unwrap().to_vec_f64()?;
        near(&got, &[1e-50f64.powf(p - 1.0), 1.0], 1e-4);
    }
    Ok(())
}

#[test]
fn second_derivatives_of_inverse_functions_near_0() -> Result<()> {
    let _guard = load(&[]);
    for x in [1e-8, 1e-6, 1e-4, 0.3, -0.7] {
        let wide = |f: fn(&Tensor) -> Result<Tensor>| -> Result<f64> {
            let x = leaf(&[x], DType::F32)?;
            Ok(both(&x, &f(&x)?)?[1][0])
        };
        let root = x / (1.0 - x * x).powf(1.5);
        near(&[wide(Tensor::asin)?, wide(Tensor::acos)?], &[root, -root], 1e-5);
        near(&[wide(Tensor::atanh)?], &[2.0 * x / (1.0 - x * x).powi(2)], 1e-5);
    }
    Ok(())
}

#[test]
fn truth_values_as_numbers_and_as_tensors_have_gradients_beside_them() -> Result<()> {
    let _guard = load(&[]);
    let (x, y) = (leaf(&[3.0], DType::F32)?, Tensor::new([1.0f32])?);
    x.sub_with(&y, true)?.sum_all()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1.0]);
    let legs = leaf(&[3.0], DType::F32)?;
    Tensor::new([true])?.hypot(&legs)?.sum_all()?.backward()?;
    near(&legs.grad().unwrap().to_vec_f64()?, &[3.0 / 10f64.sqrt()], 1e-6);
    Ok(())
}

#[test]
fn quantiles_between_elements_whose_distance_is_infinite() -> Result<()> {
    let _guard = load(&[]);
    let x = Tensor::new([1e308f64, -1e308])?;
    near(&[x.quantile_all(0.25)?.item::<f64>()?], &[-5e307], 1e-12);
    assert_eq!(x.quantile_all(0.5)?.item::<f64>()?, 0.0);
    Ok(())
}

#[test]
fn pixels_of_no_image_are_moved_by_any_factor_at_once() -> Result<()> {
    let _guard = load(&[]);
    assert_eq!(Tensor::zeros((4, 2, 0, 0))?.pixel_unshuffle(1 << 30)?.shape(), [4, 1 << 61, 0, 0]);
    assert_eq!(Tensor::zeros((1, 0, 2, 2))?.pixel_shuffle(1 << 30)?.shape(), [1, 0, 1 << 31, 1 << 31]);
    Ok(())
}

#[test]
fn products_of_others_beyond_the_range_are_0_beside_a_zero() -> Result<()> {
    let _guard = load(&[]);
    let x = leaf(&[0.0, 0.0, 1e20, 1e20], DType::F32)?;
    let got = autograd::grad(&[&x.prod_all()?], &[&x], BackwardOptions::default())?.remove(0).unwrap();
    assert_eq!(got.to_vec_f64()?, [0.0; 4]);
    let x = leaf(&[0.0, f64::INFINITY, 2.0], DType::F32)?;
    let got = autograd::grad(&[&x.prod_all()?], &[&x], BackwardOptions::default())?
        .remove(0)
        .unwrap()
        .to_vec_f64()?;
    assert!(got[2].is_nan(), "{got:?}");
    Ok(())
}

#[test]
fn clipped_gradients_of_f16_keep_a_small_factor() -> Result<()> {
    let _guard = load(&[]);
    let w = Tensor::zeros_with(1_000_000, DType::F16)?.requires_grad_(true)?;
    w.set_grad(w.detach().full_like(60000.0)?)?;
    keyway::optim::clip_grad_norm_(&[&w], 1.0)?;
    let clipped = w.grad().unwrap().to_vec_f64()?;
    assert!(clipped.iter().all(|g| (g - 1e-3).abs() < 1e-6), "{}", clipped[0]);
    Ok(())
}

//! Numbers that PyTorch 2.15 gives, on CPU, for ops whose corners are a matter of convention, and numbers by mpmath with 50
//! digits where PyTorch's have fewer.

use keyway::Tensor;
use keyway::tensor::{Interpolation, Reduce};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn row(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), values.len()).unwrap()
}

fn numbers(t: &Tensor) -> Vec<f64> {
    t.to_vec::<f64>().unwrap()
}

/// Equal up to `ulps` steps of f64, NaN where NaN is wanted.
fn near(got: &Tensor, wanted: &[f64], ulps: f64) {
    let got = numbers(got);
    let close = |g: f64, w: f64| {
        g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= ulps * f64::EPSILON * w.abs()
    };
    let all = got.len() == wanted.len() && got.iter().zip(wanted).all(|(&g, &w)| close(g, w));
    assert!(all, "{got:?} is not {wanted:?}");
}

/// The gradient of `x` for this gradient of what `function` gives.
fn gradient(x: &[f64], grad: &[f64], function: impl Fn(&Tensor) -> keyway::Result<Tensor>) -> Tensor {
    let x = row(x).requires_grad_(true).unwrap();
    function(&x).unwrap().backward_with(&row(grad)).unwrap();
    x.grad().unwrap()
}

#[test]
fn running_extremes() {
    let x = row(&[1.0, 3.0, 3.0, 2.0, 5.0, NAN, 4.0, NAN, 2.0]);
    let (values, places) = x.cummax(0).unwrap();
    near(&values, &[1.0, 3.0, 3.0, 3.0, 5.0, NAN, NAN, NAN, NAN], 0.0);
    assert_eq!(places.to_vec::<i64>().unwrap(), [0, 1, 2, 2, 4, 5, 5, 7, 7]);
    let (values, places) = x.cummin(-1).unwrap();
    near(&values, &[1.0, 1.0, 1.0, 1.0, 1.0, NAN, NAN, NAN, NAN], 0.0);
    assert_eq!(places.to_vec::<i64>().unwrap(), [0, 0, 0, 0, 0, 5, 5, 7, 7]);
    let (_, places) = row(&[INF, 1.0, INF]).cummax(0).unwrap();
    assert_eq!(places.to_vec::<i64>().unwrap(), [0, 0, 2]);
    let truth = Tensor::new([true, false, true]).unwrap();
    let (values, places) = truth.cummax(0).unwrap();
    assert_eq!(values.to_vec::<bool>().unwrap(), [true; 3]);
    assert_eq!(places.to_vec::<i64>().unwrap(), [0, 0, 2]);
    near(&gradient(&[1.0, 5.0, 2.0], &[1.0, 2.0, 3.0], |x| Ok(x.cummax(0)?.0)), &[1.0, 5.0, 0.0], 0.0);
    near(&gradient(&[5.0, 1.0, 2.0], &[4.0, 5.0, 6.0], |x| Ok(x.cummax(0)?.0)), &[15.0, 0.0, 0.0], 0.0);
}

#[test]
fn running_logarithms_of_sums() {
    let of = |x: &[f64]| row(x).logcumsumexp(0).unwrap();
    near(&of(&[-INF, -INF, 1.0, 2.0, -INF]), &[-INF, -INF, 1.0, 2.313261687518223, 2.313261687518223], 2.0);
    near(&of(&[1.0, INF, 2.0]), &[1.0, INF, INF], 0.0);
    near(&of(&[1000.0, 1000.0, 999.0]), &[1000.0, 1000.6931471805599, 1000.8619948040582], 2.0);
    near(&of(&[-1000.0, -2000.0, -1000.0]), &[-1000.0, -1000.0, -999.3068528194401], 2.0);
    near(&of(&[1.0, NAN, 2.0]), &[1.0, NAN, NAN], 0.0);
    let made = gradient(&[0.5, -1.0, 2.0, 0.25], &[1.0, -2.0, 0.0, 3.0], |x| x.logcumsumexp(0));
    near(&made, &[-0.17244447653480055, -0.26160772381435204, 2.0736975922245926, 0.36035460812456055], 8.0);
    // PyTorch is off by some thousand ulps here, since it takes logarithms of gradients; these are the sums of shares.
    let made = gradient(&[1000.0, 1000.0, 999.0], &[1.0; 3], |x| x.logcumsumexp(0));
    near(&made, &[1.922318798251458, 0.9223187982515176, 0.1553624034969695], 1000.0);
    // PyTorch gives NaN at minus infinity; like `logsumexp`, nothing has a part there.
    let made = gradient(&[-INF, -INF, 1.0, 2.0, -INF], &[1.0; 5], |x| x.logcumsumexp(0));
    near(&made, &[0.0, 0.0, 1.5378828427399902, 1.4621171572600096, 0.0], 8.0);
}

/// The results of `reduce` for `[2, 3, -1]` and `[4, 2, 4, -1, 2]`, and the gradients of both.
fn reductions(index: bool, reduce: Reduce, include: bool) -> [Vec<f64>; 3] {
    let at = Tensor::new([0i64, 2, 0, 2, 2]).unwrap();
    let own = row(&[2.0, 3.0, -1.0]).requires_grad_(true).unwrap();
    let src = row(&[4.0, 2.0, 4.0, -1.0, 2.0]).requires_grad_(true).unwrap();
    let call = if index { Tensor::index_reduce_with } else { Tensor::scatter_reduce_with };
    let made = call(&own, 0, &at, &src, reduce, include).unwrap();
    made.backward_with(&row(&[1.0, 10.0, 100.0])).unwrap();
    [made.detach(), own.grad().unwrap(), src.grad().unwrap()].map(|t| numbers(&t))
}

#[test]
fn reductions_at_an_index() {
    use Reduce::{Amax, Amin, Mean, Prod, Sum};
    let third = 100.0 / 3.0;
    let table: [(Reduce, bool, [&[f64]; 3]); 10] = [
        (Sum, true, [&[10.0, 3.0, 2.0], &[1.0, 10.0, 100.0], &[1.0, 100.0, 1.0, 100.0, 100.0]]),
        (Sum, false, [&[8.0, 3.0, 3.0], &[0.0, 10.0, 0.0], &[1.0, 100.0, 1.0, 100.0, 100.0]]),
        (Prod, true, [&[32.0, 3.0, 4.0], &[16.0, 10.0, -400.0], &[8.0, 200.0, 8.0, -400.0, 200.0]]),
        (Prod, false, [&[16.0, 3.0, -4.0], &[0.0, 10.0, 0.0], &[4.0, -200.0, 4.0, 400.0, -200.0]]),
        (
            Mean,
            true,
            [&[10.0 / 3.0, 3.0, 0.5], &[1.0 / 3.0, 10.0, 25.0], &[1.0 / 3.0, 25.0, 1.0 / 3.0, 25.0, 25.0]],
        ),
        (Mean, false, [&[4.0, 3.0, 1.0], &[0.0, 10.0, 0.0], &[0.5, third, 0.5, third, third]]),
        (Amax, true, [&[4.0, 3.0, 2.0], &[0.0, 10.0, 0.0], &[0.5, 50.0, 0.5, 0.0, 50.0]]),
        (Amax, false, [&[4.0, 3.0, 2.0], &[0.0, 10.0, 0.0], &[0.5, 50.0, 0.5, 0.0, 50.0]]),
        (Amin, true, [&[2.0, 3.0, -1.0], &[1.0, 10.0, 50.0], &[0.0, 0.0, 0.0, 50.0, 0.0]]),
        // PyTorch gives 50 to the fourth: it counts the excluded -1 among those that share.
        (Amin, false, [&[4.0, 3.0, -1.0], &[0.0, 10.0, 0.0], &[0.5, 0.0, 0.5, 100.0, 0.0]]),
    ];
    for (reduce, include, wanted) in table {
        for index in [false, true].into_iter().filter(|index| !index || reduce != Sum) {
            for (got, wanted) in reductions(index, reduce, include).iter().zip(wanted) {
                near(&row(got), wanted, 1.0);
            }
        }
    }
    // Means of integers are rounded down.
    let at = Tensor::new([0i64, 2, 0, 2, 2]).unwrap();
    let (own, src) = (Tensor::new([2i64, 3, -1]).unwrap(), Tensor::new([4i64, -7, 4, -1, 2]).unwrap());
    let of = |include| own.scatter_reduce_with(0, &at, &src, Mean, include).unwrap().to_vec::<i64>().unwrap();
    assert_eq!((of(true), of(false)), (vec![3, 3, -2], vec![4, 3, -2]));
    // Gradients of products with zeros: one at the first place beside that of `self`, and one alone at the last.
    let own = row(&[0.0, 3.0, 2.0]).requires_grad_(true).unwrap();
    let src = row(&[0.0, 2.0, 4.0, 0.0, 2.0]).requires_grad_(true).unwrap();
    let made = own.scatter_reduce(0, &at, &src, Prod).unwrap();
    made.backward_with(&row(&[1.0, 10.0, 100.0])).unwrap();
    near(&made.detach(), &[0.0, 3.0, 0.0], 0.0);
    near(&own.grad().unwrap(), &[0.0, 10.0, 0.0], 0.0);
    near(&src.grad().unwrap(), &[0.0, 0.0, 0.0, 800.0, 0.0], 0.0);
    // NaN wins, and so has no share that is a number.
    let made = row(&[NAN, 3.0, 4.0]).scatter_reduce(0, &at, &row(&[4.0, 4.0, NAN, 4.0, 2.0]), Amax).unwrap();
    near(&made, &[NAN, 3.0, 4.0], 0.0);
    // PyTorch counts the excluded element among those that share, by which a part of the gradient is lost: a third each.
    let src = row(&[4.0, 4.0, 1.0, 4.0, 2.0]).requires_grad_(true).unwrap();
    let made = row(&[2.0, 3.0, 4.0]).scatter_reduce_with(0, &at, &src, Amax, false).unwrap();
    made.backward_with(&row(&[1.0, 10.0, 100.0])).unwrap();
    near(&src.grad().unwrap(), &[1.0, 50.0, 0.0, 50.0, 0.0], 0.0);
}

#[test]
fn elements_where_a_mask_is_true() {
    let mask = Tensor::new([true, false, true, true]).unwrap();
    let own = row(&[1.0, 2.0, 3.0, 4.0]).requires_grad_(true).unwrap();
    let src = row(&[10.0, 20.0, 30.0, 40.0, 50.0]).requires_grad_(true).unwrap();
    let made = own.masked_scatter(&mask, &src).unwrap();
    made.backward_with(&row(&[1.0, 2.0, 3.0, 4.0])).unwrap();
    near(&made.detach(), &[10.0, 2.0, 20.0, 30.0], 0.0);
    near(&own.grad().unwrap(), &[0.0, 2.0, 0.0, 0.0], 0.0);
    near(&src.grad().unwrap(), &[1.0, 3.0, 4.0, 0.0, 0.0], 0.0);
    let wide = row(&[0.0; 3]).expand([2, 3]).unwrap().copy().unwrap();
    let columns = Tensor::new([true, false, true]).unwrap();
    let ten = Tensor::arange(0, 10).unwrap().to_dtype(keyway::DType::F64).unwrap();
    near(&wide.masked_scatter(&columns, &ten).unwrap(), &[0.0, 0.0, 1.0, 2.0, 0.0, 3.0], 0.0);
    wide.masked_scatter_(&columns, &ten).unwrap();
    near(&wide, &[0.0, 0.0, 1.0, 2.0, 0.0, 3.0], 0.0);
}

#[test]
fn neighbouring_numbers() {
    use keyway::DType;
    let x = [1.0, 1.0, 0.0, -0.0, INF, -INF, 3.0, NAN, 1.0];
    let y = [2.0, -2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 1.0, NAN];
    let of = |dtype: DType, x: &[f64], y: &[f64]| {
        let cast = |v: &[f64]| row(v).to_dtype(dtype).unwrap();
        cast(x).nextafter(&cast(y)).unwrap().to_dtype(DType::F64).unwrap()
    };
    let table = [
        (DType::F64, 1.0000000000000002, 0.9999999999999999, f64::MAX, 5e-324),
        (DType::F32, 1.0000001192092896, 0.9999999403953552, 3.4028234663852886e38, 1.401298464324817e-45),
        (DType::BF16, 1.0078125, 0.99609375, 3.3895313892515355e38, 9.183549615799121e-41),
        (DType::F16, 1.0009765625, 0.99951171875, 65504.0, 5.960464477539063e-08),
    ];
    for (dtype, above, below, most, least) in table {
        near(&of(dtype, &x, &y), &[above, below, 0.0, 0.0, most, -most, 3.0, NAN, NAN], 0.0);
        near(
            &of(dtype, &[0.0, 0.0, most, least, -least], &[-1.0, 1.0, INF, 1.0, -1.0]),
            &[-least, least, INF, 2.0 * least, -2.0 * least],
            0.0,
        );
        let zeros = numbers(&of(dtype, &[0.0, -0.0, -least], &[-0.0, 0.0, 0.0]));
        let signs: Vec<bool> = zeros.iter().map(|v| v.is_sign_negative()).collect();
        assert_eq!((zeros, signs), (vec![0.0; 3], vec![true, false, true]), "{dtype}");
    }
    // PyTorch gives 0 where both are equal, although the neighbours there move as elsewhere.
    let made = gradient(&[1.0, 2.0, 3.0], &[1.0; 3], |x| x.nextafter(&row(&[2.0, 2.0, 1.0])));
    near(&made, &[1.0; 3], 0.0);
}

/// Compares in f64, and in f32 from the f32 values, each within this number of ULP of its dtype.
fn near_in_both(of: fn(&Tensor) -> keyway::Result<Tensor>, x: &[f64], wanted: &[f64], ulps: f64) {
    near(&of(&row(x)).unwrap(), wanted, ulps);
    let narrow = row(x).to_dtype(keyway::DType::F32).unwrap();
    let exact = of(&narrow.to_dtype(keyway::DType::F64).unwrap()).unwrap();
    let made = of(&narrow).unwrap().to_dtype(keyway::DType::F64).unwrap();
    let steps = ulps * f64::from(f32::EPSILON) / f64::EPSILON;
    near(&made, &numbers(&exact), steps);
}

#[test]
fn gamma_functions() {
    let x = [
        0.03125,
        0.5,
        0.9,
        0.9990234375,
        1.0009765625,
        1.25,
        1.5,
        1.75,
        1.9990234375,
        2.0078125,
        2.5,
        3.75,
        6.5,
        8.999,
        9.25,
        25.0,
        1234.5,
        10000000000.0,
        -0.25,
        -0.75,
        -3.3,
        -7.9,
        -20.6,
    ];
    near_in_both(
        Tensor::lgamma,
        &x,
        &[
            3.4484891277979584,
            0.5723649429247001,
            0.06637623973474295,
            0.0005644719118551234,
            -0.0005629031799912047,
            -0.09827183642181316,
            -0.12078223763524522,
            -0.08440112102048555,
            -0.0004125677359714894,
            0.00332265240410265,
            0.2846828704729192,
            1.486815578593417,
            5.662562059857142,
            10.602462320025602,
            11.143400119951712,
            54.78472939811232,
            7550.550901077895,
            220258509288.81058,
            1.589575312551186,
            1.5757045971498584,
            -0.8243558050174264,
            -8.072039736012833,
            -42.96171354661886,
        ],
        8.0,
    );
    near_in_both(
        Tensor::digamma,
        &x,
        &[
            -32.526953288606116,
            -1.9635100260214235,
            -0.7549269499470513,
            -0.5788231932059208,
            -0.5756104293406219,
            -0.22745353337626542,
            0.03648997397857652,
            0.24747245354686118,
            0.42215432390062857,
            0.4278105890387762,
            0.7031566406452432,
            1.1825373886117962,
            1.792911330399933,
            2.1405239590437173,
            2.1695966825786157,
            3.198742512851974,
            7.118016231827998,
            23.025850929890456,
            2.9141391202135276,
            -2.894120200042932,
            3.620353460592126,
            -7.540007224419479,
            2.02860126183962,
        ],
        8.0,
    );
    near_in_both(
        |x| x.polygamma(1),
        &x,
        &[
            1025.5728544782378,
            4.934802200544679,
            1.9225399594772035,
            1.6472849346563088,
            1.6425893921526171,
            1.1973291545071107,
            0.9348022005446793,
            0.7641018698938287,
            0.6453289449035164,
            0.6417919314581404,
            0.49035775610023485,
            0.3053398526902531,
            0.16628453574995825,
            0.11752580963061462,
            0.11416188455670626,
            0.04081066325722558,
            0.0008103727271269667,
            1.00000000005e-10,
            18.541879647671607,
            18.975106932284888,
            14.817739525515929,
            103.23693140003948,
            10.864181760517212,
        ],
        8.0,
    );
    near_in_both(
        |x| x.polygamma(2),
        &x,
        &[
            -65538.21273640274,
            -16.82879664423432,
            -3.20179704379472,
            -2.410467429690173,
            -2.397783916396063,
            -1.3277399375369203,
            -0.82879664423432,
            -0.5618924755968989,
            -0.4045965919446021,
            -0.4002817869664587,
            -0.2362040516417274,
            -0.09254633851589927,
            -0.0275879107068768,
            -0.013796554160088993,
            -0.013018895947791367,
            -0.001665279318422468,
            -6.567039209328715e-07,
            -1.0000000001e-20,
            122.69736678366236,
            -124.58699919679619,
            68.76944547748523,
            -1998.6737828651746,
            -22.27854195784691,
        ],
        30.0,
    );
    let ends = row(&[0.0, -0.0, -1.0, -2.0, INF, -INF, NAN, 1e-300, -1e-300, 1e300, 2.5e305, 2.6e305]);
    let tiny = 690.7755278982137;
    let wanted =
        [INF, INF, INF, INF, INF, INF, NAN, tiny, tiny, 6.897755278982137e302, 1.7555118602376452e308, INF];
    near(&ends.lgamma().unwrap(), &wanted, 4.0);
    let wanted =
        [-INF, INF, NAN, NAN, INF, NAN, NAN, -1e300, 1e300, tiny, 703.2047440950581, 703.2439648082113];
    near(&ends.digamma().unwrap(), &wanted, 4.0);
    // At the poles PyTorch returns 6.6e32, the square of the reciprocal of its sine's error.
    let wanted = [INF, INF, INF, INF, 0.0, NAN, NAN, INF, INF, 1e-300, 4e-306, 3.846153846153846e-306];
    near(&ends.polygamma(1).unwrap(), &wanted, 4.0);
    let x = row(&[0.5, 3.0, -1.5]).requires_grad_(true).unwrap();
    let first = gradient(&[0.5, 3.0, -1.5], &[1.0; 3], Tensor::lgamma);
    near(&first, &[-1.9635100260214235, 0.9227843350984671, 0.7031566406452432], 8.0);
    near(
        &gradient(&[0.5, 3.0, -1.5], &[1.0; 3], Tensor::digamma),
        &[4.934802200544679, 0.3949340668482264, 9.379246644989124],
        8.0,
    );
    near(&x.polygamma(0).unwrap(), &numbers(&x.digamma().unwrap()), 0.0);
    let whole = Tensor::new([5i64]).unwrap().lgamma().unwrap();
    assert_eq!(whole.to_vec::<f32>().unwrap(), [24f32.ln()]);
}

#[test]
fn inverse_of_the_error_function() {
    let y = [
        1e-300,
        0.01,
        0.3,
        -0.5,
        0.7,
        0.84,
        0.86,
        0.95,
        -0.999,
        0.9999990463256836,
        0.9999999990686774,
        0.9999999999999716,
        0.9999999999999999,
    ];
    near(
        &row(&y).erfinv().unwrap(),
        &[
            8.86226925452758e-301,
            0.008862501280950598,
            0.2724627147267543,
            -0.4769362762044699,
            0.7328690779592167,
            0.9935356283473041,
            1.0435418436397588,
            1.3859038243496777,
            -2.3267537655135246,
            3.465505025803331,
            4.328028275800946,
            5.377767781541279,
            5.8635847487551676,
        ],
        6.0,
    );
    near_in_both(
        Tensor::erfinv,
        &y[1..9],
        &[
            8.86226925452758e-301,
            0.008862501280950598,
            0.2724627147267543,
            -0.4769362762044699,
            0.7328690779592167,
            0.9935356283473041,
            1.0435418436397588,
            1.3859038243496777,
            -2.3267537655135246,
            3.465505025803331,
            4.328028275800946,
            5.377767781541279,
            5.8635847487551676,
        ][1..9],
        6.0,
    );
    near(&row(&[1.0, -1.0, 1.5, NAN]).erfinv().unwrap(), &[INF, -INF, NAN, NAN], 0.0);
    assert!(numbers(&row(&[-0.0]).erfinv().unwrap())[0].is_sign_negative());
    near(&gradient(&[0.5, -0.9], &[1.0; 2], Tensor::erfinv), &[1.1125848189719496, 3.4280428114518418], 8.0);
}

#[test]
fn draws_follow_their_distribution_and_repeat() {
    let p = Tensor::from_vec(vec![1.0f32, 0.0, 3.0, 4.0, 5.0, 5.0, 0.0, 0.0], [2, 4]).unwrap();
    let draw = |count, replacement| {
        keyway::manual_seed(5);
        p.multinomial_with(count, replacement).unwrap()
    };
    let places = draw(20_000, true);
    assert_eq!((places.shape(), places.dtype()), (&[2, 20_000][..], keyway::DType::I64));
    assert_eq!(places.to_vec::<i64>().unwrap(), draw(20_000, true).to_vec::<i64>().unwrap());
    let next = p.multinomial_with(20_000, true).unwrap().to_vec::<i64>().unwrap();
    assert_ne!(places.to_vec::<i64>().unwrap(), next);
    let share = |row: usize, at: i64| {
        let all = places.to_vec::<i64>().unwrap();
        all[row * 20_000..][..20_000].iter().filter(|&&v| v == at).count() as f64 / 20_000.0
    };
    for (row, shares) in [[0.125, 0.0, 0.375, 0.5], [0.5, 0.5, 0.0, 0.0]].into_iter().enumerate() {
        for (at, wanted) in shares.into_iter().enumerate() {
            // Four standard deviations.
            assert!((share(row, at as i64) - wanted).abs() <= 0.0142, "{row} {at}");
        }
    }
    // Without replacement the first draw is one of the same distribution, and none comes twice.
    let many = row(&[1.0, 0.0, 3.0, 4.0]).expand([20_000, 4]).unwrap();
    keyway::manual_seed(6);
    let drawn = many.multinomial(3).unwrap().to_vec::<i64>().unwrap();
    let mut first = [0.0f64; 4];
    let mut second_of_last = [0.0f64; 4];
    for row in drawn.chunks(3) {
        let mut sorted = row.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 2, 3]);
        first[row[0] as usize] += 1.0 / 20_000.0;
        if row[0] == 3 {
            second_of_last[row[1] as usize] += 1.0 / 10_000.0;
        }
    }
    for (got, wanted) in first.iter().zip([0.125, 0.0, 0.375, 0.5]) {
        assert!((got - wanted).abs() <= 0.0142, "{first:?}");
    }
    // The shares after the last element: a quarter and three quarters.
    assert!((second_of_last[0] - 0.125 * 2.0).abs() <= 0.02, "{second_of_last:?}");
    let refuses = |p: &[f64], count, replacement, message: &str| {
        let text = row(p).multinomial_with(count, replacement).unwrap_err().to_string();
        assert!(text.contains(message), "`{text}` lacks `{message}`");
    };
    refuses(&[1.0, -1.0], 1, true, "negative");
    refuses(&[1.0, 0.0], 2, false, "or `replacement`");
    refuses(&[0.0, 0.0], 1, false, "above 0");
    // The largest values, whose sum overflows.
    assert_eq!(row(&[f64::MAX, f64::MAX]).multinomial(2).unwrap().shape(), [2]);
}

#[test]
fn quantiles() {
    use Interpolation::{Higher, Linear, Lower, Midpoint, Nearest};
    let x = row(&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]);
    let shares = row(&[0.0, 0.1, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0]);
    let table: [(Interpolation, [f64; 8]); 5] = [
        (Linear, [1.0, 1.0, 1.75, 3.5, 4.2, 5.25, 6.8999999999999995, 9.0]),
        (Lower, [1.0, 1.0, 1.0, 3.0, 4.0, 5.0, 6.0, 9.0]),
        (Higher, [1.0, 1.0, 2.0, 4.0, 5.0, 6.0, 9.0, 9.0]),
        (Midpoint, [1.0, 1.0, 1.5, 3.5, 4.5, 5.5, 7.5, 9.0]),
        (Nearest, [1.0, 1.0, 2.0, 4.0, 4.0, 5.0, 6.0, 9.0]),
    ];
    for (interpolation, wanted) in table {
        near(&x.quantile_with(&shares, Some(0), false, interpolation).unwrap(), &wanted, 4.0);
    }
    let some = row(&[3.0, NAN, 1.0, 4.0, NAN, 2.0]);
    let table: [(Interpolation, [f64; 4]); 5] = [
        (Linear, [1.0, 1.9, 2.5, 4.0]),
        (Lower, [1.0, 1.0, 2.0, 4.0]),
        (Higher, [1.0, 2.0, 3.0, 4.0]),
        (Midpoint, [1.0, 1.5, 2.5, 4.0]),
        (Nearest, [1.0, 2.0, 3.0, 4.0]),
    ];
    for (interpolation, wanted) in table {
        let shares = row(&[0.0, 0.3, 0.5, 1.0]);
        near(&some.nanquantile_with(&shares, None, false, interpolation).unwrap(), &wanted, 4.0);
    }
    near(&some.quantile_all(0.5).unwrap(), &[NAN], 0.0);
    near(&row(&[NAN, NAN]).nanquantile_all(0.5).unwrap(), &[NAN], 0.0);
    let a = row(&[1.0, 5.0, 2.0, 8.0, NAN, 3.0]).reshape([2, 3]).unwrap();
    let both = row(&[0.25, 0.75]);
    let check = |made: keyway::Result<Tensor>, sizes: &[usize], wanted: &[f64]| {
        let made = made.unwrap();
        assert_eq!(made.shape(), sizes);
        near(&made, wanted, 1.0);
    };
    check(a.quantile(0.5, 0), &[3], &[4.5, NAN, 2.5]);
    check(a.quantile(&both, 0), &[2, 3], &[2.75, NAN, 2.25, 6.25, NAN, 2.75]);
    check(a.quantile(&both, -1), &[2, 2], &[1.5, NAN, 3.5, NAN]);
    check(a.quantile_keepdim(&both, 1), &[2, 2, 1], &[1.5, NAN, 3.5, NAN]);
    check(a.quantile_keepdim(0.5, 0), &[1, 3], &[4.5, NAN, 2.5]);
    check(a.nanquantile(&both, 1), &[2, 2], &[1.5, 4.25, 3.5, 6.75]);
    check(a.nanquantile_keepdim(&both, 0), &[2, 1, 3], &[2.75, 5.0, 2.25, 6.25, 5.0, 2.75]);
    check(a.nanquantile_all(&both), &[2], &[2.0, 5.0]);
    check(a.nanquantile_with(&both, None, true, Linear), &[2, 1, 1], &[2.0, 5.0]);
    check(a.nanquantile_with(0.5, None, true, Linear), &[1, 1], &[3.0]);
    check(Tensor::new(3.0f64).unwrap().quantile(0.5, 0), &[], &[3.0]);
    check(row(&[1.0, 2.0]).quantile(&row(&[]), 0), &[0], &[]);
    let half = row(&[1.0, 2.0]).to_dtype(keyway::DType::F16).unwrap().quantile(0.5, 0).unwrap();
    assert_eq!(
        (half.dtype(), half.to_dtype(keyway::DType::F64).unwrap().item::<f64>().unwrap()),
        (keyway::DType::F16, 1.5)
    );
    for (interpolation, wanted) in [
        (Linear, [0.3, 0.1, 0.7, 0.9]),
        (Lower, [1.0, 1.0, 0.0, 0.0]),
        (Higher, [0.0, 0.0, 1.0, 1.0]),
        (Midpoint, [0.5; 4]),
        (Nearest, [0.0, 0.0, 1.0, 1.0]),
    ] {
        let both = row(&[0.3, 0.9]);
        let made = gradient(&[3.0, 1.0, 4.0, 1.0], &[1.0; 2], |x| {
            x.quantile_with(&both, Some(0), false, interpolation)
        });
        // The shares of places are differences, whose last digits are lost.
        let (made, wanted) = (numbers(&made), wanted);
        assert!(made.iter().zip(wanted).all(|(m, w)| (m - w).abs() < 1e-15), "{interpolation:?}: {made:?}");
    }
    let made =
        gradient(&[3.0, NAN, 4.0, 1.0], &[1.0], |x| x.nanquantile_with(&row(&[0.4]), None, false, Linear));
    near(&made, &[0.8, 0.0, 0.0, 0.2], 4.0);
    let refuses = |made: keyway::Result<Tensor>, message: &str| {
        let text = made.unwrap_err().to_string();
        assert!(text.contains(message), "`{text}` lacks `{message}`");
    };
    refuses(x.quantile(1.5, 0), "from 0 to 1");
    refuses(x.quantile(NAN, 0), "from 0 to 1");
    refuses(x.quantile(0.5, 1), "out of range");
    refuses(x.quantile(&a, 0), "of one dimension");
    refuses(row(&[]).quantile(0.5, 0), "not empty");
    refuses(Tensor::new([1i64]).unwrap().quantile(0.5, 0), "a float dtype");
    // First and second derivatives against differences.
    use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
    let leaf = row(&[0.3, -1.2, 2.1, 0.8, -0.4, 1.7]).reshape([2, 3]).unwrap().requires_grad_(true).unwrap();
    let function = |t: &[Tensor]| Ok(vec![t[0].square()?.quantile(&both, 1)?]);
    for check in [gradcheck, gradgradcheck] {
        let found = check(&function, std::slice::from_ref(&leaf), Tolerance::default());
        assert!(matches!(found, Ok(None)), "{found:?}");
    }
}

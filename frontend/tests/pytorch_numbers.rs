//! Numbers that PyTorch 2.15 gives, on CPU, for ops whose corners are a matter of convention.

use keyway::Tensor;

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

/// What `reduce` makes of `[2, 3, -1]` and `[4, 2, 4, -1, 2]`, and the gradients of both.
fn reductions(index: bool, reduce: &str, include: bool) -> [Vec<f64>; 3] {
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
    let third = 100.0 / 3.0;
    let table: [(&str, bool, [&[f64]; 3]); 10] = [
        ("sum", true, [&[10.0, 3.0, 2.0], &[1.0, 10.0, 100.0], &[1.0, 100.0, 1.0, 100.0, 100.0]]),
        ("sum", false, [&[8.0, 3.0, 3.0], &[0.0, 10.0, 0.0], &[1.0, 100.0, 1.0, 100.0, 100.0]]),
        ("prod", true, [&[32.0, 3.0, 4.0], &[16.0, 10.0, -400.0], &[8.0, 200.0, 8.0, -400.0, 200.0]]),
        ("prod", false, [&[16.0, 3.0, -4.0], &[0.0, 10.0, 0.0], &[4.0, -200.0, 4.0, 400.0, -200.0]]),
        (
            "mean",
            true,
            [&[10.0 / 3.0, 3.0, 0.5], &[1.0 / 3.0, 10.0, 25.0], &[1.0 / 3.0, 25.0, 1.0 / 3.0, 25.0, 25.0]],
        ),
        ("mean", false, [&[4.0, 3.0, 1.0], &[0.0, 10.0, 0.0], &[0.5, third, 0.5, third, third]]),
        ("amax", true, [&[4.0, 3.0, 2.0], &[0.0, 10.0, 0.0], &[0.5, 50.0, 0.5, 0.0, 50.0]]),
        ("amax", false, [&[4.0, 3.0, 2.0], &[0.0, 10.0, 0.0], &[0.5, 50.0, 0.5, 0.0, 50.0]]),
        ("amin", true, [&[2.0, 3.0, -1.0], &[1.0, 10.0, 50.0], &[0.0, 0.0, 0.0, 50.0, 0.0]]),
        // PyTorch gives 50 to the fourth: it counts the excluded -1 among those that share.
        ("amin", false, [&[4.0, 3.0, -1.0], &[0.0, 10.0, 0.0], &[0.5, 0.0, 0.5, 100.0, 0.0]]),
    ];
    for (reduce, include, wanted) in table {
        for index in [false, true].into_iter().filter(|index| !index || reduce != "sum") {
            for (got, wanted) in reductions(index, reduce, include).iter().zip(wanted) {
                near(&row(got), wanted, 1.0);
            }
        }
    }
    // Means of integers are rounded down.
    let at = Tensor::new([0i64, 2, 0, 2, 2]).unwrap();
    let (own, src) = (Tensor::new([2i64, 3, -1]).unwrap(), Tensor::new([4i64, -7, 4, -1, 2]).unwrap());
    let of =
        |include| own.scatter_reduce_with(0, &at, &src, "mean", include).unwrap().to_vec::<i64>().unwrap();
    assert_eq!((of(true), of(false)), (vec![3, 3, -2], vec![4, 3, -2]));
    // Gradients of products with zeros: one at the first place beside that of `self`, and one alone at the last.
    let own = row(&[0.0, 3.0, 2.0]).requires_grad_(true).unwrap();
    let src = row(&[0.0, 2.0, 4.0, 0.0, 2.0]).requires_grad_(true).unwrap();
    let made = own.scatter_reduce(0, &at, &src, "prod").unwrap();
    made.backward_with(&row(&[1.0, 10.0, 100.0])).unwrap();
    near(&made.detach(), &[0.0, 3.0, 0.0], 0.0);
    near(&own.grad().unwrap(), &[0.0, 10.0, 0.0], 0.0);
    near(&src.grad().unwrap(), &[0.0, 0.0, 0.0, 800.0, 0.0], 0.0);
    // NaN wins, and so has no share that is a number.
    let made =
        row(&[NAN, 3.0, 4.0]).scatter_reduce(0, &at, &row(&[4.0, 4.0, NAN, 4.0, 2.0]), "amax").unwrap();
    near(&made, &[NAN, 3.0, 4.0], 0.0);
    // PyTorch counts the excluded element among those that share, by which a part of the gradient is lost: a third each.
    let src = row(&[4.0, 4.0, 1.0, 4.0, 2.0]).requires_grad_(true).unwrap();
    let made = row(&[2.0, 3.0, 4.0]).scatter_reduce_with(0, &at, &src, "amax", false).unwrap();
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
    let wide = row(&[0.0; 3]).expand(&[2, 3]).unwrap().copy().unwrap();
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
    near(
        &gradient(&[1.0, 2.0, 3.0], &[1.0; 3], |x| x.nextafter(&row(&[2.0, 2.0, 1.0]))),
        &[1.0, 0.0, 1.0],
        0.0,
    );
}

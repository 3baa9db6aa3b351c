//! Methods that are short formulas of ops, compared with PyTorch's values (2.15, in f64).

// The numbers are as they were printed, also where they have a name.
#![allow(clippy::approx_constant)]

use keyway::nn::Reduction;
use keyway::prelude::*;
use keyway::{Error, Result};
use std::f64::consts::PI;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn row(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, values.len()).unwrap()
}

fn numbers(t: &Tensor) -> Vec<f64> {
    t.to_vec_f64().unwrap()
}

/// Equal up to some roundings; NaN where NaN is expected.
#[track_caller]
fn near(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (&a, &b)) in got.iter().zip(expected).enumerate() {
        let close = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-15 + 4e-15 * b.abs();
        assert!(close, "{what}, number {i}: {a}, expected {b}");
    }
}

const X: [f64; 18] =
    [-INF, -40.0, -6.5, -3.0, -1.0, -0.5, -0.3, -0.0, 0.0, 0.2, 0.5, 1.0, 2.5, 3.0, 6.0, 40.0, INF, NAN];
type Function = fn(&Tensor) -> Result<Tensor>;

#[test]
fn values_and_gradients_at_corners_and_far_out() {
    let table: [(Function, [f64; 18], [f64; 18]); 10] = [
        (
            Tensor::hardtanh,
            [
                -1.0, -1.0, -1.0, -1.0, -1.0, -0.5, -0.3, -0.0, 0.0, 0.2, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0,
                NAN,
            ],
            [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        ),
        (
            Tensor::relu6,
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.0, 0.0, 0.2, 0.5, 1.0, 2.5, 3.0, 6.0, 6.0, 6.0, NAN],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        ),
        (
            Tensor::hardsigmoid,
            [
                0.0,
                0.0,
                0.0,
                0.0,
                0.3333333333333333,
                0.4166666666666667,
                0.45,
                0.5,
                0.5,
                0.5333333333333333,
                0.5833333333333334,
                0.6666666666666666,
                0.9166666666666666,
                1.0,
                1.0,
                1.0,
                1.0,
                NAN,
            ],
            [
                0.0,
                0.0,
                0.0,
                0.0,
                1.0 / 6.0,
                1.0 / 6.0,
                1.0 / 6.0,
                1.0 / 6.0,
                1.0 / 6.0,
                1.0 / 6.0,
                1.0 / 6.0,
                1.0 / 6.0,
                1.0 / 6.0,
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
            ],
        ),
        (
            Tensor::logsigmoid,
            [
                -INF,
                -40.0,
                -6.501502310159754,
                -3.048587351573742,
                -1.3132616875182228,
                -0.9740769841801067,
                -0.8543552444685272,
                -0.6931471805599453,
                -0.6931471805599453,
                -0.5981388693815918,
                -0.4740769841801067,
                -0.31326168751822286,
                -0.07888973429254963,
                -0.04858735157374206,
                -0.0024756851377304495,
                -4.248354255291589e-18,
                0.0,
                NAN,
            ],
            [
                1.0,
                1.0,
                0.998498817743263,
                0.9525741268224333,
                0.7310585786300049,
                0.6224593312018545,
                0.5744425168116589,
                0.5,
                0.5,
                0.4501660026875221,
                0.37754066879814546,
                0.2689414213699951,
                0.07585818002124356,
                0.04742587317756679,
                0.0024726231566347748,
                4.248354255291589e-18,
                0.0,
                NAN,
            ],
        ),
        (
            Tensor::softsign,
            [
                NAN,
                -0.975609756097561,
                -0.8666666666666667,
                -0.75,
                -0.5,
                -0.3333333333333333,
                -0.23076923076923075,
                -0.0,
                0.0,
                0.16666666666666669,
                0.3333333333333333,
                0.5,
                0.7142857142857143,
                0.75,
                0.8571428571428571,
                0.975609756097561,
                NAN,
                NAN,
            ],
            [
                NAN,
                0.0005948839976204663,
                0.017777777777777767,
                0.0625,
                0.25,
                0.4444444444444444,
                0.5917159763313609,
                1.0,
                1.0,
                0.6944444444444444,
                0.4444444444444444,
                0.25,
                0.08163265306122447,
                0.0625,
                0.020408163265306117,
                0.0005948839976204663,
                NAN,
                NAN,
            ],
        ),
        (
            Tensor::tanhshrink,
            [
                -INF,
                -39.0,
                -5.500004520648596,
                -2.0049452463132695,
                -0.23840584404423515,
                -0.03788284273999021,
                -0.008687387548409087,
                0.0,
                0.0,
                0.002624679775096006,
                0.03788284273999021,
                0.23840584404423515,
                1.5133857018485697,
                2.0049452463132695,
                5.000012288349204,
                39.0,
                INF,
                NAN,
            ],
            [
                1.0,
                1.0,
                0.9999909587232446,
                0.9901339628345598,
                0.5800256583859739,
                0.2135522670340726,
                0.08486303817337082,
                0.0,
                0.0,
                0.038957017033883434,
                0.2135522670340726,
                0.5800256583859739,
                0.9734077733168395,
                0.9901339628345598,
                0.9999754234525947,
                1.0,
                1.0,
                NAN,
            ],
        ),
        (
            Tensor::hardshrink,
            [-INF, -40.0, -6.5, -3.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.5, 3.0, 6.0, 40.0, INF, NAN],
            [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        ),
        (
            Tensor::exp2,
            [
                0.0,
                9.094947017729282e-13,
                0.011048543456039804,
                0.125,
                0.5,
                0.7071067811865475,
                0.8122523963562356,
                1.0,
                1.0,
                1.148698354997035,
                1.414213562373095,
                2.0,
                5.65685424949238,
                8.0,
                64.0,
                1099511627776.0,
                INF,
                NAN,
            ],
            [
                0.0,
                6.304136882681135e-13,
                0.007658266745848024,
                0.08664339756999316,
                0.34657359027997264,
                0.49012907173427356,
                0.5630104584373838,
                0.6931471805599453,
                0.6931471805599453,
                0.796217026080042,
                0.9802581434685471,
                1.3862943611198906,
                3.9210325738741885,
                5.545177444479562,
                44.3614195558365,
                762123384785.8104,
                INF,
                NAN,
            ],
        ),
        (
            Tensor::frac,
            [NAN, 0.0, -0.5, 0.0, 0.0, -0.5, -0.3, 0.0, 0.0, 0.2, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, NAN, NAN],
            [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        ),
        (
            Tensor::logit,
            [
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                -INF,
                -INF,
                -1.3862943611198906,
                0.0,
                INF,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
            ],
            [
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                -INF,
                INF,
                6.249999999999999,
                4.0,
                INF,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
                NAN,
            ],
        ),
    ];
    let names = [
        "hardtanh",
        "relu6",
        "hardsigmoid",
        "logsigmoid",
        "softsign",
        "tanhshrink",
        "hardshrink",
        "exp2",
        "frac",
        "logit",
    ];
    for ((function, values, gradients), name) in table.into_iter().zip(names) {
        let x = row(&X).requires_grad_(true).unwrap();
        let y = function(&x).unwrap();
        near(&numbers(&y.detach()), &values, name);
        y.sum(..).unwrap().backward().unwrap();
        let (mut got, mut expected) = (numbers(&x.grad().unwrap()), gradients.to_vec());
        // PyTorch differs: at NaN for `hardsigmoid` and `logit`, at the infinities for `softsign`, whose limit is 0.
        let left_out: Vec<usize> = match name {
            "hardsigmoid" => vec![17],
            "softsign" => (0..18).filter(|&i| X[i].is_infinite()).collect(),
            "logit" => (0..18).filter(|&i| values[i].is_nan()).collect(),
            _ => vec![],
        };
        left_out.iter().for_each(|&i| (got[i], expected[i]) = (0.0, 0.0));
        near(&got, &expected, &format!("the gradient of {name}"));
    }
}

/// In 16 bits each result is that of f32, rounded once, even if rounding each step would lose it.
#[test]
fn halves_are_rounded_once() {
    let all: [(Function, &str); 6] = [
        (Tensor::hardsigmoid, "hardsigmoid"),
        (Tensor::logsigmoid, "logsigmoid"),
        (Tensor::softsign, "softsign"),
        (Tensor::tanhshrink, "tanhshrink"),
        (Tensor::logit, "logit"),
        (Tensor::frac, "frac"),
    ];
    let x = row(&[-3.7, -0.2, 0.01, 0.37, 0.6, 0.99, 5.3]);
    for dtype in [DType::F16, DType::BF16] {
        let narrow = x.to_dtype(dtype).unwrap();
        for (function, name) in all {
            let made = function(&narrow).unwrap();
            assert_eq!(made.dtype(), dtype, "{name}");
            let wide = function(&narrow.to_dtype(DType::F32).unwrap()).unwrap().to_dtype(dtype).unwrap();
            near(&numbers(&made), &numbers(&wide), name);
        }
    }
}

#[test]
fn extremes_beside_nan() -> Result<()> {
    let x = row(&[NAN, 1.0, NAN, 2.0, -0.0, 3.0]).requires_grad_(true)?;
    let y = row(&[1.0, NAN, NAN, 2.0, 0.0, -1.0]).requires_grad_(true)?;
    type Pair = fn(&Tensor, &Tensor) -> Result<Tensor>;
    type Row = (Pair, [f64; 6], [f64; 6], [f64; 6]);
    let table: [Row; 2] = [
        (
            Tensor::fmax,
            [1.0, 1.0, NAN, 2.0, 0.0, 3.0],
            [0.0, 1.0, 0.0, 0.5, 0.5, 1.0],
            [1.0, 0.0, 1.0, 0.5, 0.5, 0.0],
        ),
        (
            Tensor::fmin,
            [1.0, 1.0, NAN, 2.0, 0.0, -1.0],
            [0.0, 1.0, 0.0, 0.5, 0.5, 0.0],
            [1.0, 0.0, 1.0, 0.5, 0.5, 1.0],
        ),
    ];
    for (function, values, of_x, of_y) in table {
        x.zero_grad();
        y.zero_grad();
        let made = function(&x, &y)?;
        near(&numbers(&made.detach()), &values, "values");
        made.sum(..)?.backward()?;
        // If both are NaN, PyTorch passes the gradient to the first; here to the selected one, the second.
        near(&numbers(&x.grad().unwrap()), &of_x, "of x");
        near(&numbers(&y.grad().unwrap()), &of_y, "of y");
    }
    let signs = row(&[-0.0, 0.0, -INF, -1.0]).signbit()?;
    assert_eq!(signs.to_vec::<bool>()?, [true, false, true, true]);
    assert_eq!(Tensor::new([-1i64, 0, 2])?.signbit()?.to_vec::<bool>()?, [true, false, false]);
    assert_eq!(row(&[INF, -INF, NAN, 1.0]).isposinf()?.to_vec::<bool>()?, [true, false, false, false]);
    assert_eq!(row(&[INF, -INF, NAN, 1.0]).isneginf()?.to_vec::<bool>()?, [false, true, false, false]);
    let steps = row(&[-1.0, 0.0, -0.0, 2.0, NAN]).heaviside(&row(&[0.5]))?;
    assert_eq!(numbers(&steps), [0.0, 0.5, 0.5, 1.0, 0.0]);
    near(&numbers(&row(&[-1.0, 0.5, 2.0, NAN]).threshold(0.5, 9.0)?), &[9.0, 9.0, 2.0, NAN], "threshold");
    near(&numbers(&row(&[90.0, -INF]).deg2rad()?), &[PI / 2.0, -INF], "deg2rad");
    near(&numbers(&row(&[PI, NAN]).rad2deg()?), &[180.0, NAN], "rad2deg");
    Ok(())
}

#[test]
fn turned_and_joined() -> Result<()> {
    let a = Tensor::arange(0, 6)?.reshape((2, 3))?;
    let rotated = [[0, 1, 2, 3, 4, 5], [2, 5, 1, 4, 0, 3], [5, 4, 3, 2, 1, 0], [3, 0, 4, 1, 5, 2]];
    for k in -5i64..=5 {
        let expected = rotated[k.rem_euclid(4) as usize];
        let made = a.rot90_with(k, (0, 1))?;
        assert_eq!(made.to_vec::<i64>()?, expected, "{k}");
        assert_eq!(made.shape(), if k % 2 == 0 { [2, 3] } else { [3, 2] });
        assert_eq!(a.rot90_with(-k, (-1, 0))?.to_vec::<i64>()?, expected, "{k}");
    }
    assert!(a.rot90_with(1, (0, 0)).is_err() && a.rot90_with(0, (0, 2)).is_err());
    let (one, two) = (Tensor::new(1i64)?, Tensor::new([2i64])?);
    assert_eq!(Tensor::hstack(&[&one, &two])?.to_vec::<i64>()?, [1, 2]);
    assert_eq!(Tensor::hstack(&[&a, &a])?.shape(), [2, 6]);
    assert_eq!(Tensor::vstack(&[&one, &two])?.shape(), [2, 1]);
    assert_eq!(Tensor::vstack(&[&a, &a.select(0, 1)?])?.to_vec::<i64>()?, [0, 1, 2, 3, 4, 5, 3, 4, 5]);
    assert_eq!(Tensor::dstack(&[&one, &two])?.shape(), [1, 1, 2]);
    assert_eq!(Tensor::dstack(&[&a, &a])?.shape(), [2, 3, 2]);
    let none: [Tensor; 0] = [];
    for (name, empty) in [
        ("hstack", Tensor::hstack(&none)),
        ("vstack", Tensor::vstack(&none)),
        ("dstack", Tensor::dstack(&none)),
    ] {
        assert!(empty.unwrap_err().to_string().starts_with(&format!("{name}: `tensors` must be one tensor")));
    }
    Ok(())
}

#[test]
fn diagonals_and_slices_take_gradients() -> Result<()> {
    let x = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]])?.requires_grad_(true)?;
    let made = x.diag_embed_with(-1)?;
    assert_eq!(made.shape(), [2, 3, 3]);
    let mut expected = [0.0; 18];
    (expected[3], expected[7], expected[12], expected[16]) = (1.0, 2.0, 3.0, 4.0);
    assert_eq!(numbers(&made.detach()), expected);
    made.mul(&Tensor::arange(0, 18)?.reshape((2, 3, 3))?)?.sum(..)?.backward()?;
    assert_eq!(numbers(&x.grad().unwrap()), [3.0, 7.0, 12.0, 16.0]);
    assert_eq!(x.diag()?.to_vec_f64()?, [1.0, 4.0]);
    assert_eq!(row(&[]).diag_with(2)?.shape(), [2, 2]);
    for wrong in
        [Tensor::new(1.0)?.diag(), Tensor::zeros((1, 1, 1))?.diag(), row(&[1.0]).diag_embed_with(i64::MIN)]
    {
        assert!(matches!(wrong, Err(Error::Dispatch(_))), "{wrong:?}");
    }

    let x = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]])?.requires_grad_(true)?;
    let part = row(&[8.0, 9.0]).requires_grad_(true)?;
    let made = x.select_scatter(&part, 1, 0)?;
    made.mul(&Tensor::new([[1.0, 2.0], [3.0, 4.0]])?)?.sum(..)?.backward()?;
    assert_eq!(numbers(&made.detach()), [8.0, 2.0, 9.0, 4.0]);
    assert_eq!(numbers(&x.grad().unwrap()), [0.0, 2.0, 0.0, 4.0]);
    assert_eq!(numbers(&part.grad().unwrap()), [1.0, 3.0]);
    let made = row(&[1.0, 2.0, 3.0]).narrow_scatter(&row(&[7.0, 8.0]), 0, -2, 2)?;
    assert_eq!(numbers(&made), [1.0, 7.0, 8.0]);
    Ok(())
}

#[test]
fn the_k_th_smallest_and_buckets() -> Result<()> {
    let x = Tensor::new([[3.0f64, NAN, 1.0, 2.0], [5.0, 5.0, 5.0, 0.0]])?.requires_grad_(true)?;
    let (values, places) = x.kthvalue(3, 1)?;
    assert_eq!(numbers(&values.detach()), [3.0, 5.0]);
    assert_eq!(numbers(&x.gather(1, &places.unsqueeze(1)?)?.detach()), [3.0, 5.0]);
    values.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().sum(1)?.to_vec::<f64>()?, [1.0, 1.0]);
    assert!(numbers(&x.kthvalue(4, 1)?.0.detach())[0].is_nan());
    assert_eq!(Tensor::new(7.0)?.kthvalue(1, 0)?.0.item::<f64>()?, 7.0);
    for (k, dim, message) in [(0, 0, "within 1..=2"), (3, 0, "within 1..=2"), (1, 2, "out of range")] {
        let error = x.kthvalue(k, dim).unwrap_err().to_string();
        assert!(error.contains("kthvalue") && error.contains(message), "{error}");
    }
    let buckets = row(&[1.0, 2.0, 2.5, 9.0]).bucketize(&row(&[1.0, 2.0, 3.0]))?;
    assert_eq!(buckets.to_vec::<i64>()?, [0, 1, 2, 3]);
    Ok(())
}

#[test]
fn hubers_loss() -> Result<()> {
    let x = row(&[0.3, -0.5, 2.0, -4.0]).requires_grad_(true)?;
    let zeros = row(&[0.0; 4]);
    let losses = x.huber_loss_with(&zeros, 0.5, Reduction::None)?;
    losses.sum(..)?.backward()?;
    near(&numbers(&losses.detach()), &[0.045, 0.125, 0.875, 1.875], "losses");
    near(&numbers(&x.grad().unwrap()), &[0.3, -0.5, 0.5, -0.5], "gradients");
    near(&numbers(&x.detach().huber_loss(&zeros)?), &[(0.045 + 0.125 + 1.5 + 3.5) / 4.0], "mean");
    Ok(())
}

/// Integers and bool are numbers of the default float dtype before the formula, not after its first step.
#[test]
fn integers_at_their_limits() -> Result<()> {
    let bytes = Tensor::new([0u8, 1, 200, 255])?;
    let soft = [-2f64.ln(), -(1.0 + (-1f64).exp()).ln(), 0.0, 0.0];
    for (got, expected) in bytes.logsigmoid()?.to_vec_f64()?.into_iter().zip(soft) {
        assert!((got - expected).abs() < 1e-7, "{got}, expected {expected}");
    }
    assert_eq!(Tensor::new([0u8, 1])?.logit()?.to_vec_f64()?, [-INF, INF]);
    assert_eq!(Tensor::new([true, false])?.logit()?.to_vec_f64()?, [INF, -INF]);
    let signed = Tensor::new([-128i8, 127])?.softsign()?;
    assert_eq!(signed.to_vec::<f32>()?, [-128.0 / 129.0, 127.0 / 128.0]);
    assert_eq!(Tensor::new([i64::MIN, 3])?.softsign()?.to_vec::<f32>()?, [-1.0, 0.75]);
    Ok(())
}

#[test]
fn integers_stay_integers_between_integers() -> Result<()> {
    let x = Tensor::new([-9i32, -1, 3, 7])?;
    assert_eq!(x.relu6()?.to_vec::<i32>()?, [0, 0, 3, 6]);
    assert_eq!(x.hardtanh()?.to_vec::<i32>()?, [-1, -1, 1, 1]);
    assert_eq!(x.threshold(2, -5)?.to_vec::<i32>()?, [-5, -5, 3, 7]);
    assert_eq!(Tensor::new([0u8, 9])?.hardtanh()?.to_vec::<u8>()?, [0, 1]);
    assert_eq!(x.hardtanh_with(-0.5, 0.5)?.dtype(), DType::F32);
    let said = x.hardtanh_with(2, -2).unwrap_err().to_string();
    assert!(said.contains("hardtanh") && said.contains("min_val"), "{said}");
    let said = Tensor::new([0u8])?.threshold(1, -5).unwrap_err().to_string();
    assert!(said.contains("-5"), "{said}");
    assert!(x.threshold(&x, 0).unwrap_err().to_string().contains("a number"));
    Ok(())
}

#[test]
fn logit_within_bounds() -> Result<()> {
    let x = row(&[-1.0, 0.0, 0.25, 0.5, 1.0, 2.0]).requires_grad_(true)?;
    let y = x.logit_with(0.1)?;
    let ends = 9f64.ln();
    near(&numbers(&y.detach()), &[-ends, -ends, -(3f64.ln()), 0.0, ends, ends], "values");
    y.sum(..)?.backward()?;
    near(&numbers(&x.grad().unwrap()), &[0.0, 0.0, 16.0 / 3.0, 4.0, 0.0, 0.0], "gradients");
    for eps in [-0.1, 0.6, NAN] {
        assert!(x.logit_with(eps).unwrap_err().to_string().contains("0 to 0.5"), "{eps}");
    }
    Ok(())
}

/// PyTorch: the gradient of a difference that is infinite is that of the straight line.
#[test]
fn losses_in_pieces_far_away_and_in_halves() -> Result<()> {
    for huber in [true, false] {
        let x = row(&[INF, -INF, 0.25, 3.0, NAN]).requires_grad_(true)?;
        let target = row(&[0.0; 5]);
        let loss = match huber {
            true => x.huber_loss_with(&target, 2.0, Reduction::None)?,
            false => x.smooth_l1_loss_with(&target, 2.0, Reduction::None)?,
        };
        let scale = if huber { 1.0 } else { 0.5 };
        near(&numbers(&loss.detach()), &[INF, INF, 0.03125 * scale, 4.0 * scale, NAN], "values");
        loss.sum(..)?.backward()?;
        near(&numbers(&x.grad().unwrap())[..4], &[2.0, -2.0, 0.25, 2.0].map(|v| v * scale), "gradients");
    }
    // The square of the first is above the largest f16.
    let x = Tensor::new([4096f32, 0.0])?.to_dtype(DType::F16)?;
    let zeros = x.zeros_like()?;
    let made = x.huber_loss_with(&zeros, 1e-3, Reduction::None)?;
    assert_eq!((made.dtype(), made.to_vec_f64()?[0]), (DType::F16, 4.09765625));
    let both = x.huber_loss(&zeros.to_dtype(DType::F32)?)?;
    assert_eq!((both.dtype(), both.item::<f32>()?), (DType::F32, 2047.75));
    for delta in [0.0, -1.0, INF, NAN] {
        let said = x.huber_loss_with(&zeros, delta, Reduction::Mean).unwrap_err().to_string();
        assert!(said.contains("delta") && said.contains("above 0"), "{said}");
        let refused = x.smooth_l1_loss_with(&zeros, delta, Reduction::Mean);
        assert_eq!(refused.is_ok(), delta == 0.0, "{delta}");
    }
    assert!(x.huber_loss_with(&zeros, 1.0, Reduction::BatchMean).is_err());
    Ok(())
}

/// A NaN in the source does not contribute to this tensor's gradient where this tensor is not included.
#[test]
fn extremes_of_a_source_with_nan() -> Result<()> {
    use keyway::tensor::Reduce;
    for reduce in [Reduce::Amax, Reduce::Amin] {
        let own = row(&[1.0, 2.0, 3.0]).requires_grad_(true)?;
        let (at, src) = (Tensor::new([0i64, 0, 2])?, row(&[NAN, 5.0, 7.0]).requires_grad_(true)?);
        let made = own.scatter_reduce_with(0, &at, &src, reduce, false)?;
        near(&numbers(&made.detach()), &[NAN, 2.0, 7.0], "values");
        made.sum(..)?.backward()?;
        near(&numbers(&own.grad().unwrap()), &[0.0, 1.0, 0.0], "of own");
        assert_eq!(numbers(&src.grad().unwrap())[2], 1.0);
    }
    Ok(())
}

//! Runs and distinct slices, modes and medians, histograms, slices written and scaled, integrals and initial values: values of
//! PyTorch 2.15 at corners, and derivatives.

use keyway::autograd::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use keyway::nn::init;
use keyway::prelude::*;
use keyway::{DType, Result, manual_seed};

const NAN: f64 = f64::NAN;

fn integers(t: &Tensor) -> Vec<i64> {
    t.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap()
}

fn floats(t: &Tensor) -> Vec<f64> {
    t.to_vec_f64().unwrap()
}

/// Values without a pattern or ties, from -1 to 1.
fn values(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let value = |i: usize| ((i * i * 37 + i * 101 + 13) % 199) as f64 / 99.5 - 1.0;
    Tensor::from_vec((0..count).map(value).collect(), sizes).unwrap()
}

#[test]
fn runs_of_equal_neighbours() {
    let found = Tensor::new([[1.0f64, 1.0, NAN], [NAN, 2.0, 2.0]]).unwrap().unique_consecutive_all().unwrap();
    assert_eq!(found.inverse.shape(), [2, 3]);
    assert_eq!(integers(&found.inverse), [0, 0, 1, 2, 3, 3]);
    assert_eq!(integers(&found.counts), [2, 1, 1, 2]);
    let none = Tensor::zeros((0, 3)).unwrap().unique_consecutive_all().unwrap();
    assert_eq!((none.values.shape(), none.inverse.shape()), (&[0][..], &[0, 3][..]));
    let one = Tensor::new(7).unwrap().unique_consecutive_all().unwrap();
    assert_eq!(
        (one.values.shape(), one.inverse.shape(), integers(&one.counts)),
        (&[1][..], &[][..], vec![1])
    );
    let columns = Tensor::new([[1, 1, 2, 1], [3, 3, 3, 3]]).unwrap().unique_consecutive_dim(-1).unwrap();
    assert_eq!(columns.values.to_vec2::<i32>().unwrap(), [[1, 2, 1], [3, 3, 3]]);
    assert_eq!((integers(&columns.inverse), integers(&columns.counts)), (vec![0, 0, 1, 2], vec![2, 1, 1]));
}

#[test]
fn distinct_slices_are_in_lexicographical_order() {
    let x = Tensor::new([[2, 1, 2], [2, 0, 9], [2, 1, 2], [-1, 5, 5], [2, 1, 1]]).unwrap();
    let found = x.unique_dim(0).unwrap();
    assert_eq!(found.values.to_vec2::<i32>().unwrap(), [[-1, 5, 5], [2, 0, 9], [2, 1, 1], [2, 1, 2]]);
    assert_eq!((integers(&found.inverse), integers(&found.counts)), (vec![3, 1, 3, 0, 2], vec![1, 1, 1, 2]));
    let empty = Tensor::zeros((0, 3)).unwrap().unique_dim(0).unwrap();
    assert_eq!((empty.values.shape(), empty.counts.shape()), (&[0, 3][..], &[0][..]));
}

#[test]
fn modes_and_medians() {
    let x = Tensor::new([[2.0f64, NAN, 2.0, 1.0, 1.0], [NAN, NAN, 3.0, NAN, NAN]]).unwrap();
    let (mode, index) = x.mode(1).unwrap();
    assert_eq!((floats(&mode), integers(&index)), (vec![1.0, 3.0], vec![4, 2]));
    let (median, index) = x.nanmedian(1).unwrap();
    assert_eq!((floats(&median), integers(&index)), (vec![1.0, 3.0], vec![4, 2]));
    let all = Tensor::new([NAN, NAN]).unwrap();
    assert!(floats(&all.nanmedian(0).unwrap().0)[0].is_nan());
    assert!(floats(&Tensor::zeros(0).unwrap().nanmedian_all().unwrap())[0].is_nan());
    assert_eq!(integers(&Tensor::new(5i64).unwrap().mode(0).unwrap().1), [0]);
    assert!(Tensor::new([true, false, true]).unwrap().mode(0).unwrap().0.item::<bool>().unwrap());
}

#[test]
fn histograms_include_the_last_edge_and_no_nan() {
    let x = Tensor::new([0.0f32, 1.0, 1.0, 2.0, 4.0, 5.0, -1.0, f32::NAN]).unwrap();
    assert_eq!(floats(&x.histc_with(4, 0.0, 4.0).unwrap()), [1.0, 2.0, 1.0, 1.0]);
    let (counts, edges) = x.histogram_with(4, Some((0.0, 4.0)), None, false).unwrap();
    assert_eq!(floats(&counts), [1.0, 2.0, 1.0, 1.0]);
    assert_eq!(floats(&edges), [0.0, 1.0, 2.0, 3.0, 4.0]);
    let same = Tensor::full(3, 2.0f32).unwrap();
    assert_eq!(floats(&same.histc(2).unwrap()), [0.0, 3.0]);
    assert_eq!(floats(&same.histogram(2).unwrap().1), [1.5, 2.0, 2.5]);
    assert_eq!(floats(&Tensor::zeros(0).unwrap().histogram(2).unwrap().1), [0.0, 0.5, 1.0]);
}

#[test]
fn derivatives_of_what_is_composed() {
    type Function = fn(&[Tensor]) -> Result<Tensor>;
    let table: [(&str, &[&[usize]], Function); 12] = [
        ("renorm", &[&[3, 4]], |i| i[0].renorm(2.0, 0, 1.0)),
        ("renorm 3", &[&[3, 4]], |i| i[0].renorm(3.0, 1, 0.8)),
        ("nanmedian", &[&[3, 5]], |i| i[0].nanmedian(1)?.0.square()),
        ("mode", &[&[3, 5]], |i| i[0].mode(1)?.0.square()),
        ("cumulative_trapezoid", &[&[3, 4], &[4]], |i| i[0].cumulative_trapezoid_with(&i[1], 1)),
        ("pdist", &[&[4, 3]], |i| i[0].pdist()),
        ("put", &[&[2, 3], &[2]], |i| i[0].put(&Tensor::new([1i64, -1])?, &i[1], false)?.square()),
        ("put added", &[&[2, 3], &[2]], |i| i[0].put(&Tensor::new([1i64, 1])?, &i[1], true)?.square()),
        ("index_fill", &[&[3, 4]], |i| i[0].index_fill(1, &Tensor::new([2i64])?, 0.5)?.square()),
        ("slice_scatter", &[&[4], &[2]], |i| i[0].slice_scatter(&i[1], 0, None, None, 2)?.square()),
        ("diagonal_scatter", &[&[3, 3], &[3]], |i| i[0].diagonal_scatter(&i[1])?.square()),
        ("erfc", &[&[7]], |i| i[0].erfc()),
    ];
    for (name, sizes, function) in table {
        let inputs: Vec<Tensor> =
            sizes.iter().map(|sizes| values(sizes).requires_grad_(true).unwrap()).collect();
        let run = |i: &[Tensor]| Ok(vec![function(i)?]);
        let first = gradcheck(&run, &inputs, Tolerance::default()).unwrap();
        let second = gradgradcheck(&run, &inputs, Tolerance::default()).unwrap();
        assert!(first.is_none() && second.is_none(), "{name}: {first:?} {second:?}");
    }
}

#[test]
fn filled_slices_take_numbers_and_tensors_without_dimensions() {
    let x = Tensor::zeros((2, 3)).unwrap().requires_grad_(true).unwrap();
    let value = Tensor::new(2.0f32).unwrap().requires_grad_(true).unwrap();
    let at = Tensor::new([0i64, -1]).unwrap();
    x.index_fill(1, &at, &value).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(floats(&value.grad().unwrap()), [4.0]);
    assert_eq!(floats(&x.grad().unwrap()), [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    let one = Tensor::new(3.0f32).unwrap();
    one.index_fill_(0, &Tensor::new([0i64]).unwrap(), 7).unwrap();
    assert_eq!(one.item::<f32>().unwrap(), 7.0);
    // A tensor that is not contiguous is changed too.
    let t = Tensor::zeros((2, 3)).unwrap();
    t.t().unwrap().put_(&Tensor::new([1i64]).unwrap(), &Tensor::new([5.0f32]).unwrap(), false).unwrap();
    assert_eq!(floats(&t), [0.0, 0.0, 0.0, 5.0, 0.0, 0.0]);
}

#[test]
fn divisors_of_the_least_integers() {
    let least = Tensor::new([i64::MIN; 3]).unwrap();
    let other = Tensor::new([6i64, 0, i64::MIN]).unwrap();
    assert_eq!(integers(&least.gcd(&other).unwrap()), [2, i64::MIN, i64::MIN]);
    assert_eq!(integers(&least.lcm(&other).unwrap()), [i64::MIN, 0, i64::MIN]);
    let x = Tensor::new([4u8, 6]).unwrap();
    assert_eq!(x.gcd(6).unwrap().to_vec::<u8>().unwrap(), [2, 6]);
    x.lcm_(6).unwrap();
    assert_eq!(x.to_vec::<u8>().unwrap(), [12, 6]);
}

#[test]
fn counts_have_the_moments_of_their_rates() {
    manual_seed(11);
    for rate in [0.25, 3.0, 9.5, 10.0, 50.0, 1e4] {
        let counts = Tensor::full(40_000, rate).unwrap().to_dtype(DType::F64).unwrap().poisson().unwrap();
        let mean = counts.mean_all().unwrap().item::<f64>().unwrap();
        let variance = counts.var_all().unwrap().item::<f64>().unwrap();
        assert!((mean - rate).abs() < 5.0 * (rate / 40_000.0f64).sqrt(), "{rate}: {mean}");
        assert!((variance / rate - 1.0).abs() < 0.06, "{rate}: {variance}");
    }
    let odd = Tensor::new([-1.0, NAN, f64::INFINITY, 0.0]).unwrap().poisson().unwrap();
    assert!(floats(&odd)[..3].iter().all(|x| x.is_nan()) && floats(&odd)[3] == 0.0);
    let logits = Tensor::new([[0.0f32, 2.0]]).unwrap().expand((4000, 2)).unwrap();
    let drawn = logits.gumbel_softmax(0.5, true, 1).unwrap().mean(0).unwrap();
    // The softmax of 0 and 2.
    assert!((floats(&drawn)[1] - 0.8808).abs() < 0.03, "{drawn}");
}

#[test]
fn truncated_values_have_the_moments_of_their_distribution() {
    manual_seed(5);
    // Mean and deviation by the densities at the bounds, in f64.
    for (bounds, mean) in [
        ((-2.0, 2.0), 0.0),
        ((0.0, 9.0), 0.7979),
        ((3.0, 9.0), 3.2831),
        ((-9.0, -3.0), -3.2831),
        ((3.0, 3.5), 3.1856),
    ] {
        let drawn = floats(&init::trunc_normal_with(20_000, 0.0, 1.0, bounds).unwrap());
        let got = drawn.iter().sum::<f64>() / 20_000.0;
        assert!((got - mean).abs() < 0.03, "{bounds:?}: {got}");
        assert!(drawn.iter().all(|x| (bounds.0 - 1e-6..=bounds.1 + 1e-6).contains(x)));
    }
}

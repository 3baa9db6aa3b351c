//! Gradients of sparse tensors with duplicate entries: by entry if the gradient of the entries is requested, otherwise by
//! element.

use crate::rehearsal_support::*;
use crate::support::{PLUGINS, f64s, floats, ints};
use keyway::autograd::{BackwardOptions, backward, grad};
use keyway::{DType, Tensor};

fn leaf(values: &[f64]) -> Tensor {
    floats(values, &[values.len()]).requires_grad_(true).unwrap()
}

fn grads(t: &Tensor) -> Vec<f64> {
    t.grad().unwrap().to_vec_f64().unwrap()
}

/// Entries at coordinates of one dimension.
fn at(places: &Tensor, values: &Tensor, size: usize) -> Tensor {
    Tensor::sparse_coo(places, values, [size]).unwrap()
}

#[test]
fn a_product_of_doubled_entries_is_one_of_their_sums() {
    let _one = load(PLUGINS);
    let both = ints(&[0, 0], &[1, 2]);
    let v = leaf(&[1.0, 2.0]);
    let x = at(&both, &v, 1);
    x.mul(&x).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(grads(&v), [6.0, 6.0]);
    let whole = at(&both, &floats(&[1.0, 2.0], &[2]), 1).requires_grad_(true).unwrap();
    whole.mul(&whole).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(whole.grad().unwrap().values().unwrap().to_vec_f64().unwrap(), [6.0, 6.0]);
    // Two tensors over the same indices.
    let (v, w) = (leaf(&[1.0, 2.0]), leaf(&[10.0, 20.0]));
    at(&both, &v, 1).mul(&at(&both, &w, 1)).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!((grads(&v), grads(&w)), (vec![30.0, 30.0], vec![3.0, 3.0]));
}

#[test]
fn places_that_a_factor_lacks_keep_what_others_give_them() {
    let _one = load(PLUGINS);
    let v = leaf(&[1.0, 1.0]);
    let s = at(&ints(&[0, 1], &[1, 2]), &v, 2).coalesce().unwrap();
    let u = at(&ints(&[0, 0], &[1, 2]), &floats(&[1.0, 2.0], &[2]), 2);
    let through = s.mul(&u).unwrap().sum_all().unwrap();
    through.add(&s.to_dense().unwrap().sum_all().unwrap()).unwrap().backward().unwrap();
    assert_eq!(grads(&v), [4.0, 1.0]);
}

#[test]
fn second_derivatives_are_those_of_the_sums() {
    let _one = load(PLUGINS);
    let v = leaf(&[1.0, 3.0, -2.0, 0.5]);
    let x = at(&ints(&[0, 2, 0, 1], &[1, 4]), &v, 3);
    let cube = x.mul(&x).unwrap().mul(&x).unwrap().sum_all().unwrap();
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let first = grad(&[cube], std::slice::from_ref(&v), options).unwrap().remove(0).unwrap();
    let (zero, one, two) = (-1.0, 0.5, 3.0);
    assert_eq!(first.to_vec_f64().unwrap(), [zero, two, zero, one].map(|s: f64| 3.0 * s * s));
    let weights = floats(&[1.0, 2.0, 3.0, 4.0], &[4]);
    first.mul(&weights).unwrap().sum_all().unwrap().backward().unwrap();
    // 6 s at each entry, times the weights of all entries there.
    assert_eq!(grads(&v), [6.0 * zero * 4.0, 6.0 * two * 2.0, 6.0 * zero * 4.0, 6.0 * one * 4.0]);
}

#[test]
fn a_gradient_that_is_given_counts_by_element() {
    let _one = load(PLUGINS);
    let places = ints(&[0, 0], &[1, 2]);
    // Whether or not it shares the indices of what it is the gradient of.
    for own in [false, true] {
        let v = leaf(&[1.0, 2.0]);
        let x = at(&places, &v, 1);
        let given = if own { ints(&[0, 0], &[1, 2]) } else { places.clone() };
        let gradient = at(&given, &floats(&[10.0, 20.0], &[2]), 1);
        let options = BackwardOptions { gradients: Some(vec![gradient]), ..Default::default() };
        backward(&[x], options).unwrap();
        assert_eq!(grads(&v), [30.0, 30.0], "{own}");
    }
}

#[test]
fn what_an_op_stores_of_doubled_entries_has_their_gradient() {
    let _one = load(PLUGINS);
    let indices = ints(&[0, 0, 2, 1, 1, 0], &[2, 3]);
    let matrix = |v: &Tensor| Tensor::sparse_coo(&indices, v, [3, 2]).unwrap();
    type Op = fn(&Tensor) -> Tensor;
    let ops: [Op; 4] = [
        |s| s.t().unwrap(),
        |s| s.unsqueeze(0).unwrap(),
        |s| s.reshape([2, 3]).unwrap(),
        |s| s.index_select(0, &ints(&[0, 1, 2], &[3])).unwrap(),
    ];
    for op in ops {
        let v = leaf(&[1.0, 2.0, 3.0]);
        let stored = op(&matrix(&v)).values().unwrap();
        // Coalesced: 3 at (0, 1), 3 at (2, 0).
        assert_eq!(stored.to_vec_f64().unwrap(), [3.0, 3.0]);
        let made = stored.mul(&floats(&[10.0, 30.0], &[2])).unwrap().sum_all().unwrap();
        made.backward().unwrap();
        let got = grads(&v);
        assert!(got == [10.0, 10.0, 30.0] || got == [30.0, 30.0, 10.0], "{got:?}");
    }
    // The entries themselves, where they are asked for.
    let v = leaf(&[1.0, 2.0, 3.0]);
    let factors = floats(&[10.0, 20.0, 30.0], &[3]);
    matrix(&v).values().unwrap().mul(&factors).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(grads(&v), [10.0, 20.0, 30.0]);
    let (v, d) = (leaf(&[1.0, 2.0, 3.0]), floats(&[5.0; 6], &[3, 2]).requires_grad_(true).unwrap());
    let product = matrix(&v).mul(&d).unwrap().values().unwrap();
    product.mul(&product).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(grads(&d), [0.0, 90.0, 0.0, 0.0, 90.0, 0.0]);
}

#[test]
fn both_ways_at_once_add_up() {
    let _one = load(PLUGINS);
    let v = leaf(&[1.0, 2.0, 3.0]);
    let x = at(&ints(&[1, 1, 0], &[1, 3]), &v, 2);
    let entries = x.values().unwrap().mul(&floats(&[10.0, 20.0, 30.0], &[3])).unwrap().sum_all().unwrap();
    let again = x.values().unwrap().sum_all().unwrap();
    let elements = x.mul(&x).unwrap().sum_all().unwrap();
    let dense = x.to_dense().unwrap().sum_all().unwrap();
    let all = entries.add(&again).unwrap().add(&elements).unwrap().add(&dense).unwrap();
    all.backward().unwrap();
    assert_eq!(grads(&v), [10.0 + 1.0 + 6.0 + 1.0, 20.0 + 1.0 + 6.0 + 1.0, 30.0 + 1.0 + 6.0 + 1.0]);
    assert_eq!(v.dtype(), DType::F64);
}

#[test]
fn a_strided_gradient_counts_each_place_once() {
    let _one = load(PLUGINS);
    let strided = BackwardOptions { strided_gradients: true, ..Default::default() };
    let (places, numbers) = (ints(&[2, 0, 2, 2, 3], &[1, 5]), floats(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5]));
    for coalesced in [false, true] {
        let x = at(&places, &numbers, 5);
        let x = if coalesced { x.coalesce().unwrap() } else { x };
        let x = x.requires_grad_(true).unwrap();
        let loss = |x: &Tensor| x.square().unwrap().sum_all().unwrap();
        loss(&x).backward_with(strided.clone()).unwrap();
        assert!(x.grad().unwrap().as_ref().is_strided());
        assert_eq!(grads(&x), [4.0, 0.0, 16.0, 10.0, 0.0]);
        // An existing gradient becomes strided.
        loss(&x).backward_with(strided.clone()).unwrap();
        assert_eq!(grads(&x), [8.0, 0.0, 32.0, 20.0, 0.0]);
        x.zero_grad();
        loss(&x).backward().unwrap();
        assert_eq!(x.grad().unwrap().layout(), x.layout());
        loss(&x).backward_with(strided.clone()).unwrap();
        assert_eq!(grads(&x), [8.0, 0.0, 32.0, 20.0, 0.0]);
        // The second derivative, from `grad`: 6 x at each coordinate.
        let cube = x.mul(&x).unwrap().mul(&x).unwrap().sum_all().unwrap();
        let options = BackwardOptions { create_graph: true, ..strided.clone() };
        let first = grad(&[cube], std::slice::from_ref(&x), options).unwrap().remove(0).unwrap();
        assert_eq!(first.to_vec_f64().unwrap(), [12.0, 0.0, 192.0, 75.0, 0.0]);
        x.zero_grad();
        first.sum_all().unwrap().backward_with(strided.clone()).unwrap();
        assert_eq!(grads(&x), [12.0, 0.0, 48.0, 30.0, 0.0]);
    }
    // Compressed rows, and a table whose gradient is sparse.
    let rows = floats(&[0.0, 3.0, 4.0, 0.0], &[2, 2]).to_sparse_csr().unwrap().requires_grad_(true).unwrap();
    rows.square().unwrap().sum_all().unwrap().backward_with(strided.clone()).unwrap();
    assert_eq!(grads(&rows), [0.0, 6.0, 8.0, 0.0]);
    let table = floats(&[1.0, 2.0, 3.0], &[3, 1]).requires_grad_(true).unwrap();
    let read = table.embedding_sparse(&ints(&[2, 0, 2], &[3])).unwrap();
    read.sum_all().unwrap().backward_with(strided).unwrap();
    assert!(table.grad().unwrap().as_ref().is_strided());
    assert_eq!(grads(&table), [1.0, 0.0, 2.0]);
}

#[test]
fn no_entry_of_many_at_one_place_is_lost() {
    let _one = load(PLUGINS);
    let ones = 3_000;
    let large = 16_777_216.0;
    let mut values = vec![1.0f32; ones + 1];
    values[0] = large as f32;
    let at = vec![2i64; ones + 1];
    for width in [1, 4] {
        let numbers = Tensor::new(values.as_slice()).unwrap();
        let (numbers, sizes) = match width {
            1 => (numbers, vec![5]),
            _ => (numbers.unsqueeze(1).unwrap().expand((ones + 1, width)).unwrap(), vec![5, width]),
        };
        let a = Tensor::sparse_coo(&ints(&at, &[1, ones + 1]), &numbers, sizes.as_slice()).unwrap();
        let sum = large + ones as f64;
        assert_eq!(a.coalesce().unwrap().values().unwrap().to_vec_f64().unwrap(), vec![sum; width]);
        assert_eq!(f64s(&a)[2 * width..3 * width], vec![sum; width]);
    }
    let rows: Vec<i64> = (0..=ones as i64).chain(at.iter().copied()).collect();
    let numbers = Tensor::new(values.as_slice()).unwrap();
    let a = Tensor::sparse_coo(&ints(&rows, &[2, ones + 1]), &numbers, (ones + 1, 5)).unwrap();
    assert_eq!(f64s(&a.sum(0).unwrap()), [0.0, 0.0, large + ones as f64, 0.0, 0.0]);
}

#[test]
fn norms_over_places_whose_squares_leave_the_range() {
    let _one = load(PLUGINS);
    for (dtype, size, share) in [
        (DType::F32, 1e25, 1e-6),
        (DType::F32, 1e-25, 1e-6),
        (DType::BF16, 1e25, 1e-2),
        (DType::F16, 1e4, 1e-3),
    ] {
        let dense = floats(&[3.0 * size, 0.0, -4.0 * size, 0.0, size, 0.0], &[2, 3]).to_dtype(dtype).unwrap();
        for a in [dense.to_sparse().unwrap(), dense.to_sparse_csr().unwrap()] {
            let norms = f64s(&a.norm(1).unwrap());
            for (got, wanted) in norms.iter().zip([5.0 * size, size]) {
                assert!((got - wanted).abs() <= share * wanted, "{dtype} {size}: {norms:?}");
            }
        }
    }
}

#[test]
fn extremes_of_rows_of_halves_have_gradients() {
    let _one = load(PLUGINS);
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        for largest in [true, false] {
            let numbers =
                if largest { [2.0, 0.0, 2.0, 0.0, -1.0, 0.0] } else { [-2.0, 0.0, -2.0, 0.0, 1.0, 0.0] };
            let dense = floats(&numbers, &[2, 3]).to_dtype(dtype).unwrap();
            let leaves = [dense.to_sparse().unwrap(), dense.to_sparse_csr().unwrap()];
            for a in leaves.map(|a| a.detach().requires_grad_(true).unwrap()) {
                let made = if largest { a.amax(1) } else { a.amin(1) }.unwrap();
                made.to_dense().unwrap().sum_all().unwrap().backward().unwrap();
                // The second row's extremes are the zeros that are not stored.
                let grad = f64s(&a.grad().unwrap());
                assert_eq!(grad, [0.5, 0.0, 0.5, 0.0, 0.0, 0.0], "{dtype} {largest} {}", a.layout().name());
                let norm = a.norm_with(f64::INFINITY, 1, false).unwrap();
                a.zero_grad();
                norm.to_dense().unwrap().sum_all().unwrap().backward().unwrap();
                assert_eq!(f64s(&a.grad().unwrap())[0].abs(), 0.5, "{dtype} {}", a.layout().name());
            }
        }
    }
}

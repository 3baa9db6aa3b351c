//! Sparse gradients of tables: what they are, how they add up, and what takes them.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::autograd::{BackwardOptions, grad};
use keyway::nn::{BagMode, BagOptions};
use keyway::optim::{Optimizer, Sgd, SgdOptions, clip_grad_norm_, clip_grad_value_};
use keyway::{DType, Tensor};

/// A table of values without a pattern.
fn table(rows: usize, columns: usize) -> Tensor {
    let values = (0..rows * columns).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.5).collect();
    Tensor::from_vec(values, [rows, columns]).unwrap().requires_grad_(true).unwrap()
}

/// A sum that gives each element another gradient.
fn weighted(t: &Tensor) -> Tensor {
    let factors: Vec<f64> = (0..t.elem_count()).map(|i| (i * 5 % 7) as f64 - 2.5).collect();
    t.mul(&Tensor::from_vec(factors, t.shape()).unwrap()).unwrap().sum_all().unwrap()
}

#[test]
fn a_table_has_a_gradient_of_the_rows_that_were_read() {
    let _one = load(PLUGINS);
    let at = ints(&[4, 1, 4, 0], &[2, 2]);
    for padding in [None, Some(1), Some(-1)] {
        let (sparse, dense) = (table(6, 3), table(6, 3));
        let read = sparse.embedding_sparse_with(&at, padding).unwrap();
        assert_close(&f64s(&read), &f64s(&dense.embedding_with(&at, padding).unwrap()), 0.0);
        weighted(&read).backward().unwrap();
        weighted(&dense.embedding_with(&at, padding).unwrap()).backward().unwrap();
        let made = sparse.grad().unwrap();
        assert_eq!((made.layout().name(), made.shape()), ("sparse_coo", [6, 3].as_slice()));
        assert_eq!(made.nnz().unwrap(), if padding == Some(1) { 3 } else { 4 });
        assert_close(&f64s(&made), &f64s(&dense.grad().unwrap()), 1e-12);
    }
}

#[test]
fn gradients_add_up_in_any_order() {
    let _one = load(PLUGINS);
    let (a, b) = (ints(&[4, 1, 4], &[3]), ints(&[0, 4], &[2]));
    let dense = table(6, 3);
    let sum = |w: &Tensor, sparse: [bool; 3]| {
        let read = |at: &Tensor, sparse: bool| match sparse {
            true => w.embedding_sparse(at).unwrap(),
            false => w.embedding(at).unwrap(),
        };
        let (x, y) = (weighted(&read(&a, sparse[0])), weighted(&read(&b, sparse[1])));
        x.add(&y).unwrap().add(&weighted(&read(&a, sparse[2]))).unwrap()
    };
    sum(&dense, [false; 3]).backward().unwrap();
    let wanted = f64s(&dense.grad().unwrap());
    for sparse in [[true; 3], [true, false, true], [false, true, true], [true, true, false]] {
        let w = table(6, 3);
        sum(&w, sparse).backward().unwrap();
        assert_close(&f64s(&w.grad().unwrap()), &wanted, 1e-12);
        assert_eq!(w.grad().unwrap().as_ref().is_strided(), sparse.contains(&false));
        sum(&w, sparse).backward().unwrap();
        assert_close(&f64s(&w.grad().unwrap()), &wanted.iter().map(|g| 2.0 * g).collect::<Vec<_>>(), 1e-12);
    }
    // Through an op on the table: its own gradient is strided.
    let w = table(6, 3);
    weighted(&w.mul(2.0).unwrap().embedding_sparse(&a).unwrap()).backward().unwrap();
    assert!(w.grad().unwrap().as_ref().is_strided());
    w.zero_grad();
    assert!(w.grad().is_none());
}

#[test]
fn bags_have_sparse_gradients() {
    let _one = load(PLUGINS);
    let matrix = ints(&[1, 0, 4, 1, 2, 2], &[2, 3]);
    let line = ints(&[1, 0, 4, 1, 2, 2, 3], &[7]);
    let offsets = ints(&[0, 2, 2, 5], &[4]);
    let factors = Tensor::from_vec(vec![0.5, -1.0, 2.0, 1.5, 0.25, 3.0, -2.0], [7]).unwrap();
    for mode in [BagMode::Sum, BagMode::Mean, BagMode::Max] {
        for padding_idx in [None, Some(1), Some(-3)] {
            let by_rows = BagOptions { mode, padding_idx, ..Default::default() };
            let by_offsets = BagOptions { offsets: Some(&offsets), ..by_rows };
            let mut cases = vec![(&matrix, by_rows), (&line, by_offsets)];
            if mode == BagMode::Sum {
                cases.push((&line, BagOptions { per_sample_weights: Some(&factors), ..by_offsets }));
            }
            for (at, options) in cases {
                let (sparse, dense) = (table(5, 3), table(5, 3));
                let made = sparse.embedding_bag_with(at, BagOptions { sparse: true, ..options }).unwrap();
                let wanted = dense.embedding_bag_with(at, options).unwrap();
                assert_close(&f64s(&made), &f64s(&wanted), 1e-12);
                weighted(&made).backward().unwrap();
                weighted(&wanted).backward().unwrap();
                assert_eq!(sparse.grad().unwrap().layout().name(), "sparse_coo");
                assert_close(&f64s(&sparse.grad().unwrap()), &f64s(&dense.grad().unwrap()), 1e-12);
            }
        }
    }
}

#[test]
fn steps_and_bounds_are_those_of_strided_gradients() {
    let _one = load(PLUGINS);
    let at = ints(&[4, 1, 4, 0], &[4]);
    let plain = SgdOptions { lr: 0.1, ..SgdOptions::default() };
    let heavy = SgdOptions { momentum: 0.9, weight_decay: 0.01, ..plain };
    for options in [plain, heavy] {
        let (sparse, dense) = (table(6, 3), table(6, 3));
        let mut of_sparse = Sgd::new(vec![sparse.clone()], options).unwrap();
        let mut of_dense = Sgd::new(vec![dense.clone()], options).unwrap();
        for step in 0..3 {
            of_sparse.zero_grad();
            of_dense.zero_grad();
            weighted(&sparse.embedding_sparse(&at).unwrap()).backward().unwrap();
            weighted(&dense.embedding(&at).unwrap()).backward().unwrap();
            if step == 1 {
                let norms = [&sparse, &dense].map(|w| clip_grad_norm_(std::slice::from_ref(w), 1.5).unwrap());
                assert_close(&f64s(&norms[0]), &f64s(&norms[1]), 1e-12);
            }
            if step == 2 {
                let _ = [&sparse, &dense].map(|w| clip_grad_value_(std::slice::from_ref(w), 0.75).unwrap());
            }
            assert_close(&f64s(&sparse.grad().unwrap()), &f64s(&dense.grad().unwrap()), 1e-12);
            of_sparse.step().unwrap();
            of_dense.step().unwrap();
            assert_close(&f64s(&sparse), &f64s(&dense), 1e-12);
        }
    }
}

#[test]
fn hooks_see_them_and_they_can_be_differentiated() {
    let _one = load(PLUGINS);
    let w = table(6, 3);
    let hook = w.register_hook(|grad| {
        assert_eq!(grad.layout().name(), "sparse_coo");
        Ok(Some(grad.mul(2.0)?))
    });
    weighted(&w.embedding_sparse(&ints(&[5, 5], &[2])).unwrap()).backward().unwrap();
    assert!(hook.is_ok());
    let twice = f64s(&w.grad().unwrap());
    assert!(twice[..15].iter().all(|g| *g == 0.0) && twice[15..].iter().any(|g| *g != 0.0));

    let w = table(6, 3);
    let read = w.embedding_sparse(&ints(&[3, 1], &[2])).unwrap();
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let cubes = read.square().unwrap().mul(&read).unwrap().sum_all().unwrap();
    let first = grad(&[cubes], std::slice::from_ref(&w), options).unwrap().remove(0).unwrap();
    assert_eq!(first.layout().name(), "sparse_coo");
    first.sum_all().unwrap().backward().unwrap();
    let wanted: Vec<f64> = f64s(&w)
        .iter()
        .enumerate()
        .map(|(i, x)| if i / 3 == 3 || i / 3 == 1 { 6.0 * x } else { 0.0 })
        .collect();
    assert_close(&f64s(&w.grad().unwrap()), &wanted, 1e-12);
    assert_eq!(first.dtype(), DType::F64);
}

/// A gradient may have other dimensions within its entries than the tensor: those of a shape that came from another.
#[test]
fn gradients_of_other_sparse_dimensions_are_read_where_entries_are() {
    let _one = load(PLUGINS);
    let gradient = floats(&[1.0, 2.0, 0.0, 0.0, 5.0, 6.0, 7.0, 0.0, 0.0, 10.0, 11.0, 12.0], &[2, 3, 2]);
    let coo = |places: &[i64], rows: usize, block: &[usize]| {
        let n = places.len() / rows;
        let sizes: Vec<usize> = std::iter::once(n).chain(block.iter().copied()).collect();
        let values = floats(&vec![1.0; sizes.iter().product()], &sizes);
        Tensor::sparse_coo(&ints(places, &[rows, n]), &values, [2, 3, 2]).unwrap()
    };
    // Out of order, with one duplicate.
    let patterns = [
        coo(&[1, 0, 1], 1, &[3, 2]),
        coo(&[1, 0, 0, 1, 2, 0, 1, 2], 2, &[2]),
        coo(&[1, 0, 1, 0, 0, 1, 2, 0, 2, 2, 1, 1, 0, 1, 0], 3, &[]),
    ];
    for pattern in &patterns {
        let wanted = gradient.sparse_mask_like(pattern).unwrap();
        for made_as in &patterns {
            // The coordinates of all elements, for each number of sparse dimensions.
            let own = gradient.sparse_mask(&made_as.coalesce().unwrap()).unwrap();
            let there = own.to_dense().unwrap().sparse_mask_like(pattern).unwrap();
            let made = own.sparse_mask_like(pattern).unwrap();
            assert_eq!(f64s(&made.values().unwrap()), f64s(&there.values().unwrap()));
            assert_eq!(f64s(&made.indices().unwrap().to_dtype(DType::F64).unwrap()), {
                f64s(&wanted.indices().unwrap().to_dtype(DType::F64).unwrap())
            });
        }
    }
    let leaf =
        Tensor::sparse_coo(&ints(&[0, 0, 2, 0], &[2, 2]), &floats(&[3.0, 4.0], &[2, 1]), [1, 3, 1]).unwrap();
    let leaf = leaf.requires_grad_(true).unwrap();
    weighted(&leaf.squeeze(..).unwrap().to_dense().unwrap()).backward().unwrap();
    assert_eq!(f64s(&leaf.grad().unwrap().values().unwrap()), [0.5, -2.5]);
}

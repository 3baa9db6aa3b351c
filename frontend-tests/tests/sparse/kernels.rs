//! Norms, powers, products of vectors, repeated entries and changes in place of sparse tensors: what they give on strided ones,
//! coalesced or not, and their derivatives.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::{DType, Device, Tensor};
use keyway_dispatcher::device::{memory_stats, reset_peak};

const INFINITY: f64 = f64::INFINITY;

/// Indices of a 3 x 4 matrix: two entries at (1, 2), not in order; in order; none.
const PLACES: [&[i64]; 3] = [&[1, 0, 2, 1, 2, 2, 3, 0, 2, 1], &[0, 1, 2, 2, 3, 2, 0, 1], &[]];
/// Rows of a 5 x 3 matrix.
const ROWS: [&[i64]; 3] = [&[2, 0, 2, 3], &[0, 2, 4], &[]];

/// Values with well separated magnitudes.
fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.45).collect()
}

fn matrix(places: &[i64], values: &Tensor) -> Tensor {
    Tensor::sparse_coo(&ints(places, &[2, places.len() / 2]), values, [3, 4]).unwrap()
}

fn rows(places: &[i64], values: &Tensor) -> Tensor {
    Tensor::sparse_coo(&ints(places, &[1, places.len()]), values, [5, 3]).unwrap()
}

fn all() -> Vec<Tensor> {
    let matrices = PLACES.map(|at| matrix(at, &floats(&numbers(at.len() / 2), &[at.len() / 2])));
    let hybrid = ROWS.map(|at| rows(at, &floats(&numbers(3 * at.len()), &[at.len(), 3])));
    matrices.into_iter().chain(hybrid).collect()
}

#[track_caller]
fn same(what: &str, sparse: keyway::Result<Tensor>, dense: keyway::Result<Tensor>) {
    let (sparse, dense) = (sparse.unwrap_or_else(|e| panic!("{what}: {e}")), dense.unwrap());
    assert_eq!((sparse.shape(), sparse.dtype()), (dense.shape(), dense.dtype()), "{what}");
    println!("{what}");
    assert_close(&f64s(&sparse), &f64s(&dense), 1e-12);
}

#[test]
fn values_are_those_of_strided_tensors() {
    let _one = load(PLUGINS);
    for a in all() {
        let d = a.to_dense().unwrap();
        for p in [2.0, 1.0, 0.0, 3.0, 0.5, INFINITY, -INFINITY] {
            for dims in [&[][..], &[0], &[1], &[-1, 0]] {
                let what = format!("norm {p} over {dims:?}");
                same(&what, a.norm_with(p, dims, false), d.norm_with(p, dims, false));
                same(&format!("{what}, kept"), a.norm_with(p, dims, true), d.norm_with(p, dims, true));
            }
        }
        same("pow 2", a.pow(2), d.pow(2));
        same("pow 3.0", a.pow(3.0), d.pow(3.0));
        same("pow 0.5", a.abs().unwrap().pow(0.5), d.abs().unwrap().pow(0.5));
        assert!(message(a.pow(0)).contains("to_dense()"));
        assert!(message(a.pow(-1.0)).contains("to_dense()"));
        assert!(message(a.pow(&d)).contains("to_dense()"));
        for dim in [0, 1] {
            same("stack", Tensor::stack(&[&a, &a], dim), Tensor::stack(&[&d, &d], dim));
        }
        same("expand", a.expand([2, d.shape()[0], d.shape()[1]]), d.expand([2, d.shape()[0], d.shape()[1]]));
        let (thin, wide) = (a.unsqueeze(1).unwrap(), [2, d.shape()[0], 3, d.shape()[1]]);
        same("expand more", thin.expand(wide), d.unsqueeze(1).unwrap().expand(wide));
        assert_eq!(thin.expand(wide).unwrap().is_coalesced().unwrap(), a.is_coalesced().unwrap());
        let none = [d.shape()[0], 0, d.shape()[1]];
        same("expand to none", thin.expand(none), d.unsqueeze(1).unwrap().expand(none));
    }
    let i = matrix(PLACES[0], &ints(&[3, -2, 5, 4, 1], &[5]));
    same("pow of whole numbers", i.pow(3), i.to_dense().unwrap().pow(3));
    let half = all()[0].to_dtype(DType::BF16).unwrap();
    let norm = half.norm(1).unwrap();
    assert_eq!(norm.dtype(), DType::BF16);
    assert_close(&f64s(&norm), &f64s(&half.to_dense().unwrap().norm(1).unwrap()), 1e-2);
}

#[test]
fn products_of_vectors_are_strided_numbers() {
    let _one = load(PLUGINS);
    let vector = |at: &[i64], values: &[f64]| {
        Tensor::sparse_coo(&ints(at, &[1, at.len()]), &floats(values, &[at.len()]), [7]).unwrap()
    };
    let a = vector(&[5, 1, 5, 2], &[1.0, -2.0, 0.5, 3.0]);
    let x = floats(&numbers(7), &[7]);
    for b in [vector(&[2, 5, 2, 0], &[1.5, 2.0, -0.25, 9.0]), vector(&[0, 3], &[1.0, 2.0]), vector(&[], &[])]
    {
        same("dot", a.dot(&b), a.to_dense().unwrap().dot(&b.to_dense().unwrap()));
        assert!(a.dot(&b).unwrap().as_ref().is_strided());
        same("dot of one", b.dot(&x), b.to_dense().unwrap().dot(&x));
        same("dot of the other", x.dot(&b), x.dot(&b.to_dense().unwrap()));
    }
    let dense_dim = x.to_sparse_with(0).unwrap();
    same("dot of a block", dense_dim.dot(&x), x.dot(&x));
}

#[test]
fn a_sparse_tensor_is_added_in_place_where_it_stores() {
    let _one = load(PLUGINS);
    for a in all() {
        let base = floats(&numbers(a.elem_count()), a.shape());
        for strided in [base.copy().unwrap(), base.t().unwrap().copy().unwrap().t().unwrap()] {
            let d = a.to_dense().unwrap();
            strided.add_(&a).unwrap();
            same("add_", Ok(strided.copy().unwrap()), base.add(&d));
            strided.sub_with_(&a, 0.5).unwrap();
            same("sub_with_", Ok(strided), base.add_with(&d, 0.5));
        }
        let half = base.to_dtype(DType::F32).unwrap();
        half.add_(&a.to_dtype(DType::F32).unwrap()).unwrap();
        assert_close(&f64s(&half), &f64s(&base.add(&a.to_dense().unwrap()).unwrap()), 1e-6);
    }
    let whole = ints(&[250, 3, 4], &[3]).to_dtype(DType::U8).unwrap();
    let few = Tensor::sparse_coo(
        &ints(&[0, 2, 0], &[1, 3]),
        &ints(&[5, 9, 7], &[3]).to_dtype(DType::U8).unwrap(),
        [3],
    );
    whole.sub_(&few.unwrap()).unwrap();
    assert_eq!(f64s(&whole), [238.0, 3.0, 251.0]);
    // Memory follows the entries.
    let large = Tensor::zeros([1 << 11, 1 << 11]).unwrap();
    let few =
        Tensor::sparse_coo(&ints(&[7, 2000, 5, 5], &[2, 2]), &floats(&[1.0, 2.0], &[2]), [1 << 11, 1 << 11]);
    let few = few.unwrap().to_dtype(DType::F32).unwrap();
    reset_peak(Device::CPU).unwrap();
    let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
    large.add_(&few).unwrap();
    assert!(memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before < 1 << 16);
    assert_eq!(large.sum_all().unwrap().item::<f32>().unwrap(), 3.0);
}

#[test]
fn sizes_may_be_larger_than_memory() {
    let _one = load(PLUGINS);
    let sizes = [1usize << 40, 1 << 20];
    let indices = ints(&[(1 << 40) - 1, 5, (1 << 40) - 1, 7, 3, 7], &[2, 3]);
    let s = Tensor::sparse_coo(&indices, &floats(&[1.0, 2.0, 4.0], &[3]), sizes).unwrap();
    let c = s.coalesce().unwrap();
    assert_eq!((c.nnz().unwrap(), s.elem_count()), (2, 1 << 60));
    assert_eq!(c.values().unwrap().to_vec_f64().unwrap(), [2.0, 5.0]);
    assert_eq!(c.indices().unwrap().to_vec::<i64>().unwrap(), [5, (1 << 40) - 1, 3, 7]);
    assert_eq!(s.sum_all().unwrap().to_vec_f64().unwrap(), [7.0]);
    assert_eq!(s.add(&c).unwrap().mul(&s).unwrap().sum_all().unwrap().to_vec_f64().unwrap(), [58.0]);
    assert_eq!(s.t().unwrap().shape(), [1 << 20, 1 << 40]);
    assert_eq!(s.select(0, -1).unwrap().sum_all().unwrap().to_vec_f64().unwrap(), [5.0]);
    assert!(format!("{s}").contains("1099511627776"));
    assert!(message(s.to_dense()).contains("smaller sizes"));
    let text =
        message(Tensor::sparse_coo(&indices, &floats(&[1.0, 2.0, 4.0], &[3]), [1usize << 40, 1 << 23]));
    assert!(text.contains("smaller sizes"), "{text}");
}

#[test]
fn derivatives() {
    let _one = load(PLUGINS);
    let one = |f: fn(&Tensor) -> keyway::Result<Tensor>| f;
    let functions = [
        ("norm", one(|s| s.norm(..))),
        ("norm 2 0", one(|s| s.norm(0)?.square()?.to_dense())),
        ("norm 2 1", one(|s| s.norm_keepdim(1)?.to_dense())),
        ("norm 1", one(|s| s.norm_with(1.0, 1, false)?.square()?.to_dense())),
        ("norm 3", one(|s| s.norm_with(3.0, 0, true)?.to_dense())),
        ("norm 3 of all", one(|s| s.norm_with(3.0, .., false))),
        ("norm inf", one(|s| s.norm_with(INFINITY, 1, false)?.square()?.to_dense())),
        ("norm inf of all", one(|s| s.norm_with(INFINITY, .., false)?.square())),
        ("norm -inf", one(|s| s.norm_with(-INFINITY, .., false))),
        ("norm 0", one(|s| s.norm_with(0.0, 0, false)?.to_dense()?.add(&s.sum(0)?.to_dense()?))),
        ("norms and more", one(|s| s.norm(..)?.add(&s.square()?.sum_all()?)?.mul(&s.sum_all()?))),
        ("pow", one(|s| s.pow(2)?.to_dense())),
        ("pow 3", one(|s| s.pow(3.0)?.mul(2)?.to_dense())),
        ("pow 1.5", one(|s| s.square()?.pow(1.5)?.sum_all())),
        ("stack", one(|s| Tensor::stack(&[s, &s.square()?], 0)?.to_dense())),
        ("expand", one(|s| s.unsqueeze(0)?.expand([2, s.shape()[0], s.shape()[1]])?.square()?.to_dense())),
    ];
    for (name, function) in functions {
        for at in PLACES {
            let n = at.len() / 2;
            check(name, &|t| Ok(vec![function(&matrix(at, &t[0]))?]), &[leaf(&numbers(n), &[n])]);
        }
        for at in ROWS {
            let n = at.len();
            check(name, &|t| Ok(vec![function(&rows(at, &t[0]))?]), &[leaf(&numbers(3 * n), &[n, 3])]);
        }
    }
    let x = leaf(&numbers(7), &[7]);
    let sparse = |at: &[i64], t: &Tensor| Tensor::sparse_coo(&ints(at, &[1, at.len()]), t, [7]);
    for at in [&[5i64, 1, 5, 2][..], &[1, 2, 5], &[]] {
        let values = leaf(&numbers(at.len()), &[at.len()]);
        check("dot", &|t| Ok(vec![sparse(at, &t[0])?.dot(&t[1])?]), &[values.clone(), x.clone()]);
        check(
            "dot of two",
            &|t| {
                let (a, b) = (sparse(at, &t[0])?, sparse(&[2, 5, 2, 0], &t[1])?);
                Ok(vec![a.dot(&b)?.add(&a.sum_all()?)?])
            },
            &[values.clone(), leaf(&numbers(4), &[4])],
        );
        check(
            "add_",
            &|t| Ok(vec![t[1].square()?.add_with_(&sparse(at, &t[0])?, 3.0)?.square()?]),
            &[values, x.clone()],
        );
    }
    let m = leaf(&numbers(12), &[3, 4]);
    for at in PLACES {
        let n = at.len() / 2;
        check(
            "add_ to a matrix",
            &|t| Ok(vec![t[1].mul(2.0)?.sub_(&matrix(at, &t[0]))?.square()?]),
            &[leaf(&numbers(n), &[n]), m.clone()],
        );
    }
}

//! Sparse tensors as coordinates, with the library that serves them: made, asked, computed with and differentiated. What is
//! not coalesced must give what its sums give, in each op.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::nn::Approximate;
use keyway::{DType, Layout, Tensor};

/// A 3 x 4 matrix with two entries at (1, 2), not in order.
fn uncoalesced() -> Tensor {
    let indices = ints(&[1, 0, 2, 1, 2, 2, 3, 0, 2, 1], &[2, 5]);
    Tensor::sparse_coo(&indices, &floats(&[1.5, -2.0, 0.5, 2.25, 0.75], &[5]), [3, 4]).unwrap()
}

const DENSE: [f64; 12] = [0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 3.75, 0.0, 0.5, 0.75, 0.0, 0.0];

/// Rows of a table: one sparse dimension, one dense, a row that comes twice.
fn hybrid() -> Tensor {
    let values = floats(&[1.0, -1.0, 2.0, 0.5, 0.25, 3.0, -2.0, 1.0, 0.0, 1.0, 1.5, -0.5], &[4, 3]);
    Tensor::sparse_coo(&ints(&[2, 0, 2, 3], &[1, 4]), &values, [5, 3]).unwrap()
}

fn empty(sizes: &[usize]) -> Tensor {
    Tensor::sparse_coo(&ints(&[], &[sizes.len(), 0]), &floats(&[], &[0]), sizes).unwrap()
}

#[test]
fn made_and_asked() {
    let _one = load(PLUGINS);
    let a = uncoalesced();
    assert_eq!((a.layout().name(), a.shape(), a.dtype()), ("sparse_coo", [3, 4].as_slice(), DType::F64));
    assert_eq!((a.nnz().unwrap(), a.sparse_dim().unwrap(), a.dense_dim().unwrap()), (5, 2, 0));
    assert!(!a.is_coalesced().unwrap());
    assert_eq!(f64s(&a), DENSE);
    let c = a.coalesce().unwrap();
    assert!(c.is_coalesced().unwrap());
    assert_eq!(c.indices().unwrap().to_vec::<i64>().unwrap(), [0, 1, 2, 2, 3, 2, 0, 1]);
    assert_eq!(c.values().unwrap().to_vec::<f64>().unwrap(), [-2.0, 3.75, 0.5, 0.75]);
    assert_eq!(f64s(&c), DENSE);
    let h = hybrid();
    assert_eq!((h.nnz().unwrap(), h.sparse_dim().unwrap(), h.dense_dim().unwrap()), (4, 1, 1));
    assert_eq!(f64s(&h), [0.5, 0.25, 3.0, 0.0, 0.0, 0.0, -1.0, 0.0, 2.0, 1.0, 1.5, -0.5, 0.0, 0.0, 0.0]);
    assert_eq!(h.coalesce().unwrap().nnz().unwrap(), 3);
    let e = empty(&[2, 3]);
    assert!(e.is_coalesced().unwrap() && e.nnz().unwrap() == 0);
    assert_eq!(f64s(&e), [0.0; 6]);
    let text = format!("{a}");
    assert!(text.contains("indices=tensor([[1, 0, 2, 1, 2]") && text.contains("coalesced=false"), "{text}");
    assert!(text.contains("size=(3, 4)") && text.contains("layout=sparse_coo"), "{text}");
}

#[test]
fn from_strided_and_back() {
    let _one = load(PLUGINS);
    let d = floats(&DENSE, &[3, 4]);
    let s = d.to_sparse_with(2).unwrap();
    assert!(s.is_coalesced().unwrap());
    assert_eq!(s.nnz().unwrap(), 4);
    assert_eq!(f64s(&s), DENSE);
    let rows = floats(&[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], &[3, 2]).to_sparse_with(1).unwrap();
    assert_eq!((rows.nnz().unwrap(), rows.dense_dim().unwrap()), (1, 1));
    assert_eq!(rows.values().unwrap().to_vec::<f64>().unwrap(), [1.0, 0.0]);
    let scalar = Tensor::new(2.0f64).unwrap().to_sparse_with(0).unwrap();
    assert_eq!((scalar.nnz().unwrap(), f64s(&scalar)), (1, vec![2.0]));
    let layout = Layout::from_name("sparse_coo").unwrap();
    assert_eq!(f64s(&d.t().unwrap().to_layout(layout).unwrap()), f64s(&d.t().unwrap()));
    assert!(message(d.to_sparse_with(3)).contains("from 0 to 2"));
    assert_eq!(f64s(&s.to_sparse_with(1).unwrap()), f64s(&s));
    assert!(message(d.nnz()).contains("to_sparse"));
}

#[test]
fn bad_parts_are_refused() {
    let _one = load(PLUGINS);
    let values = floats(&[1.0, 2.0], &[2]);
    let make = |indices: &Tensor, values: &Tensor, sizes: &[usize]| {
        message(Tensor::sparse_coo(indices, values, sizes))
    };
    let good = ints(&[0, 1, 1, 2], &[2, 2]);
    for (indices, values, sizes, part) in [
        (ints(&[0, 3, 1, 2], &[2, 2]), &values, &[3, 4][..], "below 3 in dimension 0"),
        (ints(&[0, -1, 1, 2], &[2, 2]), &values, &[3, 4], "got -1"),
        (good.to_dtype(DType::F32).unwrap(), &values, &[3, 4], "an integer dtype"),
        (ints(&[0, 1], &[2]), &values, &[3, 4], "two dimensions"),
        (good.clone(), &floats(&[1.0], &[1]), &[3, 4], "of shape [2]"),
        (good.clone(), &values, &[3], "at most 1 rows"),
        (good.clone(), &values, &[3, 4, 5], "of shape [2, 5]"),
        (good.clone(), &values, &[1 << 40, 1 << 40], "more"),
    ] {
        let text = make(&indices, values, sizes);
        assert!(text.contains(part), "{text}");
    }
    // A flag that does not tell the truth, and an index that was changed since.
    let layout = Layout::from_name("sparse_coo").unwrap();
    let a = uncoalesced();
    let parts = a.components().unwrap();
    let text = message(Tensor::from_components(layout, &[3, 4], DType::F64, &parts, &[1]));
    assert!(text.contains("coalesced"), "{text}");
    a.indices().unwrap().add_(100i64).unwrap();
    assert!(message(a.to_dense()).contains("below 3"));
    assert_eq!(f64s(&uncoalesced()), DENSE, "the plugin goes on");
}

/// The result of an op on a sparse tensor must equal that on the strided one.
#[track_caller]
fn same(what: &str, sparse: keyway::Result<Tensor>, dense: keyway::Result<Tensor>) {
    let (sparse, dense) = (sparse.unwrap_or_else(|e| panic!("{what}: {e}")), dense.unwrap());
    assert_eq!(sparse.shape(), dense.shape(), "{what}");
    assert_eq!(sparse.dtype(), dense.dtype(), "{what}");
    assert_close(&f64s(&sparse), &f64s(&dense), 1e-12);
}

type Unary = fn(&Tensor) -> keyway::Result<Tensor>;

const UNARY: [(&str, Unary); 22] = [
    ("leaky_relu", |t| t.leaky_relu_with(0.25)),
    ("gelu", |t| t.gelu()),
    ("gelu by tanh", |t| t.gelu_with(Approximate::Tanh)),
    ("elu", |t| t.elu_with(0.5)),
    ("celu", |t| t.celu_with(2)),
    ("selu", Tensor::selu),
    ("mish", Tensor::mish),
    ("softshrink", |t| t.softshrink()),
    ("neg", Tensor::neg),
    ("abs", Tensor::abs),
    ("relu", Tensor::relu),
    ("square", Tensor::square),
    ("sin", Tensor::sin),
    ("tanh", Tensor::tanh),
    ("sinh", Tensor::sinh),
    ("atan", Tensor::atan),
    ("asinh", Tensor::asinh),
    ("expm1", Tensor::expm1),
    ("silu", Tensor::silu),
    ("sign", Tensor::sign),
    ("mul", |t| t.mul(-2.5)),
    ("div", |t| t.div(4)),
];

#[test]
fn ops_of_one_tensor() {
    let _one = load(PLUGINS);
    for a in [uncoalesced(), uncoalesced().coalesce().unwrap(), hybrid(), empty(&[2, 3])] {
        let d = a.to_dense().unwrap();
        for (name, op) in UNARY {
            same(name, op(&a), op(&d));
            assert_eq!(op(&a).unwrap().layout().name(), "sparse_coo", "{name}");
        }
        same("sqrt", a.square().unwrap().sqrt(), d.abs());
        same("sum", a.sum_all(), d.sum_all());
        same("mean", a.mean_all(), d.mean_all());
        same("amax", a.amax(..), d.amax(..));
        for dims in [&[0][..], &[1], &[-1, 0]] {
            same("sum", a.sum(dims), d.sum(dims));
            same("sum_keepdim", a.sum_keepdim(dims), d.sum_keepdim(dims));
            same("mean", a.mean(dims), d.mean(dims));
            same("mean_keepdim", a.mean_keepdim(dims), d.mean_keepdim(dims));
            same("amax", a.amax(dims), d.amax(dims));
            same("amax_keepdim", a.amax_keepdim(dims), d.amax_keepdim(dims));
            same("amin", a.amin(dims), d.amin(dims));
            same("amin_keepdim", a.amin_keepdim(dims), d.amin_keepdim(dims));
        }
        same("select 0", a.select(0, 1), d.select(0, 1));
        same("select -1", a.select(-1, 2), d.select(-1, 2));
        same("narrow", a.narrow(1, 1, 2), d.narrow(1, 1, 2));
        same("slice", a.slice(0, Some(0), None, 2), d.slice(0, Some(0), None, 2));
        for dim in [0, -1] {
            let parts = [
                a.split(2, dim),
                a.chunk(3, dim),
                a.unbind(dim),
                a.split_sizes(&[0, 1, a.dim(dim).unwrap() - 1], dim),
            ];
            let expected = [
                d.split(2, dim),
                d.chunk(3, dim),
                d.unbind(dim),
                d.split_sizes(&[0, 1, d.dim(dim).unwrap() - 1], dim),
            ];
            for (parts, expected) in parts.into_iter().zip(expected) {
                let (parts, expected) = (parts.unwrap(), expected.unwrap());
                assert_eq!(parts.len(), expected.len());
                parts
                    .into_iter()
                    .zip(expected)
                    .for_each(|(part, expected)| same("split", Ok(part), Ok(expected)));
            }
            assert!(a.split_sizes(&[1, usize::MAX], dim).is_err() && a.chunk(0, dim).is_err());
        }
        same("unsqueeze", a.unsqueeze(0), d.unsqueeze(0));
        same("unsqueeze -1", a.unsqueeze(-1), d.unsqueeze(-1));
        same("squeeze", a.unsqueeze(1).unwrap().squeeze(..), d.squeeze(..));
        let picked = ints(&[1, 0, 1], &[3]);
        same("index_select 0", a.index_select(0, &picked), d.index_select(0, &picked));
        same("index_select 1", a.index_select(1, &picked), d.index_select(1, &picked));
        same("cat 0", Tensor::cat(&[&a, &a], 0), Tensor::cat(&[&d, &d], 0));
        same("cat 1", Tensor::cat(&[&a, &a], 1), Tensor::cat(&[&d, &d], 1));
        same("clone", a.copy(), d.copy());
        same("to_dtype", a.to_dtype(DType::F32), d.to_dtype(DType::F32));
        same("to_dtype", a.to_dtype(DType::I32), d.to_dtype(DType::I32));
    }
    let a = uncoalesced();
    let d = a.to_dense().unwrap();
    same("transpose", a.t(), d.t());
    same("permute", a.permute([1, 0]), d.permute([1, 0]));
    same("reshape", a.reshape([2, -1]), d.reshape([2, -1]));
    assert!(a.coalesce().unwrap().t().unwrap().is_coalesced().unwrap());
    // If a dense dimension becomes a sparse one, each number is an entry.
    assert_eq!(hybrid().t().unwrap().sparse_dim().unwrap(), hybrid().rank());
    same("transpose of blocks", hybrid().t(), hybrid().to_dense().unwrap().t());
    assert!(message(a.exp()).contains("to_dense()"));
    assert!(message(a.transpose(0, 2)).contains("dimension in"));
}

#[test]
fn sums_and_products_of_two() {
    let _one = load(PLUGINS);
    let a = uncoalesced();
    let other = Tensor::sparse_coo(
        &ints(&[0, 1, 1, 1, 3, 2, 0, 2], &[2, 4]),
        &floats(&[10.0, 20.0, 30.0, 40.0], &[4]),
        [3, 4],
    )
    .unwrap();
    let b = floats(&(0..12).map(|i| f64::from(i) * 0.5 - 2.0).collect::<Vec<_>>(), &[3, 4]);
    let (d, o) = (a.to_dense().unwrap(), other.to_dense().unwrap());
    same("add", a.add(&other), d.add(&o));
    same("add scaled", a.add_with(&other, -0.5), d.add_with(&o, -0.5));
    same("sub", a.sub(&other), d.sub(&o));
    same("add dense", a.add(&b), d.add(&b));
    same("dense add", b.add_with(&a, 3), b.add_with(&d, 3));
    same("dense sub", b.sub(&a), b.sub(&d));
    same("sparse sub dense", a.sub(&b), d.sub(&b));
    same("mul", a.mul(&other), d.mul(&o));
    same("mul dense", a.mul(&b), d.mul(&b));
    same("dense mul", b.mul(&a), b.mul(&d));
    let row = b.select(0, 1).unwrap();
    same("mul row", a.mul(&row), d.mul(&row));
    same("mul 0-d", a.mul(&Tensor::new(3.0f64).unwrap()), d.mul(3.0));
    same("div dense", a.div(&b.add(10.0).unwrap()), d.div(&b.add(10.0).unwrap()));
    same("add to itself", a.add(&a), d.add(&d));
    same("mask", b.sparse_mask(&a), b.mul(&d.ne(0).unwrap().to_dtype(DType::F64).unwrap()));
    let target = b.copy().unwrap();
    target.add_(&a).unwrap();
    same("add_", Ok(target), b.add(&d));
    let h = hybrid();
    let hd = h.to_dense().unwrap();
    same("hybrid add", h.add(&h.neg().unwrap().mul(3).unwrap()), hd.mul(-2.0));
    same("hybrid mul", h.mul(&h.abs().unwrap()), hd.mul(&hd.abs().unwrap()));
    same("hybrid mul dense", h.mul(&hd), hd.mul(&hd));
    assert!(message(a.add(1.0)).contains("to_dense()"));
    assert!(message(b.div(&a)).contains("to_dense()"));
    same("add rows", a.add(&d.to_sparse_with(1).unwrap()), d.mul(2.0));
    same("mul rows", d.to_sparse_with(1).unwrap().mul(&other), d.mul(&o));
}

#[test]
fn products_of_matrices() {
    let _one = load(PLUGINS);
    let numbers = |n: usize| (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.5).collect::<Vec<_>>();
    for m in [1, 5, 70] {
        let b = floats(&numbers(4 * m), &[4, m]);
        for a in [uncoalesced(), uncoalesced().coalesce().unwrap(), empty(&[3, 4])] {
            let d = a.to_dense().unwrap();
            same("mm", a.mm(&b), d.mm(&b));
            same(
                "mm of strides",
                a.mm(&floats(&numbers(4 * m), &[m, 4]).t().unwrap()),
                d.mm(&floats(&numbers(4 * m), &[m, 4]).t().unwrap()),
            );
            let left = floats(&numbers(3 * m), &[m, 3]);
            same("dense mm", left.mm(&a), left.mm(&d));
            let c = floats(&numbers(3 * m), &[3, m]);
            same("addmm", c.addmm_with(&a, &b, 0.5, 2.0), c.addmm_with(&d, &b, 0.5, 2.0));
            same("mm sparse", a.mm(&a.t().unwrap()), d.mm(&d.t().unwrap()));
            same("matmul", a.matmul(&b), d.matmul(&b));
            same(
                "sampled",
                a.sampled_mm(&c, &b.t().unwrap()),
                c.mm(&b.t().unwrap()).unwrap().sparse_mask(&a),
            );
        }
    }
    let a = uncoalesced();
    let x = floats(&[1.0, -2.0, 0.5, 3.0], &[4]);
    same("mv", a.mv(&x), a.to_dense().unwrap().mv(&x));
    assert_eq!(a.mm(&a.t().unwrap()).unwrap().layout().name(), "sparse_coo");
    let stack = Tensor::sparse_coo(
        &ints(&[1, 0, 1, 0, 1, 0, 2, 1, 0, 2, 1, 0], &[3, 4]),
        &floats(&[1.0, 2.0, 3.0, 4.0], &[4]),
        [2, 3, 3],
    )
    .unwrap();
    let b = floats(&numbers(2 * 3 * 4), &[2, 3, 4]);
    same("bmm", stack.bmm(&b), stack.to_dense().unwrap().bmm(&b));
    let left = floats(&numbers(2 * 2 * 3), &[2, 2, 3]);
    same("dense bmm", left.bmm(&stack), left.bmm(&stack.to_dense().unwrap()));
    let factor = floats(&numbers(6), &[3, 2]);
    same("mm of blocks", hybrid().mm(&factor), hybrid().to_dense().unwrap().mm(&factor));
}

#[test]
fn softmax_leaves_out_what_is_not_stored() {
    let _one = load(PLUGINS);
    let a = uncoalesced();
    let minus = |d: &Tensor| {
        let stored = d.ne(0).unwrap();
        d.masked_fill(&stored.logical_not().unwrap(), f64::NEG_INFINITY).unwrap()
    };
    for dim in [0, 1] {
        let dense = minus(&a.to_dense().unwrap());
        let wanted = dense.softmax(dim).unwrap().sparse_mask(&a).unwrap();
        same("softmax", a.softmax(dim), Ok(wanted));
        let wanted = dense.log_softmax(dim).unwrap().sparse_mask(&a).unwrap();
        same("log_softmax", a.log_softmax(dim), Ok(wanted));
    }
    // Along a dense dimension the whole lines are stored.
    let h = hybrid().coalesce().unwrap();
    let values = h.values().unwrap().softmax(1).unwrap();
    assert_close(
        &h.softmax(1).unwrap().values().unwrap().to_vec_f64().unwrap(),
        &values.to_vec_f64().unwrap(),
        1e-12,
    );
}

#[test]
fn integers_and_narrow_floats() {
    let _one = load(PLUGINS);
    let indices = ints(&[1, 0, 1, 2, 2, 2], &[2, 3]);
    for dtype in [DType::I32, DType::U8, DType::I64, DType::F16, DType::BF16, DType::F32] {
        let values = ints(&[3, 4, 5], &[3]).to_dtype(dtype).unwrap();
        let a = Tensor::sparse_coo(&indices, &values, [2, 3]).unwrap();
        let d = a.to_dense().unwrap();
        same("sum", a.sum_all(), d.sum_all());
        same("sum 0", a.sum(0), d.sum(0));
        same("mul", a.mul(3), d.mul(3));
        same("add", a.add(&a), d.add(&d));
        same("amax", a.amax(1), d.amax(1));
        let b = ints(&[1, 2, 3, 4, 5, 6], &[3, 2]).to_dtype(dtype).unwrap();
        same("mm", a.mm(&b), d.mm(&b));
        assert_eq!(f64s(&a), [0.0, 0.0, 4.0, 0.0, 0.0, 8.0]);
    }
    // Eight bits overflow where 64 do not.
    let a = Tensor::sparse_coo(
        &ints(&[0, 0], &[1, 2]),
        &ints(&[100, 100], &[2]).to_dtype(DType::I8).unwrap(),
        [1],
    )
    .unwrap();
    assert_eq!(f64s(&a), [-56.0]);
}

#[test]
fn derivatives_with_respect_to_values() {
    let _one = load(PLUGINS);
    let places = ints(&[1, 0, 2, 1, 2, 2, 3, 0, 2, 1], &[2, 5]);
    let in_order = ints(&[0, 1, 2, 2, 3, 2, 0, 1], &[2, 4]);
    let b: Vec<f64> = (0..8).map(|i| f64::from(i * 5 % 7) * 0.4 - 1.0).collect();
    let b = leaf(&b, &[4, 2]);
    let c = leaf(&(0..12).map(|i| f64::from(i * 5 % 11) * 0.3 + 0.4).collect::<Vec<_>>(), &[3, 4]);
    let one = |f: fn(&Tensor, &Tensor, &Tensor) -> keyway::Result<Tensor>| f;
    let functions = [
        ("to_dense", one(|s, _, _| s.to_dense())),
        ("values", one(|s, _, _| s.values()?.square())),
        ("coalesce", one(|s, _, _| s.coalesce()?.values()?.square())),
        ("both", one(|s, _, c| s.values()?.square()?.sum_all()?.add(&s.to_dense()?.mul(c)?.sum_all()?))),
        ("mm", one(|s, b, _| s.mm(b))),
        ("dense mm", one(|s, _, c| c.t()?.mm(s))),
        ("mm sparse", one(|s, _, _| s.mm(&s.t()?)?.to_dense())),
        ("mv", one(|s, b, _| s.mv(&b.select(1, 0)?))),
        ("addmm", one(|s, b, c| c.narrow(1, 0, 2)?.addmm_with(s, b, 2.0, 3.0))),
        ("mul dense", one(|s, _, c| s.mul(c)?.to_dense())),
        ("div dense", one(|s, _, c| s.div(c)?.to_dense())),
        ("mul sparse", one(|s, _, c| s.mul(&c.sparse_mask(s)?)?.to_dense())),
        (
            "mul sparse and more",
            one(|s, _, _| s.mul(&uncoalesced())?.to_dense()?.sum_all()?.add(&s.sum_all()?)),
        ),
        ("add", one(|s, _, c| s.add(&c.sparse_mask(s)?)?.square()?.to_dense())),
        ("add dense", one(|s, _, c| c.sub(s)?.square())),
        ("sum", one(|s, _, _| s.sum_all()?.square())),
        ("sum 0", one(|s, _, _| s.sum(0)?.square()?.to_dense())),
        ("sum 1", one(|s, _, _| s.sum_keepdim(1)?.to_dense()?.square())),
        ("mean", one(|s, _, _| s.mean(1)?.to_dense()?.square())),
        ("square", one(|s, _, _| s.square()?.to_dense())),
        ("sin", one(|s, _, _| s.sin()?.to_dense())),
        ("sqrt", one(|s, _, _| s.square()?.mul(2)?.sqrt()?.to_dense())),
        ("tanh", one(|s, _, _| s.tanh()?.mul(3)?.neg()?.sum_all())),
        ("relu", one(|s, _, _| s.relu()?.to_dense())),
        ("gelu", one(|s, _, _| s.gelu()?.to_dense())),
        ("elu", one(|s, _, _| s.elu_with(0.5)?.to_dense())),
        ("celu", one(|s, _, _| s.celu_with(2)?.to_dense())),
        ("selu", one(|s, _, _| s.selu()?.to_dense())),
        ("mish", one(|s, _, _| s.mish()?.to_dense())),
        ("softshrink", one(|s, _, _| s.softshrink_with(0.3)?.to_dense())),
        ("clamp", one(|s, _, _| s.clamp(-1.03, 0.97)?.to_dense())),
        ("hardtanh", one(|s, _, _| s.hardtanh_with(-0.61, 1.23)?.square()?.to_dense())),
        ("hardshrink", one(|s, _, _| s.hardshrink_with(0.3)?.square()?.to_dense())),
        ("softsign", one(|s, _, _| s.softsign()?.to_dense())),
        ("nan_to_num", one(|s, _, _| s.nan_to_num()?.square()?.to_dense())),
        ("fmod", one(|s, _, _| s.fmod(0.7)?.square()?.to_dense())),
        ("remainder", one(|s, _, _| s.remainder(0.7)?.square()?.to_dense())),
        (
            "split",
            one(|s, _, _| {
                s.split(3, 1)?[0].square()?.to_dense()?.sum_all()?.add(&s.unbind(0)?[1].to_dense()?)
            }),
        ),
        ("t", one(|s, _, _| s.t()?.square()?.to_dense())),
        ("cat", one(|s, _, _| Tensor::cat(&[s, &s.square()?], 1)?.to_dense())),
        ("index_select", one(|s, _, _| s.index_select(0, &ints(&[2, 1, 2], &[3]))?.square()?.to_dense())),
        ("select", one(|s, _, _| s.select(0, 1)?.to_dense())),
        ("narrow", one(|s, _, _| s.narrow(1, 1, 2)?.to_dense())),
        ("reshape", one(|s, _, _| s.reshape([4, 3])?.to_dense())),
        ("softmax", one(|s, _, _| s.softmax(1)?.to_dense())),
        ("log_softmax", one(|s, _, _| s.log_softmax(1)?.to_dense())),
        ("amax", one(|s, _, _| s.amax(..)?.square())),
        ("amin 0", one(|s, _, _| s.amin(0)?.to_dense())),
        ("amax 1", one(|s, _, _| s.amax_keepdim(1)?.to_dense()?.square())),
    ];
    for (name, function) in functions {
        let run = |indices: &Tensor, t: &[Tensor]| {
            Ok(vec![function(&Tensor::sparse_coo(indices, &t[0], [3, 4])?, &t[1], &t[2])?])
        };
        let values = leaf(&[1.5, -2.0, 0.5, 2.25, 0.75], &[5]);
        check(name, &|t| run(&places, t), &[values, b.clone(), c.clone()]);
        let values = leaf(&[1.5, -2.0, 0.5, 2.25], &[4]);
        check(name, &|t| run(&in_order, t), &[values, b.clone(), c.clone()]);
        check(name, &|t| run(&ints(&[], &[2, 0]), t), &[leaf(&[], &[0]), b.clone(), c.clone()]);
    }
}

#[test]
fn derivatives_of_products_of_stacks() {
    let _one = load(PLUGINS);
    let numbers = |n: usize| (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.45).collect::<Vec<_>>();
    let other = leaf(&numbers(12), &[2, 3, 2]);
    let one = |f: fn(&Tensor, &Tensor) -> keyway::Result<Tensor>| f;
    let functions = [
        ("by strided", one(|s, d| s.bmm(d))),
        ("of strided", one(|s, d| d.transpose(1, 2)?.bmm(&s.transpose(1, 2)?))),
        ("by itself", one(|s, _| s.bmm(&s.transpose(1, 2)?)?.to_dense())),
        ("by sparse", one(|s, d| s.bmm(&d.sparse_mask(&s.transpose(1, 2)?)?)?.square()?.to_dense())),
        ("sampled", one(|s, d| s.sampled_mm(&d.transpose(1, 2)?, &d.bmm(&d.transpose(1, 2)?)?)?.to_dense())),
    ];
    for (name, function) in functions {
        for (places, count) in [
            (ints(&[1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 2, 0, 2, 2, 1], &[3, 5]), 5),
            (ints(&[0, 0, 1, 0, 1, 1, 2, 0, 1], &[3, 3]), 3),
            (ints(&[], &[3, 0]), 0),
        ] {
            let run =
                |t: &[Tensor]| Ok(vec![function(&Tensor::sparse_coo(&places, &t[0], [2, 2, 3])?, &t[1])?]);
            check(name, &run, &[leaf(&numbers(count), &[count]), other.clone()]);
        }
    }
    let places = ints(&[1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 2, 0, 2, 2, 1], &[3, 5]);
    let s = Tensor::sparse_coo(&places, &floats(&numbers(5), &[5]), [2, 2, 3]).unwrap();
    let (t, d) = (s.transpose(1, 2).unwrap(), s.to_dense().unwrap());
    same("bmm", s.bmm(&t), d.bmm(&t.to_dense().unwrap()));
    assert_eq!(s.bmm(&t).unwrap().layout().name(), "sparse_coo");
    let none = Tensor::sparse_coo(&ints(&[], &[3, 0]), &floats(&[], &[0]), [0, 2, 3]).unwrap();
    assert_eq!(none.bmm(&none.transpose(1, 2).unwrap()).unwrap().shape(), [0, 2, 2]);
    let block =
        Tensor::sparse_coo(&ints(&[1], &[1, 1]), &floats(&numbers(6), &[1, 2, 3]), [2, 2, 3]).unwrap();
    same("of blocks", block.bmm(&t), block.to_dense().unwrap().bmm(&t.to_dense().unwrap()));
}

#[test]
fn derivatives_of_hybrid_tensors() {
    let _one = load(PLUGINS);
    let c = leaf(&(0..15).map(|i| f64::from(i * 5 % 11) * 0.3 + 0.4).collect::<Vec<_>>(), &[5, 3]);
    let one = |f: fn(&Tensor, &Tensor) -> keyway::Result<Tensor>| f;
    let functions = [
        ("to_dense", one(|s, _| s.to_dense())),
        ("values", one(|s, _| s.values()?.square())),
        ("coalesce", one(|s, _| s.coalesce()?.values()?.square())),
        ("both", one(|s, c| s.values()?.square()?.sum_all()?.add(&s.to_dense()?.mul(c)?.sum_all()?))),
        ("mul dense", one(|s, c| s.mul(c)?.to_dense())),
        ("mul sparse", one(|s, c| s.mul(&c.sparse_mask(s)?)?.to_dense())),
        ("add", one(|s, c| s.add(&c.sparse_mask(s)?)?.square()?.to_dense())),
        ("sub dense", one(|s, c| s.sub(c)?.square())),
        ("sum", one(|s, _| s.sum_all()?.square())),
        ("sum 0", one(|s, _| s.sum(0)?.to_dense()?.square())),
        ("sum 1", one(|s, _| s.sum_keepdim(1)?.to_dense()?.square())),
        ("tanh", one(|s, _| s.tanh()?.to_dense())),
        ("div", one(|s, c| s.div(c)?.to_dense())),
        ("div by a number", one(|s, _| s.div(4)?.square()?.to_dense())),
        ("mean", one(|s, _| s.mean_all()?.square())),
        ("mean 0", one(|s, _| s.mean(0)?.to_dense()?.square())),
        ("mean 1", one(|s, _| s.mean_keepdim(1)?.to_dense()?.square())),
        ("log_softmax", one(|s, _| s.log_softmax(1)?.to_dense())),
        ("log_softmax 0", one(|s, _| s.log_softmax(0)?.to_dense())),
        ("index_select", one(|s, _| s.index_select(0, &ints(&[2, 1, 2], &[3]))?.square()?.to_dense())),
        ("index_select 1", one(|s, _| s.index_select(1, &ints(&[2, 2, 0], &[3]))?.square()?.to_dense())),
        ("narrow", one(|s, _| s.narrow(1, 1, 2)?.square()?.to_dense())),
        ("select 1", one(|s, _| s.select(1, 2)?.square()?.to_dense())),
        ("select", one(|s, _| s.select(0, 2)?.to_dense())),
        ("cat", one(|s, _| Tensor::cat(&[s, &s.square()?], 0)?.to_dense())),
        ("softmax", one(|s, _| s.softmax(1)?.to_dense())),
        ("amax", one(|s, _| s.amax(1)?.to_dense())),
    ];
    let numbers = |n: usize| (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.45).collect::<Vec<_>>();
    for (name, function) in functions {
        for (places, nnz) in
            [(ints(&[2, 0, 2, 3], &[1, 4]), 4), (ints(&[0, 2, 4], &[1, 3]), 3), (ints(&[], &[1, 0]), 0)]
        {
            let run = |t: &[Tensor]| Ok(vec![function(&Tensor::sparse_coo(&places, &t[0], [5, 3])?, &t[1])?]);
            check(name, &run, &[leaf(&numbers(3 * nnz), &[nnz, 3]), c.clone()]);
        }
    }
}

#[test]
fn derivatives_with_respect_to_strided_tensors() {
    let _one = load(PLUGINS);
    // Also with respect to elements that are 0, and so are not stored.
    let d = leaf(&[0.0, 1.5, 0.0, -2.0, 0.5, 0.0], &[2, 3]);
    let b = leaf(&[0.3, -1.0, 2.0, 1.0, 0.5, -0.75], &[2, 3]);
    check(
        "to_sparse",
        &|t| Ok(vec![t[0].to_sparse_with(2)?.to_dense()?.mul(&t[1])?]),
        &[d.clone(), b.clone()],
    );
    check("to_sparse 1", &|t| Ok(vec![t[0].to_sparse_with(1)?.mul(2)?.add(&t[1])?]), &[d.clone(), b.clone()]);
    check(
        "sparse_mask",
        &|t| Ok(vec![t[1].sparse_mask(&t[0].detach().to_sparse_with(2)?)?.square()?.to_dense()?]),
        &[d, b],
    );
}

#[test]
fn a_sparse_leaf_has_a_gradient_of_its_own_pattern() {
    let _one = load(PLUGINS);
    let a = uncoalesced().requires_grad_(true).unwrap();
    let b = floats(&(0..8).map(f64::from).collect::<Vec<_>>(), &[4, 2]);
    a.mm(&b).unwrap().sum_all().unwrap().backward().unwrap();
    let grad = a.grad().unwrap();
    assert!(grad.indices().unwrap().shares_storage(&a.indices().unwrap()));
    // Each entry has the gradient at its coordinates, also both duplicates at (1, 2).
    assert_eq!(grad.values().unwrap().to_vec::<f64>().unwrap(), [9.0, 13.0, 1.0, 9.0, 5.0]);
    // A second pass, and a strided gradient, add to it.
    a.to_dense().unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(a.grad().unwrap().values().unwrap().to_vec::<f64>().unwrap(), [10.0, 14.0, 2.0, 10.0, 6.0]);
    // No gradient of elements that are not stored: products only at the coordinates of the pattern.
    assert_eq!(a.grad().unwrap().nnz().unwrap(), 5);
}

#[test]
fn kept_in_files_and_moved() {
    let _one = load(&["keyway_backend_sparse", "keyway_test_device"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.safetensors");
    let saved = [("a".to_string(), uncoalesced()), ("h".to_string(), hybrid().coalesce().unwrap())].into();
    keyway::io::safetensors::save(&path, &saved).unwrap();
    let loaded = keyway::io::safetensors::load(&path).unwrap();
    for (name, tensor) in &saved {
        assert_eq!(loaded[name].layout(), tensor.layout());
        assert_eq!(loaded[name].nnz().unwrap(), tensor.nnz().unwrap());
        assert_eq!(loaded[name].is_coalesced().unwrap(), tensor.is_coalesced().unwrap());
        assert_eq!(f64s(&loaded[name]), f64s(tensor));
    }
    let there = hybrid().to_device(remote(0)).unwrap();
    assert_eq!((there.device(), there.nnz().unwrap()), (remote(0), 4));
    assert_eq!(f64s(&there.to_device(keyway::Device::CPU).unwrap()), f64s(&hybrid()));
    assert!(message(there.coalesce()).contains("no kernel that coalesces"));
}

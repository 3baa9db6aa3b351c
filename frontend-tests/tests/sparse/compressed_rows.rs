//! Sparse matrices as compressed rows, with the library that serves them: made, asked, converted, computed with and
//! differentiated. The result of an op must equal that on the strided matrix.

use crate::rehearsal_support::*;
use crate::support::{PLUGINS, check, f64s, floats, leaf};
use keyway::{DType, Layout, Tensor};

fn ints(values: &[i64]) -> Tensor {
    Tensor::new(values).unwrap()
}

/// Values without a pattern.
fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.45).collect()
}

/// A 4 x 4 matrix whose row 1 is empty, with a stored 0.
fn matrix() -> Tensor {
    let values = floats(&[-2.0, 3.75, 0.0, 0.5, 0.75], &[5]);
    Tensor::sparse_csr(&ints(&[0, 1, 1, 3, 5]), &ints(&[3, 0, 2, 0, 1]), &values, [4, 4]).unwrap()
}

const DENSE: [f64; 16] = [0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 3.75, 0.0, 0.0, 0.0, 0.5, 0.75, 0.0, 0.0];

/// Every row and column filled by a rule, so that no pattern of rows is special; wide enough for several panels of products.
fn large(rows: usize, columns: usize) -> Tensor {
    let values = (0..rows * columns).map(|at| if at * 7919 % 13 < 4 { at as f64 % 9.0 - 4.0 } else { 0.0 });
    floats(&values.collect::<Vec<_>>(), &[rows, columns]).to_sparse_csr().unwrap()
}

fn empty(sizes: &[usize]) -> Tensor {
    Tensor::sparse_csr(&ints(&vec![0; sizes[0] + 1]), &ints(&[]), &floats(&[], &[0]), sizes).unwrap()
}

/// Pairs of equal tensors, one compressed and the other strided.
fn several() -> Vec<(Tensor, Tensor)> {
    let all = [matrix(), large(7, 5), empty(&[3, 4]), empty(&[0, 3]), empty(&[2, 0])];
    all.into_iter().map(|a| (a.clone(), a.to_dense().unwrap())).collect()
}

fn layout(t: &Tensor) -> &'static str {
    t.layout().name()
}

#[track_caller]
fn same(what: &str, sparse: keyway::Result<Tensor>, dense: keyway::Result<Tensor>) -> Tensor {
    let (sparse, dense) = (sparse.unwrap_or_else(|e| panic!("{what}: {e}")), dense.unwrap());
    assert_eq!(sparse.shape(), dense.shape(), "{what}");
    assert_eq!(sparse.dtype(), dense.dtype(), "{what}");
    assert_close(&f64s(&sparse), &f64s(&dense), 1e-12);
    if !sparse.as_ref().is_strided() {
        keyway::dispatcher::layouts::validate(sparse.as_ref()).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    sparse
}

/// As [`same`], of a result that is compressed too.
#[track_caller]
fn rows(what: &str, sparse: keyway::Result<Tensor>, dense: keyway::Result<Tensor>) -> Tensor {
    let made = same(what, sparse, dense);
    assert_eq!(layout(&made), "sparse_csr", "{what}");
    made
}

#[test]
fn made_and_asked() {
    let _one = load(PLUGINS);
    let a = matrix();
    assert_eq!((layout(&a), a.shape(), a.dtype()), ("sparse_csr", [4, 4].as_slice(), DType::F64));
    assert_eq!((a.nnz().unwrap(), a.sparse_dim().unwrap(), a.dense_dim().unwrap()), (5, 2, 0));
    assert_eq!(f64s(&a), DENSE);
    assert_eq!(a.crow_indices().unwrap().to_vec::<i64>().unwrap(), [0, 1, 1, 3, 5]);
    assert_eq!(a.col_indices().unwrap().to_vec::<i64>().unwrap(), [3, 0, 2, 0, 1]);
    assert_eq!(a.values().unwrap().to_vec::<f64>().unwrap(), [-2.0, 3.75, 0.0, 0.5, 0.75]);
    let text = format!("{a}");
    assert!(text.contains("crow_indices=tensor([0, 1, 1, 3, 5]") && text.contains("col_indices="), "{text}");
    assert!(text.contains("size=(4, 4)") && text.contains("layout=sparse_csr"), "{text}");
    assert!(message(a.indices()).contains("layout sparse_coo"));
    assert!(message(floats(&DENSE, &[4, 4]).crow_indices()).contains("to_sparse_csr"));
    assert!(message(a.to_sparse_with(2).unwrap().col_indices()).contains("to_sparse_csr"));
}

#[test]
fn indices_are_of_any_integer_dtype() {
    let _one = load(PLUGINS);
    let (crow, col, values) = (ints(&[0, 1, 3]), ints(&[2, 0, 2]), floats(&[1.0, 2.0, 3.0], &[3]));
    let places = Tensor::stack(&[&ints(&[0, 1, 1]), &col], 0).unwrap();
    let expected = Tensor::sparse_csr(&crow, &col, &values, (2, 3)).unwrap().to_dense().unwrap();
    for dtype in [DType::I32, DType::U32, DType::U8, DType::I16, DType::U64] {
        let [crow, col, places] = [&crow, &col, &places].map(|indices| indices.to_dtype(dtype).unwrap());
        let rows = Tensor::sparse_csr(&crow, &col, &values, (2, 3)).unwrap();
        assert_eq!(rows.col_indices().unwrap().dtype(), DType::I64);
        let coordinates = Tensor::sparse_coo(&places, &values, (2, 3)).unwrap();
        assert_eq!(coordinates.indices().unwrap().dtype(), DType::I64);
        for made in [rows, coordinates] {
            assert!(made.to_dense().unwrap().equal(&expected).unwrap(), "{dtype}");
        }
    }
    let real = places.to_dtype(DType::BOOL).unwrap();
    assert!(
        message(Tensor::sparse_coo(&real, &values, (2, 3))).contains("`indices` must be of an integer dtype")
    );
}

#[test]
fn bad_parts_are_refused() {
    let _one = load(PLUGINS);
    let (crow, col, values) = (ints(&[0, 1, 3]), ints(&[2, 0, 2]), floats(&[1.0, 2.0, 3.0], &[3]));
    let real = col.to_dtype(DType::F32).unwrap();
    let stack = crow.reshape([1, 3]).unwrap();
    let two = floats(&[1.0, 2.0], &[2]);
    for (crow, col, values, sizes, part) in [
        (&crow, &col, &values, &[2, 3, 4][..], "batches of matrices are held by `sparse_coo`"),
        (&stack, &col, &values, &[2, 3], "batches of matrices are held by `sparse_coo`"),
        (&crow, &real, &values, &[2, 3], "`col_indices` must be of an integer dtype, but got f32"),
        (&real, &col, &values, &[2, 3], "`crow_indices` must be of an integer dtype"),
        (&crow, &col, &values, &[3, 3], "4 elements, one more than the 3 rows"),
        (&crow, &col, &two, &[2, 3], "of shape [3]"),
        (&ints(&[1, 1, 3]), &col, &values, &[2, 3], "0 as the first"),
        (&ints(&[0, 1, 2]), &col, &values, &[2, 3], "the count of `col_indices` as the last, 3"),
        (&ints(&[0, 1, 4]), &col, &values, &[2, 3], "the count of `col_indices` as the last, 3"),
        (&ints(&[0, 4, 3]), &col, &values, &[2, 3], "numbers that do not fall"),
        (&ints(&[0, -1, 3]), &col, &values, &[2, 3], "numbers that do not fall"),
        (&crow, &ints(&[2, 0, 3]), &values, &[2, 3], "columns from 0 and below 3"),
        (&crow, &ints(&[-1, 0, 2]), &values, &[2, 3], "got -1"),
        (&crow, &ints(&[2, 2, 0]), &values, &[2, 3], "columns that rise within each row"),
        (&crow, &ints(&[2, 1, 1]), &values, &[2, 3], "columns that rise within each row"),
        (&crow, &col, &values, &[(i64::MAX - 1) as usize, 3], "one more than"),
    ] {
        let text = message(Tensor::sparse_csr(crow, col, values, sizes));
        assert!(text.contains(part), "{text}");
    }
    let layout = Layout::from_name("sparse_csr").unwrap();
    assert!(message(floats(&numbers(8), &[2, 2, 2]).to_layout(layout)).contains("must be a matrix"));
    assert!(message(floats(&numbers(8), &[2, 2, 2]).to_sparse_csr()).contains("held by `sparse_coo`"));
    // Components that were changed since.
    for (part, by) in
        [("crow_indices", 1i64), ("crow_indices", -1), ("col_indices", 100), ("col_indices", -100)]
    {
        let a = large(7, 5);
        a.component(part).unwrap().add_(by).unwrap();
        for text in [
            message(a.to_dense()),
            message(a.mm(&floats(&numbers(10), &[5, 2]))),
            message(a.to_sparse_with(2)),
            message(a.t()),
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    assert_eq!(f64s(&matrix()), DENSE, "the plugin goes on");
}

#[test]
fn converted_without_a_strided_step() {
    let _one = load(PLUGINS);
    // So large that no machine has the memory for a strided tensor of it.
    let (n, m) = (1usize << 10, 1usize << 45);
    let far = [n as i64 - 1, m as i64 - 1];
    let places = Tensor::from_vec(vec![far[0], 0, 5, 0, 1, far[1], 7, 1], [2, 4]).unwrap();
    let coo = Tensor::sparse_coo(&places, &floats(&[1.0, 2.0, 3.0, 4.0], &[4]), [n, m]).unwrap();
    let back = |csr: &Tensor| {
        let coo = csr.to_sparse_with(2).unwrap();
        assert!(coo.is_coalesced().unwrap());
        (coo.indices().unwrap().to_vec::<i64>().unwrap(), coo.values().unwrap().to_vec::<f64>().unwrap())
    };
    let csr = coo.to_sparse_csr().unwrap();
    assert_eq!(back(&csr), (vec![0, 0, 5, far[0], 1, far[1], 7, 1], vec![4.0, 2.0, 3.0, 1.0]));
    let coo_layout = coo.layout();
    for (a, dense) in several() {
        let coo = a.to_sparse_with(2).unwrap();
        same("to_sparse", Ok(coo.clone()), Ok(dense.clone()));
        assert_eq!((coo.nnz().unwrap(), coo.is_coalesced().unwrap()), (a.nnz().unwrap(), true));
        let again = rows("to_sparse_csr", coo.to_sparse_csr(), Ok(dense.clone()));
        assert_eq!(again.nnz().unwrap(), a.nnz().unwrap(), "stored zeros stay");
        assert_eq!(layout(&a.to_layout(coo_layout).unwrap()), "sparse_coo");
        assert_eq!(a.to_layout(coo_layout).unwrap().nnz().unwrap(), a.nnz().unwrap());
        assert_eq!(coo.to_layout(a.layout()).unwrap().nnz().unwrap(), a.nnz().unwrap());
        let fresh = rows("of a strided one", dense.to_sparse_csr(), Ok(dense.clone()));
        assert_eq!(f64s(&dense.to_layout(a.layout()).unwrap()), f64s(&fresh));
        same("of a transposed one", dense.t().unwrap().to_sparse_csr(), dense.t());
        assert!(a.to_sparse_csr().unwrap().values().unwrap().shares_storage(&a.values().unwrap()));
    }
    // Entries in any order, two of them duplicates.
    let places = Tensor::from_vec(vec![2i64, 0, 2, 2, 1, 2, 1, 0], [2, 4]).unwrap();
    let coo = Tensor::sparse_coo(&places, &floats(&[1.0, 2.0, 3.0, 4.0], &[4]), [3, 3]).unwrap();
    let csr = rows("of entries in any order", coo.to_sparse_csr(), coo.to_dense());
    assert_eq!(csr.crow_indices().unwrap().to_vec::<i64>().unwrap(), [0, 1, 1, 3]);
    assert_eq!(csr.values().unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0, 4.0]);
    assert_eq!(f64s(&csr.to_sparse_with(1).unwrap()), f64s(&csr));
    let hybrid = floats(&numbers(6), &[3, 2]).to_sparse_with(1).unwrap();
    assert!(message(hybrid.to_sparse_csr()).contains("to_dense()"));
}

type Unary = fn(&Tensor) -> keyway::Result<Tensor>;

#[test]
fn ops_of_one_matrix() {
    let _one = load(PLUGINS);
    let keep: [(&str, Unary); 15] = [
        ("neg", Tensor::neg),
        ("abs", Tensor::abs),
        ("relu", Tensor::relu),
        ("square", Tensor::square),
        ("sin", Tensor::sin),
        ("tanh", Tensor::tanh),
        ("atan", Tensor::atan),
        ("expm1", Tensor::expm1),
        ("silu", Tensor::silu),
        ("sign", Tensor::sign),
        ("mul", |t| t.mul(-2.5)),
        ("div", |t| t.div(4)),
        ("clone", Tensor::copy),
        ("coalesce", Tensor::coalesce),
        ("to_dtype", |t| t.to_dtype(DType::F32)),
    ];
    for (a, d) in several() {
        for (name, op) in keep {
            let made = rows(name, op(&a), op(&d));
            assert_eq!(made.nnz().unwrap(), a.nnz().unwrap(), "{name}");
            let shared = made.col_indices().unwrap().shares_storage(&a.col_indices().unwrap());
            assert_eq!(
                shared,
                name != "clone" && a.nnz().unwrap() > 0 || a.nnz().unwrap() == 0 && shared,
                "{name}"
            );
        }
        rows("t", a.t(), d.t());
        rows("permute", a.permute([1, 0]), d.permute([1, 0]));
        rows("transpose of one", a.transpose(0, 0), d.transpose(0, 0));
        same("sum", a.sum_all(), d.sum_all());
        same("sum 0", a.sum(0), d.sum(0));
        same("sum 1", a.sum(1), d.sum(1));
        rows("sum 0 kept", a.sum_keepdim(0), d.sum_keepdim(0));
        rows("sum 1 kept", a.sum_keepdim(1), d.sum_keepdim(1));
        if d.elem_count() > 0 {
            same("mean", a.mean_all(), d.mean_all());
            same("mean 1", a.mean_keepdim(1), d.mean_keepdim(1));
            same("amax", a.amax(..), d.amax(..));
            same("amin 0", a.amin_keepdim(0), d.amin_keepdim(0));
            same("select", a.select(0, 1), d.select(0, 1));
            rows("narrow", a.narrow(1, 1, 2), d.narrow(1, 1, 2));
            rows("slice", a.slice(0, Some(0), None, 2), d.slice(0, Some(0), None, 2));
            let picked = ints(&[1, 0, 1]);
            rows("index_select", a.index_select(0, &picked), d.index_select(0, &picked));
            rows("index_select 1", a.index_select(1, &picked), d.index_select(1, &picked));
        }
        rows("cat", Tensor::cat(&[&a, &a], 0), Tensor::cat(&[&d, &d], 0));
        rows("cat 1", Tensor::cat(&[&a, &a], 1), Tensor::cat(&[&d, &d], 1));
    }
    let (a, d) = (large(6, 4), large(6, 4).to_dense().unwrap());
    rows("reshape", a.reshape([8, 3]), d.reshape([8, 3]));
    assert_eq!(layout(&same("flat", a.reshape([24]), d.reshape([24]))), "sparse_coo");
    let minus = d.masked_fill(&d.eq(0).unwrap(), f64::NEG_INFINITY).unwrap();
    let wanted = minus.softmax(1).unwrap().sparse_mask(&a).unwrap();
    rows("softmax", a.softmax(1), Ok(wanted));
    assert!(message(a.exp()).contains("to_dense()"));
    assert!(message(a.add(1.0)).contains("to_dense()"));
    assert!(message(a.unsqueeze(0).unwrap().col_indices()).contains("sparse_coo"));
}

#[test]
fn sums_and_products_of_two() {
    let _one = load(PLUGINS);
    for (a, d) in several() {
        let b = floats(&numbers(d.elem_count()), d.shape());
        let other = b.masked_fill(&b.lt(0.3).unwrap(), 0).unwrap().to_sparse_csr().unwrap();
        let o = other.to_dense().unwrap();
        rows("add", a.add(&other), d.add(&o));
        rows("add scaled", a.add_with(&other, -0.5), d.add_with(&o, -0.5));
        rows("sub", a.sub(&other), d.sub(&o));
        rows("add to itself", a.add(&a), d.add(&d));
        rows("mul", a.mul(&other), d.mul(&o));
        rows("mul dense", a.mul(&b), d.mul(&b));
        rows("dense mul", b.mul(&a), b.mul(&d));
        rows("mul 0-d", a.mul(&Tensor::new(3.0f64).unwrap()), d.mul(3.0));
        rows("div dense", a.div(&b.add(10.0).unwrap()), d.div(&b.add(10.0).unwrap()));
        for dense in [
            same("add dense", a.add(&b), d.add(&b)),
            same("dense add", b.add_with(&a, 3), b.add_with(&d, 3)),
            same("dense sub", b.sub(&a), b.sub(&d)),
            same("sub dense", a.sub(&b), d.sub(&b)),
        ] {
            assert_eq!(dense.layout(), Layout::STRIDED);
        }
        let masked = rows("mask", b.sparse_mask(&a), b.mul(&stored(&a)));
        assert!(masked.crow_indices().unwrap().shares_storage(&a.crow_indices().unwrap()));
        // If an argument is COO, the result is COO.
        let coo = other.to_sparse_with(2).unwrap();
        for mixed in [
            same("add coordinates", a.add(&coo), d.add(&o)),
            same("coordinates add", coo.add(&a), o.add(&d)),
            same("mul coordinates", a.mul(&coo), d.mul(&o)),
            same("mm coordinates", coo.t().unwrap().mm(&a), o.t().unwrap().mm(&d)),
        ] {
            assert_eq!(layout(&mixed), "sparse_coo");
        }
        rows("mask of coordinates", coo.sparse_mask(&a), o.mul(&stored(&a)));
    }
    let (a, b) = (matrix(), floats(&numbers(16), &[4, 4]));
    let row = b.select(0, 1).unwrap();
    rows("mul row", a.mul(&row), a.to_dense().unwrap().mul(&row));
    let target = b.copy().unwrap();
    target.add_(&a).unwrap();
    same("add_", Ok(target), b.add(&a.to_dense().unwrap()));
    assert!(message(b.div(&a)).contains("to_dense()"));
}

/// 1 where something is stored.
fn stored(a: &Tensor) -> Tensor {
    let ones = a.values().unwrap().ones_like().unwrap();
    let (crow, col) = (a.crow_indices().unwrap(), a.col_indices().unwrap());
    Tensor::sparse_csr(&crow, &col, &ones, a.shape()).unwrap().to_dense().unwrap()
}

#[test]
fn products_of_matrices() {
    let _one = load(PLUGINS);
    for (a, d) in several().into_iter().chain([large(70, 90)].map(|a| (a.clone(), a.to_dense().unwrap()))) {
        let (n, k) = (d.shape()[0], d.shape()[1]);
        for m in [0, 1, 5, 8, 33, 70] {
            let b = floats(&numbers(k * m), &[k, m]);
            same("mm", a.mm(&b), d.mm(&b));
            let turned = floats(&numbers(k * m), &[m, k]).t().unwrap();
            same("mm of strides", a.mm(&turned), d.mm(&turned));
            let left = floats(&numbers(n * m), &[m, n]);
            same("dense mm", left.mm(&a), left.mm(&d));
            let c = floats(&numbers(n * m), &[n, m]);
            same("addmm", c.addmm_with(&a, &b, 0.5, 2.0), c.addmm_with(&d, &b, 0.5, 2.0));
            same("addmm 0", c.addmm_with(&a, &b, 0, 1), c.addmm_with(&d, &b, 0, 1));
            let sampled = rows(
                "sampled",
                a.sampled_mm(&c, &b.t().unwrap()),
                c.mm(&b.t().unwrap()).unwrap().mul(&stored(&a)),
            );
            assert!(sampled.col_indices().unwrap().shares_storage(&a.col_indices().unwrap()));
        }
        rows("mm sparse", a.mm(&a.t().unwrap()), d.mm(&d.t().unwrap()));
        rows(
            "addmm sparse",
            a.addmm(&a, &d.t().unwrap().mm(&d).unwrap().to_sparse_csr().unwrap()),
            d.addmm(&d, &d.t().unwrap().mm(&d).unwrap()),
        );
        let x = floats(&numbers(k), &[k]);
        same("mv", a.mv(&x), d.mv(&x));
        same("matmul", a.matmul(&x), d.matmul(&x));
    }
    assert!(message(matrix().mm(&floats(&[1.0], &[1, 1]))).contains("4 rows"));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let _one = load(PLUGINS);
    // More entries than one piece of work has, and more columns than a panel.
    let values =
        (0..300 * 400).map(|at| if at * 7919 % 13 < 5 { (at % 97) as f64 * 0.37 - 17.0 } else { 0.0 });
    let d = floats(&values.collect::<Vec<_>>(), &[300, 400]);
    let b = floats(&numbers(400 * 37), &[400, 37]);
    let results = || -> keyway::Result<Vec<Vec<f64>>> {
        let a = d.to_sparse_csr()?;
        let coo = d.t()?.to_sparse_with(2)?.t()?;
        let made = [
            a.mm(&b)?,
            b.t()?.mm(&a.t()?)?,
            coo.to_sparse_csr()?.to_dense()?,
            a.add(&coo.to_sparse_csr()?)?.to_dense()?,
            a.sum(0)?.to_dense()?,
            a.sampled_mm(&b.narrow(0, 0, 300)?, &b.t()?)?.to_dense()?,
        ];
        made.iter().map(Tensor::to_vec::<f64>).collect()
    };
    keyway::dispatcher::parallel::set_num_threads(1);
    let alone = results().unwrap();
    for threads in [2, 3] {
        keyway::dispatcher::parallel::set_num_threads(threads);
        let made = results().unwrap();
        assert!(
            alone.iter().zip(&made).all(|(a, b)| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()))
        );
    }
    keyway::dispatcher::parallel::set_num_threads(0);
}

#[test]
fn integers_and_narrow_floats() {
    let _one = load(PLUGINS);
    for dtype in [DType::I32, DType::U8, DType::I64, DType::F16, DType::BF16, DType::F32] {
        let values = ints(&[3, 4, 5]).to_dtype(dtype).unwrap();
        let a = Tensor::sparse_csr(&ints(&[0, 2, 3]), &ints(&[0, 2, 1]), &values, [2, 3]).unwrap();
        let d = a.to_dense().unwrap();
        same("sum", a.sum_all(), d.sum_all());
        rows("mul", a.mul(3), d.mul(3));
        rows("add", a.add(&a), d.add(&d));
        let b = ints(&(1..=102).map(|i| i % 7).collect::<Vec<_>>()).reshape([3, 34]).unwrap();
        let b = b.to_dtype(dtype).unwrap();
        same("mm", a.mm(&b), d.mm(&b));
        same("addmm", b.narrow(0, 0, 2).unwrap().addmm(&a, &b), b.narrow(0, 0, 2).unwrap().addmm(&d, &b));
    }
}

#[test]
fn derivatives_with_respect_to_values() {
    let _one = load(PLUGINS);
    let b = leaf(&numbers(8), &[4, 2]);
    let c = leaf(&(0..12).map(|i| f64::from(i * 5 % 11) * 0.3 + 0.4).collect::<Vec<_>>(), &[3, 4]);
    let one = |f: fn(&Tensor, &Tensor, &Tensor) -> keyway::Result<Tensor>| f;
    let functions = [
        ("to_dense", one(|s, _, _| s.to_dense())),
        ("values", one(|s, _, _| s.values()?.square())),
        ("to_sparse", one(|s, _, _| s.to_sparse_with(2)?.values()?.square())),
        ("to_sparse, dense", one(|s, _, _| s.to_sparse_with(2)?.to_dense()?.square())),
        ("there and back", one(|s, _, _| s.to_sparse_with(2)?.square()?.to_sparse_csr()?.values())),
        ("both", one(|s, _, c| s.values()?.square()?.sum_all()?.add(&s.to_dense()?.mul(c)?.sum_all()?))),
        ("mm", one(|s, b, _| s.mm(b))),
        ("dense mm", one(|s, _, c| c.t()?.mm(s))),
        ("mm sparse", one(|s, _, _| s.mm(&s.t()?)?.to_dense())),
        ("mv", one(|s, b, _| s.mv(&b.select(1, 0)?))),
        ("addmm", one(|s, b, c| c.narrow(1, 0, 2)?.addmm_with(s, b, 2.0, 3.0))),
        ("sampled", one(|s, b, c| s.sampled_mm(c, &b.mm(&b.t()?)?)?.square()?.to_dense())),
        ("mul dense", one(|s, _, c| s.mul(c)?.to_dense())),
        ("div dense", one(|s, _, c| s.div(c)?.to_dense())),
        ("mul sparse", one(|s, _, c| s.mul(&c.sparse_mask(s)?)?.to_dense())),
        ("add", one(|s, _, c| s.add(&c.sparse_mask(s)?)?.square()?.to_dense())),
        ("add dense", one(|s, _, c| c.sub(s)?.square())),
        ("add coordinates", one(|s, _, c| s.add(&c.to_sparse_with(2)?)?.square()?.to_dense())),
        ("sum", one(|s, _, _| s.sum_all()?.square())),
        ("sum 0", one(|s, _, _| s.sum(0)?.square()?.to_dense())),
        ("sum 1", one(|s, _, _| s.sum_keepdim(1)?.to_dense()?.square())),
        ("mean", one(|s, _, _| s.mean_keepdim(1)?.to_dense()?.square())),
        ("square", one(|s, _, _| s.square()?.to_dense())),
        ("sin", one(|s, _, _| s.sin()?.to_dense())),
        ("tanh", one(|s, _, _| s.tanh()?.mul(3)?.neg()?.sum_all())),
        ("relu", one(|s, _, _| s.relu()?.to_dense())),
        ("t", one(|s, _, _| s.t()?.square()?.to_dense())),
        ("cat", one(|s, _, _| Tensor::cat(&[s, &s.square()?], 1)?.to_dense())),
        ("index_select", one(|s, _, _| s.index_select(0, &ints(&[2, 1, 2]))?.square()?.to_dense())),
        ("select", one(|s, _, _| s.select(0, 1)?.to_dense())),
        ("narrow", one(|s, _, _| s.narrow(1, 1, 2)?.to_dense())),
        ("reshape", one(|s, _, _| s.reshape([4, 3])?.to_dense())),
        ("softmax", one(|s, _, _| s.softmax(1)?.to_dense())),
        ("log_softmax", one(|s, _, _| s.log_softmax(1)?.to_dense())),
        ("amax 1", one(|s, _, _| s.amax_keepdim(1)?.to_dense()?.square())),
    ];
    for (name, function) in functions {
        for (crow, col, values) in [
            (&[0i64, 1, 2, 4][..], &[3i64, 2, 0, 1][..], &[1.5, -2.0, 0.5, 2.25][..]),
            (&[0, 0, 3, 3], &[0, 1, 3], &[1.5, -2.0, 0.5]),
            (&[0, 0, 0, 0], &[], &[]),
        ] {
            let (crow, col) = (ints(crow), ints(col));
            let run = |t: &[Tensor]| {
                Ok(vec![function(&Tensor::sparse_csr(&crow, &col, &t[0], [3, 4])?, &t[1], &t[2])?])
            };
            check(name, &run, &[leaf(values, &[values.len()]), b.clone(), c.clone()]);
        }
    }
}

#[test]
fn derivatives_through_conversions() {
    let _one = load(PLUGINS);
    // Also with respect to elements that are 0, and so are not stored.
    let d = leaf(&[0.0, 1.5, 0.0, -2.0, 0.5, 0.0], &[2, 3]);
    let b = leaf(&[0.3, -1.0, 2.0, 1.0, 0.5, -0.75], &[2, 3]);
    check(
        "to_sparse_csr",
        &|t| Ok(vec![t[0].to_sparse_csr()?.to_dense()?.mul(&t[1])?]),
        &[d.clone(), b.clone()],
    );
    check(
        "by both",
        &|t| Ok(vec![t[0].to_sparse_csr()?.to_sparse_with(2)?.add(&t[1])?]),
        &[d.clone(), b.clone()],
    );
    check(
        "by rows",
        &|t| Ok(vec![t[0].to_sparse_with(2)?.to_sparse_csr()?.mul(&t[1])?.to_dense()?]),
        &[d.clone(), b.clone()],
    );
    let mask = d.detach().to_sparse_csr().unwrap();
    check("sparse_mask", &|t| Ok(vec![t[1].sparse_mask(&mask)?.square()?.to_dense()?]), &[d, b]);
    // From unordered COO coordinates, two of them duplicates.
    let places = Tensor::from_vec(vec![1i64, 0, 1, 0, 2, 0], [2, 3]).unwrap();
    check(
        "of coordinates",
        &|t| {
            let coo = Tensor::sparse_coo(&places, &t[0], [2, 3])?;
            Ok(vec![coo.to_sparse_csr()?.square()?.to_dense()?, coo.to_sparse_csr()?.values()?])
        },
        &[leaf(&[1.5, -0.5, 2.0], &[3])],
    );
}

#[test]
fn a_compressed_leaf_has_a_gradient_of_its_own_pattern() {
    let _one = load(PLUGINS);
    let a = matrix().requires_grad_(true).unwrap();
    let b = floats(&(0..8).map(f64::from).collect::<Vec<_>>(), &[4, 2]);
    a.mm(&b).unwrap().sum_all().unwrap().backward().unwrap();
    let grad = a.grad().unwrap();
    assert_eq!(layout(&grad), "sparse_csr");
    assert!(grad.crow_indices().unwrap().shares_storage(&a.crow_indices().unwrap()));
    assert!(grad.col_indices().unwrap().shares_storage(&a.col_indices().unwrap()));
    assert_eq!(grad.values().unwrap().to_vec::<f64>().unwrap(), [13.0, 1.0, 9.0, 1.0, 5.0]);
    // A second pass, a strided gradient, and one as coordinates add to it.
    a.to_dense().unwrap().sum_all().unwrap().backward().unwrap();
    a.to_sparse_with(2).unwrap().sum_all().unwrap().backward().unwrap();
    let grad = a.grad().unwrap();
    assert_eq!((layout(&grad), grad.nnz().unwrap()), ("sparse_csr", 5));
    assert_eq!(grad.values().unwrap().to_vec::<f64>().unwrap(), [15.0, 3.0, 11.0, 3.0, 7.0]);
}

#[test]
fn kept_in_files_and_moved() {
    let _one = load(&["keyway_backend_sparse", "keyway_test_device"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.safetensors");
    let saved = [("a".to_string(), matrix()), ("e".to_string(), empty(&[3, 4]))].into();
    keyway::io::safetensors::save(&path, &saved).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for name in ["\"a.crow_indices\"", "\"a.col_indices\"", "\"a.values\"", "sparse_csr"] {
        assert!(bytes.windows(name.len()).any(|at| at == name.as_bytes()), "{name}");
    }
    let loaded = keyway::io::safetensors::load(&path).unwrap();
    for (name, tensor) in &saved {
        assert_eq!(
            (loaded[name].layout(), loaded[name].nnz().unwrap()),
            (tensor.layout(), tensor.nnz().unwrap())
        );
        assert_eq!(f64s(&loaded[name]), f64s(tensor));
    }
    let there = matrix().to_device(remote(0)).unwrap();
    assert_eq!((there.device(), there.nnz().unwrap()), (remote(0), 5));
    assert_eq!(f64s(&there.to_device(keyway::Device::CPU).unwrap()), DENSE);
    assert!(message(there.coalesce()).contains("no kernel that coalesces"));
}

//! A layout that the host has never heard of: CSR, brought by a plugin. The host converts, moves, prints and
//! differentiates it, and refuses what it cannot do.

mod rehearsal_support;

use keyway::autograd::{BackwardOptions, backward, grad};
use keyway::ops::by_name;
use keyway::{DType, Device, Layout, Tensor};
use keyway_dispatcher::layouts::validate;
use keyway_dispatcher::registry::{FallbackPolicy, set_fallback};
use keyway_dispatcher::tensor::{Attrs, TensorImpl};
use rehearsal_support::*;

const PLUGINS: &[&str] = &["keyway_test_csr", "keyway_test_device"];

fn csr() -> Layout {
    Layout::from_name("test.keyway/csr").expect("the plugin is loaded")
}

const DENSE: [f64; 12] = [1.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 0.0, 0.0, 4.0];
/// The coordinates of non-zero elements.
const PATTERN: [usize; 5] = [0, 2, 7, 8, 11];

fn dense() -> Tensor {
    Tensor::from_vec(DENSE.to_vec(), [3, 4]).unwrap()
}

fn matrix(values: &[f64], sizes: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), sizes).unwrap()
}

fn sparse() -> Tensor {
    dense().to_layout(csr()).unwrap()
}

/// Fixed values without a pattern.
fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.5).collect()
}

/// Starts from a gradient of these numbers.
fn run_backward(y: &Tensor) {
    let start = matrix(&numbers(y.elem_count()), y.shape());
    backward(std::slice::from_ref(y), BackwardOptions { gradients: Some(vec![start]), ..Default::default() })
        .unwrap();
}

/// The derivative of the sum of `f`'s results, weighted by `numbers`, by differences.
fn numeric(at: &[f64], f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let weighted = |x: &[f64]| f(x).iter().zip(numbers(64)).map(|(a, b)| a * b).sum::<f64>();
    (0..at.len())
        .map(|i| {
            let (mut up, mut down) = (at.to_vec(), at.to_vec());
            up[i] += 1e-6;
            down[i] -= 1e-6;
            (weighted(&up) - weighted(&down)) / 2e-6
        })
        .collect()
}

#[test]
fn there_and_back() {
    let _one = load(PLUGINS);
    let s = sparse();
    assert_eq!(
        (s.layout(), s.shape(), s.dtype(), s.device()),
        (csr(), [3, 4].as_slice(), DType::F64, Device::CPU)
    );
    let parts = s.components().unwrap();
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[0].to_vec::<i64>().unwrap(), [0, 2, 3, 5]);
    assert_eq!(parts[1].to_vec::<i64>().unwrap(), [0, 2, 3, 0, 3]);
    assert_eq!(parts[2].to_vec::<f64>().unwrap(), [1.0, -2.0, 0.5, 3.0, 4.0]);
    validate(s.as_ref()).unwrap();
    assert_eq!(s.to_strided().unwrap().to_vec::<f64>().unwrap(), DENSE);
    assert_eq!(s.to_vec::<f64>().unwrap(), DENSE, "values come to the host in row-major order");
    assert!(s.to_layout(csr()).unwrap().ptr_eq(&s));
    let empty = matrix(&[], &[0, 4]).to_layout(csr()).unwrap();
    assert!(empty.to_vec::<f64>().unwrap().is_empty());
    // From a transposed matrix, whose elements are not contiguous in rows.
    let transposed = dense().t().unwrap().to_layout(csr()).unwrap();
    assert_eq!(transposed.to_vec::<f64>().unwrap(), dense().t().unwrap().to_vec::<f64>().unwrap());
    assert!(format!("{s:#?}").contains("f64[3, 4] on cpu (test.keyway/csr)"), "{s:#?}");
    let text = message(matrix(&[1.0, 2.0], &[2]).to_layout(csr()));
    assert!(text.contains("must be a matrix, to be held by layout `test.keyway/csr`"), "{text}");
    assert!(text.contains("its shape is [2]"), "{text}");
    assert!(message(Tensor::new([1i64]).unwrap().view([1, 1]).unwrap().to_layout(csr())).contains("dtype"));
}

#[test]
fn parts_that_do_not_fit() {
    let _one = load(PLUGINS);
    let parts: Vec<_> = sparse().components().unwrap().into_iter().map(Tensor::into_ref).collect();
    let make = |parts: Vec<_>| {
        TensorImpl::composite(csr(), DType::F64, [3, 4].as_slice().into(), parts, Attrs::default()).unwrap()
    };
    let text = message(validate(&make(parts[..2].to_vec())).map_err(Into::into));
    assert!(text.contains("3 components") && text.contains("2 and 0"), "{text}");
    let short = Tensor::new([0i64, 5]).unwrap().into_ref();
    let text = message(validate(&make(vec![short, parts[1].clone(), parts[2].clone()])).map_err(Into::into));
    assert!(text.contains("crow_indices") && text.contains("one more than rows"), "{text}");
    let far = Tensor::new([0i64, 2, 9, 0, 3]).unwrap().into_ref();
    let text = message(validate(&make(vec![parts[0].clone(), far, parts[2].clone()])).map_err(Into::into));
    assert!(text.contains("columns below 4") && text.contains('9'), "{text}");
}

#[test]
fn moving_moves_the_parts() {
    let _one = load(PLUGINS);
    let s = sparse();
    let there = s.to_device(remote(1)).unwrap();
    assert_eq!((there.device(), there.layout()), (remote(1), csr()));
    assert!(there.components().unwrap().iter().all(|c| c.device() == remote(1)));
    assert_eq!(there.to_device(Device::CPU).unwrap().to_vec::<f64>().unwrap(), DENSE);
    assert_eq!(there.to_vec::<f64>().unwrap(), DENSE, "the host converts what it brought home");
    // Nobody serves the layout on the device, which is said with who does elsewhere.
    let text = message(there.to_strided());
    assert!(text.contains("another device") && text.contains("to_device"), "{text}");
    assert!(text.contains("cpu (by `keyway.test/csr`)"), "{text}");
    let over_there = dense().to_device(remote(1)).unwrap();
    assert!(message(over_there.to_layout(csr())).contains("another device"));
    // A policy of the device lets the host go through the CPU.
    set_fallback(remote(1).kind, FallbackPolicy::Allow(Device::CPU.kind)).unwrap();
    let strided = there.to_strided().unwrap();
    let back = over_there.to_layout(csr()).unwrap();
    validate(back.as_ref()).unwrap();
    set_fallback(remote(1).kind, FallbackPolicy::Error).unwrap();
    assert_eq!((strided.device(), strided.to_vec::<f64>().unwrap()), (remote(1), DENSE.to_vec()));
    assert_eq!((back.device(), back.to_vec::<f64>().unwrap()), (remote(1), DENSE.to_vec()));
    assert!(message(there.mul(2.0)).contains("no kernel for (test.keyway/remote:1, test.keyway/csr, f64)"));
    assert!(message(there.add(&s)).contains("expected all tensors on"));
}

#[test]
fn arithmetic() {
    let _one = load(PLUGINS);
    let s = sparse();
    let doubled = s.mul(2.0).unwrap();
    assert_eq!(doubled.layout(), csr());
    assert!(
        doubled.components().unwrap()[1].shares_storage(&s.components().unwrap()[1]),
        "the pattern is shared"
    );
    assert_eq!(doubled.to_vec::<f64>().unwrap(), DENSE.map(|v| 2.0 * v));
    let sum = s.add_with(&doubled, 10.0).unwrap();
    assert_eq!((sum.layout(), sum.to_vec::<f64>().unwrap()), (csr(), DENSE.map(|v| 21.0 * v).to_vec()));
    let mixed = dense().add(&s).unwrap();
    assert_eq!(
        (mixed.layout(), mixed.to_vec::<f64>().unwrap()),
        (Layout::STRIDED, DENSE.map(|v| 2.0 * v).to_vec())
    );
    let transposed = s.t().unwrap();
    assert_eq!((transposed.layout(), transposed.shape()), (csr(), [4, 3].as_slice()));
    assert_eq!(transposed.to_vec::<f64>().unwrap(), dense().t().unwrap().to_vec::<f64>().unwrap());
    // The kernel gives its argument back; the caller gets another tensor over the same parts.
    let same = s.transpose(1, 1).unwrap();
    assert!(!same.ptr_eq(&s) && same.components().unwrap()[2].shares_storage(&s.components().unwrap()[2]));
    // A product of other dtypes: the host has the layout's own kernel cast the values.
    let b = numbers(8);
    let narrow = s.to_dtype(DType::F32).unwrap();
    assert_eq!((narrow.dtype(), narrow.layout()), (DType::F32, csr()));
    let product = narrow.mm(&matrix(&b, &[4, 2])).unwrap();
    assert_eq!((product.layout(), product.dtype()), (Layout::STRIDED, DType::F64));
    let wanted = |i: usize, j: usize| (0..4).map(|k| DENSE[i * 4 + k] * b[k * 2 + j]).sum::<f64>();
    let all: Vec<f64> = (0..6).map(|at| wanted(at / 2, at % 2)).collect();
    assert_close(&product.to_vec::<f64>().unwrap(), &all, 1e-12);
    // An op that no kernel serves is reported with the layout's plugin.
    assert!(message(s.mul(&s)).contains("keyway.test/csr"));
    assert!(message(s.exp()).contains("no kernel for (cpu, test.keyway/csr, f64)"));
    assert!(message(s.add(1.0)).contains("sum of shapes"));
    assert!(message(s.view([12])).contains("no kernel for"));
}

#[test]
fn in_place_changes_are_refused_or_right() {
    let _one = load(PLUGINS);
    let s = sparse();
    let text = message(s.add_(&dense()));
    assert!(text.contains("layout `test.keyway/csr` cannot hold this result in place"), "{text}");
    assert!(message(s.copy_(&dense())).contains("copy"));
    assert!(message(s.fill_(0.0)).contains("fill"));
    assert_eq!(s.to_vec::<f64>().unwrap(), DENSE);
    // The values are changed in place.
    let changed = sparse();
    changed.mul_(2.0).unwrap();
    changed.add_(&s).unwrap();
    assert_eq!(changed.to_vec::<f64>().unwrap(), DENSE.map(|v| 3.0 * v));
    // A strided tensor takes a sparse one.
    let d = dense();
    d.add_(&s).unwrap();
    assert_eq!(d.to_vec::<f64>().unwrap(), DENSE.map(|v| 2.0 * v));
    d.copy_(&s.mul(3.0).unwrap()).unwrap();
    assert_eq!(d.to_vec::<f64>().unwrap(), DENSE.map(|v| 3.0 * v));
    let mut out = Tensor::empty_with([3, 4], DType::F64).unwrap();
    dense().add_out(&s, &mut out).unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), DENSE.map(|v| 2.0 * v));
    assert_eq!(d.version(), 2, "changes are counted");
}

#[test]
fn gradients_of_a_product_go_to_both_sides() {
    let _one = load(PLUGINS);
    let b = numbers(8);
    let s = sparse().requires_grad_(true).unwrap();
    let right = matrix(&b, &[4, 2]).requires_grad_(true).unwrap();
    let y = s.mm(&right).unwrap();
    assert!(y.requires_grad());
    run_backward(&y);
    let product = |a: &[f64], b: &[f64]| -> Vec<f64> {
        let (a, b) = (matrix(a, &[3, 4]).to_layout(csr()).unwrap(), matrix(b, &[4, 2]));
        a.mm(&b).unwrap().to_vec().unwrap()
    };
    let of_right = right.grad().unwrap().to_vec::<f64>().unwrap();
    assert_close(&of_right, &numeric(&b, |b| product(&DENSE, b)), 1e-6);
    // The gradient of a strided formula is strided: also where the matrix stores nothing.
    let of_left = s.grad().unwrap();
    assert_eq!((of_left.layout(), of_left.shape()), (Layout::STRIDED, [3, 4].as_slice()));
    let expected = numeric(&DENSE, |a| product(a, &b));
    assert_close(&of_left.to_vec::<f64>().unwrap(), &expected, 1e-6);
}

#[test]
fn gradients_flow_through_the_conversion() {
    let _one = load(PLUGINS);
    let w = dense().requires_grad_(true).unwrap();
    let y = w.to_layout(csr()).unwrap().mul(3.0).unwrap().t().unwrap().to_strided().unwrap();
    assert!(y.requires_grad());
    run_backward(&y);
    let f = |w: &[f64]| {
        let s = matrix(w, &[3, 4]).to_layout(csr()).unwrap();
        s.mul(3.0).unwrap().t().unwrap().to_vec::<f64>().unwrap()
    };
    assert_close(&w.grad().unwrap().to_vec::<f64>().unwrap(), &numeric(&DENSE, f), 1e-6);
}

#[test]
fn an_op_of_the_plugin_with_its_own_backward() {
    let _one = load(PLUGINS);
    let x = numbers(4);
    let s = sparse().requires_grad_(true).unwrap();
    let right = matrix(&x, &[4]).requires_grad_(true).unwrap();
    let spmv = |s: &Tensor, x: &Tensor| by_name::call("csr_spmv", &[s.into(), x.into()]).unwrap().remove(0);
    let y = spmv(&s, &right);
    assert_eq!((y.shape(), y.grad_fn().unwrap().name()), ([3].as_slice(), "csr_spmv"));
    run_backward(&y);
    let f = |a: &[f64], x: &[f64]| {
        let a = matrix(a, &[3, 4]).to_layout(csr()).unwrap();
        spmv(&a, &matrix(x, &[4])).to_vec::<f64>().unwrap()
    };
    assert_close(&right.grad().unwrap().to_vec::<f64>().unwrap(), &numeric(&x, |x| f(&DENSE, x)), 1e-6);
    // This gradient has the layout and the pattern of the matrix.
    let of_left = s.grad().unwrap();
    assert_eq!(of_left.layout(), csr());
    let full = numeric(&DENSE, |a| f(a, &x));
    let stored: Vec<f64> = PATTERN.iter().map(|&at| full[at]).collect();
    assert_close(&of_left.components().unwrap()[2].to_vec::<f64>().unwrap(), &stored, 1e-6);

    // A second pass adds to it, sparse to sparse, in a tensor of its own.
    let before = of_left.to_vec::<f64>().unwrap();
    run_backward(&spmv(&s, &right));
    let twice = s.grad().unwrap();
    assert_eq!(twice.layout(), csr());
    assert_close(&twice.to_vec::<f64>().unwrap(), &before.iter().map(|v| 2.0 * v).collect::<Vec<_>>(), 1e-12);
    assert_eq!(of_left.to_vec::<f64>().unwrap(), before, "what was read before stays as it was");
    // A strided gradient is added to the sparse one.
    run_backward(&s.to_strided().unwrap());
    let sum = s.grad().unwrap();
    assert_eq!(sum.layout(), Layout::STRIDED);
    let wanted: Vec<f64> = before.iter().zip(numbers(12)).map(|(g, n)| 2.0 * g + n).collect();
    assert_close(&sum.to_vec::<f64>().unwrap(), &wanted, 1e-12);

    // There is no second derivative, which is an error and not a silent zero.
    let y = spmv(&s, &right);
    let start = vec![matrix(&numbers(3), &[3]).requires_grad_(true).unwrap()];
    let options = BackwardOptions { gradients: Some(start), create_graph: true, ..Default::default() };
    let text = message(grad(&[y], std::slice::from_ref(&s), options));
    assert!(text.contains("csr_spmv_backward") && text.contains("no derivative"), "{text}");
    let short = matrix(&[1.0], &[1]);
    assert!(
        message(by_name::call("csr_spmv", &[(&s).into(), (&short).into()]))
            .contains("a vector of 4 elements")
    );
    assert!(message(by_name::call("csr_nothing", &[])).contains("no op named `csr_nothing`"));
}

#[test]
fn a_matrix_that_is_shared_keeps_one_version() {
    let _one = load(PLUGINS);
    let s = sparse();
    let same = s.detach();
    assert_eq!((same.layout(), same.version()), (csr(), 0));
    s.as_ref().bump_version();
    assert_eq!((s.version(), same.version()), (1, 1));
}

/// The components of the matrix.
fn parts() -> [Tensor; 3] {
    let [crow, col, values] = sparse().components().unwrap().try_into().unwrap();
    [crow, col, values.copy().unwrap()]
}

#[test]
fn a_matrix_is_made_of_components_that_are_checked() {
    let _one = load(PLUGINS);
    let [crow, col, values] = parts();
    let make = |sizes: &[usize], parts: &[&Tensor], attrs: &[i64]| {
        let parts: Vec<Tensor> = parts.iter().map(|&part| part.clone()).collect();
        Tensor::from_components(csr(), sizes, DType::F64, &parts, attrs)
    };
    let made = make(&[3, 4], &[&crow, &col, &values], &[]).unwrap();
    assert_eq!((made.layout(), made.to_vec::<f64>().unwrap()), (csr(), DENSE.to_vec()));
    assert!(made.component("values").unwrap().shares_storage(&values));
    values.mul_(2.0).unwrap();
    assert_eq!(made.to_vec::<f64>().unwrap(), DENSE.map(|v| 2.0 * v), "components are shared");

    let narrow = values.to_dtype(DType::F32).unwrap();
    let far = values.to_device(remote(0)).unwrap();
    let high = Tensor::new([0i64, 2, 9, 0, 3]).unwrap();
    let falling = Tensor::new([0i64, 3, 2, 5]).unwrap();
    for (sizes, parts, attrs, part) in [
        (&[3, 4][..], &[&crow, &col][..], &[][..], "3 components and 0 attributes of `test.keyway/csr`"),
        (&[3, 4], &[&crow, &col, &values], &[1], "but got 3 and 1"),
        (&[3, 4], &[&crow, &col, &narrow], &[], "f64"),
        (&[3, 4], &[&crow, &narrow, &values], &[], "i64"),
        (&[3, 4], &[&crow, &col, &far], &[], "all on cpu, but got test.keyway/remote:0"),
        (&[3, 4], &[&crow, &high, &values], &[], "columns below 4"),
        (&[3, 4], &[&falling, &col, &values], &[], "numbers that do not fall"),
        (&[4, 3], &[&crow, &col, &values], &[], "one more than rows"),
        (&[12], &[&crow, &col, &values], &[], "must be a matrix"),
        (
            &[1 << 40, 1 << 40],
            &[&crow, &col, &values],
            &[],
            "more elements or bytes than an address can count",
        ),
        (&[usize::MAX, 4], &[&crow, &col, &values], &[], "`sizes` must be"),
    ] {
        let text = message(make(sizes, parts, attrs));
        assert!(text.contains(part), "{text}");
    }
    let strided = Tensor::from_components(Layout::STRIDED, &[5], DType::F64, &[values], &[]);
    assert!(message(strided).contains("a composite layout that a backend brings"));
    assert!(message(made.component("rows")).contains("crow_indices, col_indices, values"));
    assert!(message(dense().component("values")).contains("a strided one has none"));
    assert!(dense().components().unwrap().is_empty());
}

#[test]
fn a_component_that_is_changed_spoils_what_was_saved() {
    let _one = load(PLUGINS);
    let s = sparse();
    let right = matrix(&numbers(8), &[4, 2]).requires_grad_(true).unwrap();
    let y = s.mm(&right).unwrap().sum_all().unwrap();
    s.component("values").unwrap().mul_(2.0).unwrap();
    assert_eq!(s.version(), 1);
    let text = message(y.backward());
    assert!(text.contains("saved for backward at version 0, but is at version 1"), "{text}");

    // A result of the graph whose component changed has a history that does not know.
    let w = dense().requires_grad_(true).unwrap();
    let s = w.to_layout(csr()).unwrap();
    s.component("values").unwrap().detach().mul_(2.0).unwrap();
    let text = message(s.to_strided());
    assert!(text.contains("a component of `self` was changed in place"), "{text}");
    assert_eq!(s.detach().to_vec::<f64>().unwrap(), DENSE.map(|v| 2.0 * v));
}

#[test]
fn components_keep_their_place_in_the_graph() {
    let _one = load(PLUGINS);
    // From the tensor to a component: the gradient is a matrix with the same pattern.
    let s = sparse().requires_grad_(true).unwrap();
    let values = s.component("values").unwrap();
    assert!(values.requires_grad() && !s.component("col_indices").unwrap().requires_grad());
    values.mul(&values).unwrap().sum_all().unwrap().backward().unwrap();
    let grad = s.grad().unwrap();
    assert_eq!((grad.layout(), grad.to_vec::<f64>().unwrap()), (csr(), DENSE.map(|v| 2.0 * v).to_vec()));
    assert!(grad.component("col_indices").unwrap().shares_storage(&s.component("col_indices").unwrap()));

    // From components to the tensor, whose gradient has its pattern.
    let [crow, col, values] = parts();
    let values = values.requires_grad_(true).unwrap();
    let make = || {
        let parts = [crow.clone(), col.clone(), values.clone()];
        Tensor::from_components(csr(), &[3, 4], DType::F64, &parts, &[]).unwrap()
    };
    let made = make();
    assert_eq!(made.grad_fn().unwrap().name(), "from_components");
    let x = matrix(&numbers(4), &[4]);
    let y = by_name::call("csr_spmv", &[(&made).into(), (&x).into()]).unwrap().remove(0);
    run_backward(&y);
    let (x, start) = (numbers(4), numbers(3));
    let wanted: Vec<f64> = PATTERN.iter().map(|at| start[at / 4] * x[at % 4]).collect();
    assert_close(&values.grad().unwrap().to_vec::<f64>().unwrap(), &wanted, 1e-12);
    // This layout does not say how a strided gradient is projected on its pattern.
    let text = message(make().to_strided().unwrap().sum_all().unwrap().backward());
    assert!(text.contains("cannot project a gradient on its pattern"), "{text}");
}

#[test]
fn derived_data_goes_with_the_version() {
    let _one = load(PLUGINS);
    let s = sparse();
    let counts = || by_name::call("csr_row_counts", &[(&s).into()]).unwrap().remove(0);
    let first = counts();
    assert_eq!(first.to_vec::<i64>().unwrap(), [2, 1, 2]);
    assert!(counts().shares_storage(&first), "kept beside the row pointers");
    let twin = s.mul(3.0).unwrap();
    let of_twin = by_name::call("csr_row_counts", &[(&twin).into()]).unwrap().remove(0);
    assert!(of_twin.shares_storage(&first), "both matrices have one pattern");
    s.component("crow_indices").unwrap().add_(0i64).unwrap();
    let later = counts();
    assert!(!later.shares_storage(&first), "the pointers were changed");
    assert_eq!(later.to_vec::<i64>().unwrap(), [2, 1, 2]);
}

//! Calls on sparse COO tensors that PyTorch 2.15 refuses or leaves without a gradient: a test for each row of the table in
//! `book/src/sparse.md`. PyTorch's answers were observed on its CPU build; the expected value is the strided tensor's result.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::autograd::{BackwardOptions, grad};
use keyway::ops::index::embedding_bag::{BagMode, BagOptions};
use keyway::optim::{Adam, AdamOptions, Optimizer, Sgd, SgdOptions, clip_grad_value_};
use keyway::{Result, Tensor};

/// Two entries at (0, 1), one at (1, 0), not in order.
const TWICE: &[i64] = &[0, 1, 0, 1, 0, 1];
/// The same coordinates without duplicates.
const ONCE: &[i64] = &[0, 1, 1, 0];

fn coo(places: &[i64], values: &Tensor) -> Tensor {
    Tensor::sparse_coo(&ints(places, &[2, places.len() / 2]), values, [2, 2]).unwrap()
}

/// The strided tensor of the same elements, computed from the same values.
fn strided(places: &[i64], values: &Tensor) -> Tensor {
    let n = places.len() / 2;
    let at: Vec<i64> = (0..n).map(|i| 2 * places[i] + places[n + i]).collect();
    Tensor::zeros_like(&floats(&[0.0; 4], &[4]))
        .unwrap()
        .index_add(0, &ints(&at, &[n]), values)
        .unwrap()
        .reshape((2, 2))
        .unwrap()
}

/// A sum in which each element has a factor of its own.
fn weighted(t: &Tensor) -> Tensor {
    let t = t.to_dense().unwrap();
    let factors: Vec<f64> = (0..t.elem_count()).map(|i| i as f64 + 1.5).collect();
    t.mul(&floats(&factors, t.shape())).unwrap().sum_all().unwrap()
}

type Step = fn(&Tensor) -> Result<Tensor>;

/// Compares result and gradient with those of the strided tensor, on entries that stand twice and on a coalesced tensor.
#[track_caller]
fn as_strided(what: &str, step: Step) {
    for (places, values) in [(TWICE, &[4.0, 9.0, 2.25][..]), (ONCE, &[4.0, 9.0][..])] {
        let (own, other) = (leaf(values, &[values.len()]), leaf(values, &[values.len()]));
        let made = step(&coo(places, &own)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let wanted = step(&strided(places, &other)).unwrap();
        assert_eq!(made.shape(), wanted.shape(), "{what}");
        assert_close(&f64s(&made), &f64s(&wanted), 1e-12);
        weighted(&made).backward().unwrap_or_else(|error| panic!("{what}: {error}"));
        weighted(&wanted).backward().unwrap();
        assert_close(&f64s(&own.grad().unwrap()), &f64s(&other.grad().unwrap()), 1e-12);
    }
}

/// `a.values()`: "Cannot get values on an uncoalesced tensor"; `a._values()` gives them without a graph.
#[test]
fn values_are_there_with_their_gradient_before_coalescing() {
    let _one = load(PLUGINS);
    let v = leaf(&[1.0, 2.0, 3.0], &[3]);
    let values = coo(TWICE, &v).values().unwrap();
    assert_eq!(f64s(&values), [1.0, 2.0, 3.0]);
    weighted(&values).backward().unwrap();
    assert_eq!(f64s(&v.grad().unwrap()), [1.5, 2.5, 3.5]);
}

/// A backward pass of `torch.cat([a, a])`: "Could not run 'aten::as_strided'".
#[test]
fn cat_has_a_gradient() {
    let _one = load(PLUGINS);
    as_strided("cat", |a| Tensor::cat(&[a, a], 0));
}

/// A backward pass of `a.sum(0)`: "expand is unsupported for Sparse tensors".
#[test]
fn the_sum_over_one_dimension_has_a_gradient() {
    let _one = load(PLUGINS);
    as_strided("sum", |a| a.sum(0));
    as_strided("sum", |a| a.sum(1)?.square());
}

/// Backward passes of `a.sqrt()` ("Sparse division requires a scalar"), `a.sin()` ("aten::cos") and `a.tanh()`
/// ("aten::tanh_backward").
#[test]
fn functions_that_keep_zero_have_gradients() {
    let _one = load(PLUGINS);
    // The strided square root has no finite derivative at 0, so it is compared by formula.
    let v = leaf(&[4.0, 9.0, 12.0], &[3]);
    weighted(&coo(TWICE, &v).sqrt().unwrap()).backward().unwrap();
    assert_close(&f64s(&v.grad().unwrap()), &[2.5 / 8.0, 3.5 / 6.0, 2.5 / 8.0], 1e-12);
    as_strided("sin", Tensor::sin);
    as_strided("tanh", Tensor::tanh);
}

/// A backward pass of `a.norm()`: "aten::masked_fill_"; `a.norm(dim=0)`: "only supports full reductions".
#[test]
fn norms_have_dimensions_and_gradients() {
    let _one = load(PLUGINS);
    as_strided("norm", |a| a.norm(..));
    as_strided("norm", |a| a.norm(0));
}

/// Backward passes of `a.index_select(0, at)` ("aten::index_add_") and `a[0]` ("aten::select_backward").
#[test]
fn selections_have_gradients() {
    let _one = load(PLUGINS);
    as_strided("index_select", |a| a.index_select(0, &ints(&[1, 1, 0], &[3])));
    as_strided("select", |a| a.select(0, 0));
}

/// `a.narrow(0, 0, 1)` and `a[0:1]`: "aten::as_strided"; `a.reshape(4)`: "reshape is not implemented for sparse tensors".
#[test]
fn parts_and_other_shapes() {
    let _one = load(PLUGINS);
    as_strided("narrow", |a| a.narrow(0, 0, 1));
    as_strided("slice", |a| a.i(1..));
    as_strided("reshape", |a| a.reshape(4));
}

/// `a.amax()`, `a.amin()` and `a.mean()`: "Could not run 'aten::amax'", and so for each.
#[test]
fn extremes_and_means() {
    let _one = load(PLUGINS);
    as_strided("amax", |a| a.amax(..));
    as_strided("amin", |a| a.neg()?.amin(0));
    as_strided("mean", |a| a.mean(..));
}

/// `a + dense`: "add(sparse, dense) is not supported"; `a / dense`: "Sparse division requires a scalar".
#[test]
fn a_strided_operand_on_the_right() {
    let _one = load(PLUGINS);
    as_strided("add", |a| a.add(&floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2])));
    as_strided("div", |a| a.div(&floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2])));
}

/// `torch.dot(a, dense)`: "Could not run 'aten::dot'".
#[test]
fn products_of_vectors() {
    let _one = load(PLUGINS);
    as_strided("dot", |a| a.select(0, 0)?.dot(&floats(&[3.0, 5.0], &[2])));
}

/// With `create_graph=True` the gradients of `torch.sparse.mm(a, dense)` and `torch.sparse.softmax(a, 1)` have no graph.
#[test]
fn products_and_softmax_have_second_derivatives() {
    let _one = load(PLUGINS);
    let steps: [(&str, Step); 2] =
        [("mm", |a| a.mm(&floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]))?.square()), ("softmax", |a| a.softmax(1))];
    for (what, step) in steps {
        // Both elements of the first row are stored, one of them twice.
        let places = [0i64, 0, 0, 1, 0, 1];
        let v = leaf(&[0.5, 1.0, -0.25], &[3]);
        check(
            what,
            &|inputs| Ok(vec![weighted(&step(&coo(&places, &inputs[0]))?)]),
            std::slice::from_ref(&v),
        );
        let total = weighted(&step(&coo(&places, &v)).unwrap());
        let options = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
        let first = grad(&[total], std::slice::from_ref(&v), options).unwrap().remove(0).unwrap();
        assert!(first.requires_grad(), "{what}");
    }
}

fn read_table() -> Tensor {
    let table = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]);
    table.embedding_sparse(&ints(&[1, 1], &[2])).unwrap().sum_all().unwrap().backward().unwrap();
    table
}

/// `torch.optim.Adam` and `AdamW`: "Adam does not support sparse gradients".
#[test]
fn adam_takes_sparse_gradients() {
    let _one = load(PLUGINS);
    let table = read_table();
    let options = AdamOptions { lr: 0.5, ..AdamOptions::default() };
    Adam::new(vec![table.clone()], options).unwrap().step().unwrap();
    assert_close(&f64s(&table), &[1.0, 2.0, 2.5, 3.5, 5.0, 6.0], 1e-6);
}

/// `torch.optim.SGD(.., weight_decay=0.1)`: "add(sparse, dense) is not supported".
#[test]
fn weight_decay_goes_with_sparse_gradients() {
    let _one = load(PLUGINS);
    let table = read_table();
    let options = SgdOptions { lr: 0.5, weight_decay: 0.1, ..SgdOptions::default() };
    Sgd::new(vec![table.clone()], options).unwrap().step().unwrap();
    // w - 0.5 (g + 0.1 w), of all rows.
    assert_close(&f64s(&table), &[0.95, 1.9, 1.85, 2.8, 4.75, 5.7], 1e-12);
}

/// `torch.nn.utils.clip_grad_value_`: "Could not run 'aten::clamp_min_'".
#[test]
fn sparse_gradients_are_clipped_by_value() {
    let _one = load(PLUGINS);
    let table = read_table();
    clip_grad_value_(std::slice::from_ref(&table), 1.5).unwrap();
    assert_eq!(f64s(&table.grad().unwrap()), [0.0, 0.0, 1.5, 1.5, 0.0, 0.0]);
}

/// `EmbeddingBag(mode='max', sparse=True)`: "max mode does not support sparse weights".
#[test]
fn bags_of_the_largest_have_sparse_gradients() {
    let _one = load(PLUGINS);
    let table = leaf(&[1.0, 9.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]);
    let options = BagOptions { mode: BagMode::Max, sparse: true, ..BagOptions::default() };
    let bags = table.embedding_bag_with(&ints(&[0, 1], &[1, 2]), options).unwrap();
    weighted(&bags).backward().unwrap();
    let made = table.grad().unwrap();
    assert_eq!(made.layout().name(), "sparse_coo");
    assert_eq!(f64s(&made), [0.0, 2.5, 1.5, 0.0, 0.0, 0.0]);
}

/// The gradient of a leaf of three entries at two coordinates has two entries; after `a.sum()` it is strided.
#[test]
fn the_gradient_of_a_sparse_leaf_has_its_pattern() {
    let _one = load(PLUGINS);
    let steps: [(&str, Step, [f64; 3]); 3] = [
        ("sum", |a| a.sum(..), [1.5, 1.5, 1.5]),
        ("mm", |a| a.mm(&floats(&[1.0, 2.0], &[2, 1])), [3.0, 2.5, 3.0]),
        ("square", |a| a.square(), [20.0, 14.0, 20.0]),
    ];
    for (what, step, wanted) in steps {
        let a = coo(TWICE, &floats(&[1.0, 2.0, 3.0], &[3])).requires_grad_(true).unwrap();
        weighted(&step(&a).unwrap()).backward().unwrap();
        let made = a.grad().unwrap();
        assert_eq!(made.layout().name(), "sparse_coo", "{what}");
        assert_eq!(made.indices().unwrap().to_vec::<i64>().unwrap(), TWICE, "{what}");
        assert_close(&made.values().unwrap().to_vec_f64().unwrap(), &wanted, 1e-12);
    }
}

/// In both libraries an unstored element times any value is 0, a stored 0 times infinity is NaN.
#[test]
fn a_stored_zero_is_an_element() {
    let _one = load(PLUGINS);
    // Coordinates 0 and 1 store 0 and 2, coordinate 2 nothing.
    let a = Tensor::sparse_coo(&ints(&[0, 1], &[1, 2]), &floats(&[0.0, 2.0], &[2]), 3).unwrap();
    let dense = |made: Result<Tensor>| f64s(&made.unwrap());
    let infinite = dense(a.mul(&floats(&[f64::INFINITY; 3], &[3])));
    assert!(infinite[0].is_nan() && infinite[1..] == [f64::INFINITY, 0.0], "{infinite:?}");
    let infinite = dense(a.mul(f64::INFINITY));
    assert!(infinite[0].is_nan() && infinite[1..] == [f64::INFINITY, 0.0], "{infinite:?}");
    let divided = dense(a.div(&floats(&[0.0; 3], &[3])));
    assert!(divided[0].is_nan() && divided[1..] == [f64::INFINITY, 0.0], "{divided:?}");
    assert_eq!(dense(a.pow(2)), [0.0, 4.0, 0.0]);
    assert!(message(a.pow(0)).contains("to_dense()"));
    // In softmax it counts as one of two elements, in sums, means, extremes and norms like an unstored one.
    let shares = dense(a.softmax(0));
    let whole = 1.0 + 2f64.exp();
    assert_close(&shares, &[1.0 / whole, 2f64.exp() / whole, 0.0], 1e-12);
    assert_close(&dense(a.log_softmax(0)), &[-whole.ln(), 2.0 - whole.ln(), 0.0], 1e-12);
    assert_eq!((dense(a.mean(..)), dense(a.amin(..))), (vec![2.0 / 3.0], vec![0.0]));
    assert_eq!(
        (dense(a.neg().unwrap().amax(..)), dense(a.norm_with(0.0, .., false))),
        (vec![0.0], vec![1.0])
    );
    assert_eq!(dense(a.norm_with(f64::NEG_INFINITY, .., false)), [0.0]);
    // It shares the gradient of the minimum with the unstored element.
    let v = leaf(&[0.0, 2.0], &[2]);
    let smallest = Tensor::sparse_coo(&ints(&[0, 1], &[1, 2]), &v, 3).unwrap().amin(..).unwrap();
    smallest.backward().unwrap();
    assert_eq!(f64s(&v.grad().unwrap()), [0.5, 0.0]);
}

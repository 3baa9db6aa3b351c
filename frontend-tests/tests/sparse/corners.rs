//! Sparse tensors with unusual sizes, values and arguments: a correct result or an error; never a panic, and never memory for
//! elements that are not stored.

use crate::rehearsal_support::*;
use crate::support::*;
use keyway::ops::by_name;
use keyway::optim::{clip_grad_norm_, clip_grad_value_};
use keyway::tensor::Rounding;
use keyway::{DType, Device, Layout, Tensor};
use keyway_dispatcher::device::{memory_stats, reset_peak};
use keyway_dispatcher::op::Arg;
use std::slice::from_ref;

fn message<T: std::fmt::Debug>(result: keyway::Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_step_as_large_as_a_number_can_be_leaves_one_index() {
    let _one = load(PLUGINS);
    let s = Tensor::sparse_coo(&ints(&[0, 2, 1, 3], &[2, 2]), &floats(&[1.0, 2.0], &[2]), [4, 4]).unwrap();
    let first = s.slice(0, None, None, i64::MAX).unwrap();
    assert_eq!((first.shape(), f64s(&first)), ([1, 4].as_slice(), vec![0.0, 1.0, 0.0, 0.0]));
    let none = Tensor::sparse_coo(&ints(&[], &[0, 1]), &floats(&[5.0], &[1]), ()).unwrap();
    for wrong in [message(none.select(0, 0)), message(none.slice(0, None, None, 1))] {
        assert!(wrong.contains("one of no dimensions"), "{wrong}");
    }
}

#[test]
fn what_no_number_counts_is_refused_beside_a_size_of_0() {
    let _one = load(PLUGINS);
    let huge = 1usize << 40;
    let indices = ints(&[huge as i64 - 1, 5], &[2, 1]);
    let made = Tensor::sparse_coo(&indices, &floats(&[], &[1, 0]), [huge, huge, 0]);
    assert!(message(made).contains("coordinates"));
    // Empty tensors store nothing.
    let none = Tensor::empty_with([1usize << 36, 0], (DType::F64, keyway::Device::CPU))
        .unwrap()
        .to_sparse_with(1)
        .unwrap();
    assert_eq!((none.nnz().unwrap(), none.shape()), (0, [1usize << 36, 0].as_slice()));
}

#[test]
fn a_stack_with_dense_dimensions_is_multiplied_by_what_it_stores() {
    let _one = load(PLUGINS);
    // The second of two blocks is stored, twice; the first is not stored, and adds nothing.
    let blocks = floats(&[1.0, 2.0, 3.0, 4.0, 1.0, 1.0, 1.0, 1.0], &[2, 2, 2]);
    let stack = Tensor::sparse_coo(&ints(&[1, 1], &[1, 2]), &blocks, [2, 2, 2]).unwrap();
    let infinite = floats(&[f64::INFINITY; 8], &[2, 2, 2]);
    let expected = [0.0, 0.0, 0.0, 0.0].into_iter().chain([f64::INFINITY; 4]).collect::<Vec<_>>();
    assert_eq!(f64s(&stack.bmm(&infinite).unwrap()), expected);
    assert_eq!(f64s(&infinite.bmm(&stack).unwrap()), expected);
    let other = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[2, 2, 2]);
    let dense = stack.to_dense().unwrap();
    assert_eq!(f64s(&stack.bmm(&other).unwrap()), f64s(&dense.bmm(&other).unwrap()));
    assert_eq!(f64s(&other.bmm(&stack).unwrap()), f64s(&other.bmm(&dense).unwrap()));
    let squared = stack.bmm(&stack).unwrap();
    assert_eq!(f64s(&squared.to_dense().unwrap()), f64s(&dense.bmm(&dense).unwrap()));
    // Rows are sparse here, and columns dense.
    let rows = other.to_sparse_with(2).unwrap();
    assert_eq!(f64s(&rows.bmm(&other).unwrap()), f64s(&other.bmm(&other).unwrap()));
}

#[test]
fn as_many_parts_as_no_memory_holds_are_an_error() {
    let _one = load(PLUGINS);
    // Lists of as many tensors would fit the address space, and the tensors themselves would not.
    for size in [1usize << 45, 1 << 38] {
        let wide = Tensor::sparse_coo(&ints(&[0, 5], &[1, 2]), &floats(&[1.0, 1.0], &[2]), size).unwrap();
        assert!(message(wide.unbind(0)).contains("out of memory"));
        assert!(message(wide.split(1, 0)).contains("out of memory"));
        assert!(message(wide.chunk(usize::MAX, 0)).contains("out of memory"));
    }
}

/// The backward pass of views uses the ops of sparse tensors, and keeps dense dimensions dense.
#[test]
fn gradients_go_back_through_dimensions_behind_dense_ones() {
    let _one = load(PLUGINS);
    let blocks = leaf(&[1.0, 0.0, 3.0, 4.0, 2.0, 5.0], &[3, 2]);
    let hybrid =
        |values: &Tensor| Tensor::sparse_coo(&ints(&[0, 2, 0], &[1, 3]), values, [3, 2]).unwrap().square();
    let one = |values: &Tensor| Tensor::sparse_coo(&ints(&[0, 2, 0], &[1, 3]), values, [3, 2, 1])?.square();
    type Way = fn(&Tensor) -> keyway::Result<Tensor>;
    let ways: [(&str, Way); 7] = [
        ("unsqueeze", |h| h.unsqueeze(-1)),
        ("unsqueeze, within", |h| h.unsqueeze(1)),
        ("stack", |h| Tensor::stack(&[h, &h.mul(2)?], -1)),
        ("transpose", |h| h.t()),
        ("permute", |h| h.unsqueeze(0)?.permute([2, 0, 1])),
        ("mm", |h| h.mm(&h.to_dense()?.t()?)),
        ("einsum", |h| Tensor::einsum("ij,kj->ik", &[h, h])),
    ];
    for (name, way) in ways {
        let strided = way(&hybrid(&blocks).unwrap().to_dense().unwrap()).unwrap();
        assert_eq!(f64s(&way(&hybrid(&blocks).unwrap()).unwrap()), f64s(&strided), "{name}");
        check(name, &|of| Ok(vec![way(&hybrid(&of[0])?)?.to_dense()?]), from_ref(&blocks));
    }
    let blocks = leaf(&[1.0, 0.0, 3.0, 4.0, 2.0, 5.0], &[3, 2, 1]);
    check("squeeze", &|of| Ok(vec![one(&of[0])?.squeeze(2)?.to_dense()?]), from_ref(&blocks));
    check("squeeze of all", &|of| Ok(vec![one(&of[0])?.squeeze(..)?.to_dense()?]), &[blocks]);
    let h = hybrid(&leaf(&[1.0, 0.0, 3.0, 4.0, 2.0, 5.0], &[3, 2])).unwrap();
    let stored = h.coalesce().unwrap();
    assert!(stored.t().unwrap().is_coalesced().unwrap());
    assert_eq!(stored.t().unwrap().sparse_dim().unwrap(), 2);
}

#[test]
fn stacks_with_dense_dimensions_have_gradients_of_products() {
    let _one = load(PLUGINS);
    let places = ints(&[0, 1, 1, 0, 2, 1], &[2, 3]);
    let blocks = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[3, 3]);
    let stack = |values: &Tensor| Tensor::sparse_coo(&places, values, [2, 3, 3]);
    let other = leaf(&(1..=18).map(|i| f64::from(i) / 7.0).collect::<Vec<_>>(), &[2, 3, 3]);
    let single =
        Tensor::sparse_coo(&ints(&[0, 1, 1, 2, 0, 1], &[3, 2]), &floats(&[2.0, 3.0], &[2]), [2, 3, 3]);
    let single = single.unwrap();
    check("by a dense one", &|of| Ok(vec![stack(&of[0])?.bmm(&of[1])?]), &[blocks.clone(), other.clone()]);
    check("of a dense one", &|of| Ok(vec![of[1].bmm(&stack(&of[0])?)?]), &[blocks.clone(), other]);
    check("by itself", &|of| Ok(vec![stack(&of[0])?.bmm(&stack(&of[0])?)?.to_dense()?]), from_ref(&blocks));
    check("by all sparse", &|of| Ok(vec![single.bmm(&stack(&of[0])?)?.to_dense()?]), &[blocks]);
}

#[test]
fn shapes_of_more_elements_than_memory_has_bytes_are_others() {
    let _one = load(PLUGINS);
    let side = 1_000_000_000usize;
    let values = leaf(&[1.0, 2.0, 3.0], &[3]);
    let h = Tensor::sparse_coo(&ints(&[0, 9, 5, 9, 0, 5], &[2, 3]), &values, [side, side]).unwrap();
    let flat = h.reshape(side * side).unwrap();
    assert_eq!(flat.indices().unwrap().to_vec::<i64>().unwrap(), [9, 5 * side as i64 + 5, 9 * side as i64]);
    assert_eq!(h.reshape((side, -1)).unwrap().shape(), [side, side]);
    assert_eq!(h.flatten_all().unwrap().shape(), [side * side]);
    assert_eq!(h.unsqueeze(1).unwrap().shape(), [side, 1, side]);
    let stacked = Tensor::stack(&[&h, &h.mul(2).unwrap()], 0).unwrap();
    stacked.square().unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(values.grad().unwrap().to_vec_f64().unwrap(), [10.0, 20.0, 30.0]);
    assert!(message(h.reshape(7)).contains("expected"));
}

#[test]
fn a_product_needs_no_memory_for_columns_that_nothing_has() {
    let _one = load(PLUGINS);
    let a = Tensor::sparse_coo(&ints(&[0, 0, 1, 0, 2, 1], &[2, 3]), &floats(&[2.0, 3.0, 4.0], &[3]), [2, 3]);
    let far = 1i64 << 40;
    let places = ints(&[0, 2, 2, 1, far - 1, 7, far - 1, 5], &[2, 4]);
    let b =
        Tensor::sparse_coo(&places, &floats(&[1.0, 10.0, 100.0, 1000.0], &[4]), [3, 1usize << 40]).unwrap();
    let product = a.unwrap().mm(&b).unwrap().coalesce().unwrap();
    assert_eq!(product.indices().unwrap().to_vec::<i64>().unwrap(), [0, 0, 1, 7, far - 1, 5]);
    assert_eq!(product.values().unwrap().to_vec_f64().unwrap(), [30.0, 302.0, 4000.0]);
}

/// Empty rows and columns cost nothing in ops whose results are sparse.
#[test]
fn time_and_memory_follow_entries_and_not_rows() {
    let _one = load(PLUGINS);
    let (rows, far) = (1usize << 29, (1i64 << 29) - 1);
    let places = ints(&[far, 5, 5, 0, 2, 1, 0, 1], &[2, 4]);
    let a = Tensor::sparse_coo(&places, &floats(&[2.0, 3.0, 4.0, 5.0], &[4]), [rows, 3]).unwrap();
    let listed = |t: keyway::Result<Tensor>| {
        let t = t.unwrap().coalesce().unwrap();
        (t.indices().unwrap().to_vec::<i64>().unwrap(), t.values().unwrap().to_vec_f64().unwrap())
    };
    reset_peak(Device::CPU).unwrap();
    let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
    let product = listed(a.mm(&a.t().unwrap()));
    assert_eq!(product, (vec![0, 0, 5, 5, far, 0, 5, 0, 5, far], vec![25.0, 15.0, 15.0, 25.0, 4.0]));
    assert_eq!(listed(a.t().unwrap().mm(&a)).1, [16.0, 12.0, 12.0, 34.0, 4.0]);
    let same = listed(a.coalesce());
    assert_eq!(same, (vec![0, 5, 5, far, 1, 0, 1, 2], vec![5.0, 4.0, 3.0, 2.0]));
    assert_eq!(listed(a.softmax(1)).1.len(), 4);
    assert_eq!(listed(a.softmax(0)).1.len(), 4);
    assert_eq!(listed(a.add(&a)).1, [10.0, 8.0, 6.0, 4.0]);
    assert_eq!(listed(a.mul(&a)).1, [25.0, 16.0, 9.0, 4.0]);
    assert_eq!(listed(a.sum(1)).1, [5.0, 7.0, 2.0]);
    assert_eq!(a.sum(0).unwrap().to_dense().unwrap().to_vec_f64().unwrap(), [4.0, 8.0, 2.0]);
    assert_eq!(listed(a.index_select(0, &ints(&[5, far], &[2]))).1, [4.0, 3.0, 2.0]);
    let most = memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before;
    assert!(most < 1 << 20, "{most} bytes");
}

#[test]
fn few_indices_of_a_long_dimension_are_found() {
    let _one = load(PLUGINS);
    let size = 1usize << 36;
    let last = size as i64 - 1;
    let s =
        Tensor::sparse_coo(&ints(&[7, last, 3, 7], &[1, 4]), &floats(&[1.0, 2.0, 4.0, 8.0], &[4]), [size]);
    let made = s.unwrap().index_select(0, &ints(&[last, 0, 7, 7], &[4])).unwrap();
    assert_eq!(f64s(&made), [2.0, 0.0, 9.0, 9.0]);
}

#[test]
fn zeros_like_one_of_integers_keeps_its_places() {
    let _one = load(PLUGINS);
    let a = Tensor::sparse_coo(&ints(&[1, 2], &[1, 2]), &ints(&[10, 20], &[2]), [3]).unwrap();
    let zeros = a.coalesce().unwrap().zeros_like().unwrap();
    assert_eq!(zeros.indices().unwrap().to_vec::<i64>().unwrap(), [1, 2]);
    assert_eq!(zeros.values().unwrap().to_vec::<i64>().unwrap(), [0, 0]);
    let other = Tensor::sparse_coo(&ints(&[0], &[1, 1]), &ints(&[5], &[1]), [3]).unwrap();
    assert_eq!(f64s(&zeros.add(&other).unwrap()), [5.0, 0.0, 0.0]);
}

#[test]
fn a_flag_that_is_stale_is_found_out() {
    let _one = load(PLUGINS);
    let c = Tensor::sparse_coo(&ints(&[0, 1], &[1, 2]), &floats(&[1.0, 2.0], &[2]), [2]).unwrap();
    let c = c.coalesce().unwrap();
    c.indices().unwrap().fill_(0).unwrap();
    assert!(message(c.to_dense()).contains("a component that was changed"));
}

#[test]
fn a_mean_of_nothing_is_not_0() {
    let _one = load(PLUGINS);
    let s = Tensor::sparse_coo(&ints(&[], &[1, 0]), &floats(&[], &[0, 0]), [3, 0]).unwrap();
    assert!(message(s.mean(1)).contains("to_dense()"));
}

#[test]
fn components_are_strided_tensors_of_numbers() {
    let _one = load(PLUGINS);
    let s = Tensor::sparse_coo(&ints(&[0], &[1, 1]), &floats(&[1.0], &[1]), [1]).unwrap();
    assert!(message(Tensor::sparse_coo(&ints(&[0], &[1, 1]), &s, [2])).contains("strided"));
    let flags = Tensor::from_vec(vec![true], [1]).unwrap();
    assert!(message(Tensor::sparse_coo(&ints(&[0], &[1, 1]), &flags, [2])).contains("numbers"));
    let rows = |values: &Tensor| Tensor::sparse_csr(&ints(&[0, 1], &[2]), &ints(&[0], &[1]), values, [1, 1]);
    assert!(message(rows(&s)).contains("strided"));
    assert!(message(rows(&flags)).contains("numbers"));
}

#[test]
fn nothing_becomes_strided_by_being_joined() {
    let _one = load(PLUGINS);
    let s = Tensor::sparse_coo(&ints(&[0, 1], &[2, 1]), &floats(&[1.0], &[1]), [2, 2]).unwrap();
    let hybrid = Tensor::sparse_coo(&ints(&[1], &[1, 1]), &floats(&[1.0, 2.0], &[1, 2]), [2, 2]).unwrap();
    for other in [&floats(&[0.0; 4], &[2, 2]), &hybrid] {
        assert!(message(Tensor::cat(&[&s, other], 0)).contains("expected"), "{other:?}");
    }
}

#[test]
fn integers_are_divided_with_rounding() {
    let _one = load(PLUGINS);
    let s = Tensor::sparse_coo(&ints(&[1, 1, 0], &[1, 3]), &ints(&[-4, -3, 9], &[3]), [3]).unwrap();
    for (rounding, expected) in [(Rounding::Trunc, [4, -3, 0]), (Rounding::Floor, [4, -4, 0])] {
        let made = s.div_with(2, rounding).unwrap();
        assert_eq!(made.to_dense().unwrap().to_vec::<i64>().unwrap(), expected);
    }
}

#[test]
fn ties_among_more_places_than_f16_counts_share_the_gradient() {
    let _one = load(PLUGINS);
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let v = floats(&[1.0, 0.5], &[2]).to_dtype(dtype).unwrap().requires_grad_(true).unwrap();
        let s = Tensor::sparse_coo(&ints(&[5, 9], &[1, 2]), &v, [70_000]).unwrap();
        s.amax(..).unwrap().backward().unwrap();
        assert_eq!(v.grad().unwrap().to_vec_f64().unwrap(), [1.0, 0.0], "{dtype}");
    }
}

#[test]
fn gradients_that_two_tables_share_are_clipped_once() {
    let _one = load(PLUGINS);
    let table = || floats(&[1.0, 1.0], &[1, 2]).requires_grad_(true).unwrap();
    let (tokens, places, at) = (table(), table(), ints(&[0], &[1]));
    let factors = floats(&[3.0, 4.0], &[1, 2]);
    let run = || {
        let (a, b) = (tokens.embedding_sparse(&at).unwrap(), places.embedding_sparse(&at).unwrap());
        [&tokens, &places].iter().for_each(|t| t.zero_grad());
        a.add(&b).unwrap().mul(&factors).unwrap().sum_all().unwrap().backward().unwrap();
    };
    run();
    let norm = clip_grad_norm_(&[tokens.clone(), places.clone()], 1.0).unwrap().to_vec_f64().unwrap()[0];
    assert!((norm - 50f64.sqrt()).abs() < 1e-12);
    for t in [&tokens, &places] {
        let length = f64s(&t.grad().unwrap()).iter().map(|g| g * g).sum::<f64>().sqrt();
        assert!((length - 0.5f64.sqrt()).abs() < 1e-6, "{length}");
    }
    run();
    clip_grad_value_(std::slice::from_ref(&tokens), 3.5).unwrap();
    assert_eq!(
        (f64s(&tokens.grad().unwrap()), f64s(&places.grad().unwrap())),
        (vec![3.0, 3.5], vec![3.0, 4.0])
    );
    // Rows that are one number, repeated.
    tokens.zero_grad();
    tokens.embedding_sparse(&at).unwrap().sum_all().unwrap().backward().unwrap();
    clip_grad_norm_(std::slice::from_ref(&tokens), 1.0).unwrap();
    assert!(f64s(&tokens.grad().unwrap()).iter().all(|g| (g - 0.5f64.sqrt()).abs() < 1e-5));
    assert_eq!(tokens.grad().unwrap().layout(), Layout::from_name("sparse_coo").unwrap());
}

#[test]
fn a_gradient_keeps_its_rows_when_the_indices_are_filled_anew() {
    let _one = load(PLUGINS);
    let table = floats(&[1.0, 2.0, 3.0], &[3, 1]).requires_grad_(true).unwrap();
    let at = ints(&[0, 1], &[2]);
    table.embedding_sparse(&at).unwrap().sum_all().unwrap().backward().unwrap();
    at.copy_(&ints(&[2, 2], &[2])).unwrap();
    assert_eq!(f64s(&table.grad().unwrap()), [1.0, 1.0, 0.0]);
    table.embedding_sparse(&at).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(f64s(&table.grad().unwrap()), [1.0, 1.0, 2.0]);
}

#[test]
fn ops_that_are_not_linear_do_not_believe_a_flag() {
    let _one = load(PLUGINS);
    let three = |places: &[i64]| {
        let s =
            Tensor::sparse_coo(&ints(&[0, 0, 1, 0, 2, 1], &[2, 3]), &floats(&[1.0, 2.0, 3.0], &[3]), [3, 3]);
        let s = s.unwrap().coalesce().unwrap();
        s.indices().unwrap().copy_(&ints(places, &[2, 3])).unwrap();
        s
    };
    let unsorted = three(&[1, 0, 0, 2, 1, 0]);
    let other = Tensor::sparse_coo(&ints(&[0, 0], &[2, 1]), &floats(&[1.0], &[1]), [3, 3]).unwrap();
    assert_eq!(f64s(&unsorted.mul(&other).unwrap())[0], 3.0);
    let doubled = three(&[0, 0, 0, 2, 2, 2]);
    let one = |t: keyway::Result<Tensor>| t.unwrap().to_dense().unwrap().to_vec_f64().unwrap();
    assert_eq!(one(doubled.norm(..)), [6.0]);
    assert_eq!(one(doubled.amax(..)), [6.0]);
    assert_eq!(one(doubled.square().unwrap().sum_all()), [36.0]);
    let outside = three(&[-1, 0, 0, 2, 1, 0]);
    assert!(message(outside.norm(..)).contains("indices"));
    assert!(message(floats(&[1.0; 9], &[3, 3]).add_(&outside)).contains("indices"));
    let rows = Tensor::sparse_coo(&ints(&[1], &[1, 1]), &floats(&[5.0, 6.0], &[1, 2]), [3, 2]).unwrap();
    rows.indices().unwrap().fill_(-1).unwrap();
    let target = floats(&[1.0; 6], &[3, 2]);
    assert!(target.add_(&rows).is_err());
    assert_eq!(f64s(&target), [1.0; 6]);
}

#[test]
fn large_sizes_are_errors_or_cost_nothing() {
    let _one = load(PLUGINS);
    let n = 1usize << 40;
    let none = Tensor::sparse_coo(&ints(&[], &[1, 0]), &floats(&[], &[0, n]), [3, n]).unwrap();
    assert_eq!(none.mul(&floats(&[1.0; 3], &[3, 1])).unwrap().nnz().unwrap(), 0);
    let most = (i64::MAX - 1) as usize;
    let s = Tensor::sparse_coo(&ints(&[5], &[1, 1]), &floats(&[1.0], &[1]), [most]).unwrap();
    assert!(message(Tensor::cat(&[&s, &s], 0)).contains("add up"));
    let wide = Tensor::sparse_csr(&ints(&[0, 1], &[2]), &ints(&[0], &[1]), &floats(&[1.0], &[1]), [1, most]);
    assert!(wide.unwrap().t().is_err());
    let tall = Tensor::sparse_csr(&ints(&[0, 1], &[2]), &ints(&[0], &[1]), &floats(&[1.0], &[1]), [most, 1]);
    assert!(message(tall).contains("crow_indices"));
}

#[test]
fn compressed_rows_have_norms_powers_and_products_in_stacks() {
    let _one = load(PLUGINS);
    let d = floats(&[0.0, 3.0, 4.0, 0.0, 0.0, -2.0], &[2, 3]);
    let c = d.to_sparse_csr().unwrap();
    assert!(c.is_coalesced().unwrap());
    assert_eq!(f64s(&c.pow(2.0).unwrap()), f64s(&d.pow(2.0).unwrap()));
    assert_eq!(f64s(&c.norm_keepdim(1).unwrap()), f64s(&d.norm_keepdim(1).unwrap()));
    let stack = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 3, 2]);
    assert_eq!(f64s(&c.matmul(&stack).unwrap()), f64s(&d.matmul(&stack).unwrap()));
    let leaf = c.copy().unwrap().requires_grad_(true).unwrap();
    let refused = keyway::optim::Sgd::new(vec![leaf], keyway::optim::SgdOptions::default());
    assert!(message(refused.map(|_| ())).contains("a sparse tensor"));
}

/// Right, or refused in the op's name for want of a kernel; no backend's failure.
#[track_caller]
fn right_or_refused(op: &str, made: keyway::Result<Tensor>, wanted: &Tensor) {
    match made {
        Ok(made) => assert_close(&f64s(&made), &f64s(wanted), 1e-3),
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with(op) && text.contains("no kernel"), "{text}");
            assert!(!text.contains("failed"), "{text}");
        }
    }
}

/// A call that a kernel cannot serve by nested calls is refused: then the op's decomposition is tried.
#[test]
fn products_are_added_to_other_shapes_or_refused_as_such() {
    let _one = load(PLUGINS);
    let matrix = floats(&[1.0, 0.0, 2.0, 0.0], &[2, 2]).to_sparse().unwrap();
    let vector = floats(&[0.0, 3.0], &[2]).to_sparse().unwrap();
    let hybrid = Tensor::sparse_coo(&ints(&[1], &[1, 1]), &floats(&[5.0, 6.0], &[1, 2]), [2, 2]).unwrap();
    let served = matrix.linear(&matrix, Some(&vector)).unwrap();
    assert_eq!(f64s(&served), [1.0, 5.0, 2.0, 7.0]);
    for dtype in [DType::F64, DType::F16] {
        let [matrix, vector, hybrid] = [&matrix, &vector, &hybrid].map(|t| t.to_dtype(dtype).unwrap());
        let [dense, strided, block] = [&matrix, &vector, &hybrid].map(|t| t.to_dense().unwrap());
        let linear = dense.linear(&dense, Some(&strided)).unwrap();
        right_or_refused("linear", matrix.linear(&matrix, Some(&vector)), &linear);
        right_or_refused("linear", matrix.linear(&matrix, Some(&strided)), &linear);
        let sum = strided.addmm(&dense, &dense).unwrap();
        right_or_refused("addmm", vector.addmm(&matrix, &matrix), &sum);
        right_or_refused("addmm", vector.addmm(&matrix, &dense), &sum);
        right_or_refused("addmm", hybrid.addmm(&matrix, &matrix), &block.addmm(&dense, &dense).unwrap());
        // A strided sum of a strided product takes every shape, and a factor of 0 every tensor.
        assert_eq!(f64s(&strided.addmm(&matrix, &dense).unwrap()), f64s(&sum));
        let product = vector.addmm_with(&matrix, &matrix, 0, 1).unwrap();
        assert_eq!(f64s(&product), [1.0, 0.0, 2.0, 0.0]);
    }
}

/// Steps of a long list of sparse tensors, which no kernel serves, are made of other ops.
#[test]
fn a_step_of_many_sparse_tensors_is_right() {
    let _one = load(PLUGINS);
    let own = floats(&[0.5, 0.0, 2.0], &[3]).to_sparse().unwrap();
    let list = vec![own.as_ref(); 200];
    let mut args = vec![Arg::Tensors(&list); 3];
    args.extend([0.25, 0.5, 0.0, 0.0].map(Arg::Float));
    args.extend([Arg::Bool(false), Arg::Bool(false)]);
    let made = by_name::call("sgd_step", &args).unwrap();
    assert_eq!(made.len(), 400);
    assert!(made[..200].iter().all(|t| f64s(t) == [0.3125, 0.0, 1.25]));
    assert!(made[200..].iter().all(|t| f64s(t) == [0.75, 0.0, 3.0]));
}

#[test]
fn a_sum_of_more_places_than_can_be_addressed_has_a_gradient() {
    let _one = load(PLUGINS);
    let side = 1usize << 31;
    let whole: [fn(&Tensor) -> keyway::Result<Tensor>; 3] =
        [|s| s.sum(..), |s| s.sum(0)?.sum(..), |s| s.square()?.sum_keepdim(1)?.sum(..)];
    for (sum, expected) in whole.iter().zip([[1.0, 1.0], [1.0, 1.0], [4.0, -6.0]]) {
        let values = floats(&[2.0, -3.0], &[2]).requires_grad_(true).unwrap();
        let indices = ints(&[0, side as i64 - 1, 5, side as i64 - 1], &[2, 2]);
        let s = Tensor::sparse_coo(&indices, &values, [side, side]).unwrap();
        sum(&s).unwrap().backward().unwrap();
        assert_eq!(values.grad().unwrap().to_vec_f64().unwrap(), expected);
    }
}

#[test]
fn a_size_that_i64_does_not_hold_is_an_error() {
    let _one = load(PLUGINS);
    let (indices, values) = (ints(&[0], &[1, 1]), floats(&[1.0], &[1]));
    let wrong = message(Tensor::sparse_coo(&indices, &values, usize::MAX));
    assert!(wrong.starts_with("sparse_coo: `shape` must be sizes of 0 or more, below 2^63 - 1"), "{wrong}");
}

/// The variance of one element is NaN, also if it is not stored.
#[test]
fn a_variance_is_refused_whatever_the_sizes() {
    let _one = load(PLUGINS);
    for rows in [1, 3] {
        let s = Tensor::sparse_coo(&ints(&[0, 1], &[2, 1]), &floats(&[2.0], &[1]), [rows, 3]).unwrap();
        for wrong in [message(s.var(0)), message(s.std(0)), message(s.var_mean(0))] {
            assert!(wrong.contains("to_dense()"), "{wrong}");
        }
    }
}

/// Sums and products of a tensor that stores blocks and one that stores entries equal those of strided tensors.
#[test]
fn operands_with_different_numbers_of_sparse_dimensions() {
    let _one = load(PLUGINS);
    let a = floats(&[0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 4.0, 0.0, 0.0], &[2, 3, 2]);
    let b = floats(&[5.0, 0.0, 0.0, 0.0, 0.0, 6.0, 0.0, 7.0, 0.0, 8.0, 0.0, 0.0], &[2, 3, 2]);
    for (first, second) in [(3, 2), (2, 3), (1, 3), (3, 1), (0, 2), (1, 2), (3, 0)] {
        let [left, right] = [a.to_sparse_with(first), b.to_sparse_with(second)].map(Result::unwrap);
        for (name, made, expected) in [
            ("add", left.add(&right), a.add(&b)),
            ("sub", left.sub(&right), a.sub(&b)),
            ("add_with", left.add_with(&right, 2.5), a.add_with(&b, 2.5)),
            ("mul", left.mul(&right), a.mul(&b)),
        ] {
            let made = made.unwrap_or_else(|error| panic!("{name} of {first} and {second}: {error}"));
            assert_eq!(made.sparse_dim().unwrap(), first.max(second), "{name} of {first} and {second}");
            assert_eq!(f64s(&made), f64s(&expected.unwrap()), "{name} of {first} and {second}");
        }
        // Gradients count where something is stored.
        let [left, right] = [left, right].map(|t| t.requires_grad_(true).unwrap());
        let weights = floats(&(0..12).map(f64::from).collect::<Vec<_>>(), &[2, 3, 2]);
        left.add(&right).unwrap().mul(&weights).unwrap().sum_all().unwrap().backward().unwrap();
        for leaf in [&left, &right] {
            let (indices, values) = (leaf.detach().indices().unwrap(), leaf.detach().values().unwrap());
            let pattern = Tensor::sparse_coo(&indices, &values.ones_like().unwrap(), leaf.shape()).unwrap();
            let expected = f64s(&pattern.mul(&weights).unwrap());
            assert_eq!(f64s(&leaf.grad().unwrap()), expected, "{first} and {second}");
        }
    }
    // Compressed rows beside rows that are blocks.
    let (a, b) = (a.select(0, 0).unwrap(), b.select(0, 1).unwrap());
    let sum = a.to_sparse_csr().unwrap().add(&b.to_sparse_with(1).unwrap()).unwrap();
    assert_eq!(f64s(&sum), f64s(&a.add(&b).unwrap()));
}

#[test]
fn a_strided_tensor_is_broadcast_in_a_sum() {
    let _one = load(PLUGINS);
    let dense = floats(&[0.0, 1.0, 2.0, 0.0, 0.0, 3.0], &[2, 3]);
    for other in [
        floats(&[10.0, 20.0, 30.0], &[3]),
        floats(&[10.0, 20.0], &[2, 1]),
        floats(&[10.0], &[1]),
        floats(&[1.0, 2.0, 3.0, 4.0], &[4, 1, 1]),
    ] {
        for sparse in [dense.to_sparse(), dense.to_sparse_with(1), dense.to_sparse_csr()] {
            let sparse = sparse.unwrap().requires_grad_(true).unwrap();
            let other = other.detach().requires_grad_(true).unwrap();
            let sum = sparse.add(&other).unwrap();
            assert!(sum.layout() == Layout::STRIDED);
            assert_eq!(f64s(&sum), f64s(&dense.add(&other).unwrap()));
            assert_eq!(f64s(&other.sub(&sparse).unwrap()), f64s(&other.sub(&dense).unwrap()));
            sum.sum_all().unwrap().backward().unwrap();
            let times = (sum.elem_count() / 6) as f64;
            assert_eq!(sparse.grad().unwrap().values().unwrap().to_vec_f64().unwrap()[0], times);
            assert_eq!(
                f64s(other.grad().as_ref().unwrap())[0],
                (sum.elem_count() / other.elem_count()) as f64
            );
        }
    }
    let sparse = dense.to_sparse().unwrap();
    assert!(message(sparse.add(&floats(&[1.0, 2.0], &[2]))).contains("[2, 3] and [2]"));
    assert!(message(sparse.add(1.0)).contains("leaves nothing unstored"));
}

#[test]
fn memory_formats_are_those_of_strided_tensors() {
    use keyway::MemoryFormat::{ChannelsLast, Contiguous, Preserve};
    let _one = load(PLUGINS);
    let coo = Tensor::ones((1, 2, 3, 3)).unwrap().to_sparse().unwrap();
    assert!(!coo.is_contiguous_in(ChannelsLast) && coo.is_contiguous_in(Preserve));
    for made in [coo.to(ChannelsLast), coo.contiguous_in(ChannelsLast), coo.copy_with(ChannelsLast)] {
        let text = message(made);
        assert!(text.contains("a composite tensor has no strides") && text.contains("to_strided"), "{text}");
    }
    let changed = coo.to((DType::F64, ChannelsLast));
    assert!(message(changed).contains("a composite tensor has no strides"));
    for format in [Contiguous, Preserve] {
        assert_eq!(coo.contiguous_in(format).unwrap().layout(), coo.layout());
        assert_eq!(coo.to(format).unwrap().layout(), coo.layout());
        assert_eq!(f64s(&coo.copy_with(format).unwrap().to_strided().unwrap()), [1.0; 18]);
    }
    assert!(coo.empty_like().is_ok() || coo.zeros_like().is_ok());
}

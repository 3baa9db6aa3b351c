//! Autograd's own rules: refusals and their messages, hooks, retained graphs, higher derivatives, custom functions,
//! checkpoints.

use keyway::autograd::{self, AutogradError, BackwardOptions, Context, Function};
use keyway::nn::Reduction;
use keyway::{DType, Error, Result, Tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::new(values).unwrap().requires_grad_(true).unwrap()
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_vec::<f64>().unwrap()
}

fn autograd_error<T: std::fmt::Debug>(result: Result<T>) -> AutogradError {
    match result {
        Err(Error::Autograd(error)) => error,
        other => panic!("expected an autograd error, got {other:?}"),
    }
}

#[test]
fn gradients_of_a_sum_of_products() {
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    a.mul(&b).unwrap().add(&a).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(values(&a.grad().unwrap()), [4.0, 5.0]);
    assert_eq!(values(&b.grad().unwrap()), [1.0, 2.0]);
}

#[test]
fn gradients_accumulate_until_they_are_cleared() {
    let a = leaf(&[2.0]);
    for round in 1..=3 {
        a.mul(&a).unwrap().backward().unwrap();
        assert_eq!(values(&a.grad().unwrap()), [4.0 * f64::from(round)]);
    }
    a.zero_grad();
    assert!(a.grad().is_none());
}

#[test]
fn broadcast_arguments_get_gradients_of_their_own_shape() {
    let a = Tensor::from_vec(vec![1.0f64; 6], [2, 3]).unwrap().requires_grad_(true).unwrap();
    let row = leaf(&[1.0, 2.0, 3.0]);
    a.mul(&row).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(values(&row.grad().unwrap()), [2.0, 2.0, 2.0]);
    assert_eq!(a.grad().unwrap().shape(), [2, 3]);
}

#[test]
fn in_place_on_a_leaf_that_needs_grad_is_refused() {
    let a = leaf(&[1.0]);
    let error = autograd_error(a.add_(1.0));
    assert!(matches!(error, AutogradError::LeafInPlace { op: "add" }), "{error}");
    assert!(error.to_string().contains("no_grad"));
    let _off = autograd::no_grad();
    a.add_(1.0).unwrap();
    assert_eq!(values(&a), [2.0]);
}

#[test]
fn a_saved_tensor_changed_before_backward_is_found() {
    let a = leaf(&[1.0]);
    let b = a.mul(2.0).unwrap();
    let c = b.mul(&b).unwrap();
    b.add_(1.0).unwrap();
    let error = autograd_error(c.backward());
    match &error {
        AutogradError::SavedChanged { op, argument, expected, got } => {
            assert_eq!((op.as_str(), *expected, *got), ("mul", 0, 1));
            assert!(!argument.is_empty());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_saved_output_changed_before_backward_is_found() {
    let a = leaf(&[1.0]);
    let b = a.exp().unwrap();
    b.mul_(2.0).unwrap();
    assert!(matches!(autograd_error(b.sum_all().unwrap().backward()), AutogradError::SavedChanged { .. }));
}

#[test]
fn a_second_backward_of_what_saved_nothing_needs_no_retain_graph() {
    let x = leaf(&[1.0, 2.0]);
    let shared = x.neg().unwrap();
    for _ in 0..2 {
        shared.sum_all().unwrap().backward().unwrap();
    }
    assert_eq!(values(&x.grad().unwrap()), [-2.0, -2.0]);
}

#[test]
fn a_second_backward_needs_retain_graph() {
    let a = leaf(&[3.0]);
    let b = a.mul(&a).unwrap();
    b.backward_with(BackwardOptions { retain_graph: true, ..Default::default() }).unwrap();
    b.backward().unwrap();
    assert_eq!(values(&a.grad().unwrap()), [12.0]);
    let error = autograd_error(b.backward());
    assert!(matches!(&error, AutogradError::Freed { op } if op == "mul"), "{error}");
    assert!(error.to_string().contains("retain_graph"));
}

#[test]
fn backward_from_several_elements_needs_a_gradient() {
    let a = leaf(&[1.0, 2.0]);
    let b = a.mul(2.0).unwrap();
    assert!(matches!(autograd_error(b.backward()), AutogradError::NotScalar { sizes, .. } if sizes == [2]));
    let wrong = BackwardOptions { gradients: Some(vec![leaf(&[1.0])]), ..Default::default() };
    assert!(matches!(autograd_error(b.backward_with(wrong)), AutogradError::GradientShape { .. }));
}

#[test]
fn backward_outside_any_graph_is_refused() {
    let a = Tensor::new([1.0f64]).unwrap();
    assert!(matches!(autograd_error(a.backward()), AutogradError::NoGraph { op: "backward" }));
}

#[test]
fn only_floats_can_require_grad() {
    let a = Tensor::new([1i64]).unwrap();
    assert!(matches!(autograd_error(a.requires_grad_(true)), AutogradError::NotFloating { .. }));
}

#[test]
fn out_with_gradients_is_refused() {
    let (a, b) = (leaf(&[1.0]), Tensor::new([1.0f64]).unwrap());
    let mut out = Tensor::new([0.0f64]).unwrap();
    let error = autograd_error(a.add_out(&b, &mut out));
    assert!(matches!(error, AutogradError::OutRequiresGrad { op: "add" }));
    assert_eq!(values(&out), [0.0]);
}

#[test]
fn the_second_derivative_of_a_cube() {
    let x = leaf(&[2.0]);
    let y = x.mul(&x).unwrap().mul(&x).unwrap();
    let options = || BackwardOptions { create_graph: true, ..Default::default() };
    let first = autograd::grad(&[y], std::slice::from_ref(&x), options()).unwrap().remove(0).unwrap();
    assert_eq!(values(&first), [12.0]);
    let second = autograd::grad(&[first], std::slice::from_ref(&x), options()).unwrap().remove(0).unwrap();
    assert_eq!(values(&second), [12.0]);
    let third = autograd::grad(&[second], std::slice::from_ref(&x), options()).unwrap().remove(0).unwrap();
    assert_eq!(values(&third), [6.0]);
    assert!(x.grad().is_none(), "`grad` adds to no leaf");
}

#[test]
fn an_unused_input_is_an_error_unless_allowed() {
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
    let y = a.mul(2.0).unwrap();
    let retain = BackwardOptions { retain_graph: true, ..Default::default() };
    let error =
        autograd_error(autograd::grad(std::slice::from_ref(&y), &[a.clone(), b.clone()], retain.clone()));
    assert!(matches!(error, AutogradError::Unused { index: 1 }));
    let grads = autograd::grad(&[y], &[a, b], BackwardOptions { allow_unused: true, ..retain }).unwrap();
    assert!(grads[0].is_some() && grads[1].is_none());
}

#[test]
fn inputs_of_grad_may_be_results() {
    let a = leaf(&[3.0]);
    let b = a.mul(2.0).unwrap();
    let c = b.mul(&b).unwrap();
    let grads = autograd::grad(&[c], &[b], BackwardOptions::default()).unwrap();
    assert_eq!(values(grads[0].as_ref().unwrap()), [12.0]);
}

#[test]
fn detach_and_no_grad_cut_the_graph() {
    let a = leaf(&[2.0]);
    let b = a.detach().mul(&a).unwrap();
    b.backward().unwrap();
    assert_eq!(values(&a.grad().unwrap()), [2.0]);
    let _off = autograd::no_grad();
    assert!(!a.mul(2.0).unwrap().requires_grad());
    let _on = autograd::enable_grad();
    assert!(a.mul(2.0).unwrap().requires_grad());
}

#[test]
fn inference_tensors_cannot_be_saved() {
    let made = {
        let _mode = autograd::inference_mode();
        Tensor::new([1.0f64]).unwrap().mul(1.0).unwrap()
    };
    let a = leaf(&[2.0]);
    assert!(matches!(autograd_error(a.mul(&made)), AutogradError::Inference { .. }));
    a.add(&made).unwrap().backward().unwrap();
    assert_eq!(values(&a.grad().unwrap()), [1.0]);
}

#[test]
fn hooks_see_and_replace_gradients() {
    let a = leaf(&[1.0]);
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let on_leaf = a
        .register_hook(move |g| {
            counter.fetch_add(1, Ordering::Relaxed);
            g.mul(10.0).map(Some)
        })
        .unwrap();
    let b = a.mul(3.0).unwrap();
    let on_result = b.register_hook(|g| g.mul(2.0).map(Some)).unwrap();
    let retain = BackwardOptions { retain_graph: true, ..Default::default() };
    b.backward_with(retain.clone()).unwrap();
    assert_eq!(values(&a.grad().unwrap()), [60.0]);
    drop(on_result);
    drop(on_leaf);
    a.zero_grad();
    b.backward_with(retain).unwrap();
    assert_eq!(values(&a.grad().unwrap()), [3.0]);
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    let plain = Tensor::new([1.0f64]).unwrap();
    assert!(matches!(
        autograd_error(plain.register_hook(|_| Ok(None)).map(|_| ())),
        AutogradError::RequiresNoGrad { op: "register_hook" }
    ));
}

/// A gradient passed by the user must fit its tensor; otherwise no part of it is accumulated.
#[test]
fn gradients_that_the_user_gives_must_fit() {
    let refused = |given: Result<()>, parts: &[&str]| {
        let text = given.unwrap_err().to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let a = leaf(&[1.0, 2.0]);
    let (short, narrow) = (Tensor::new([1.0f64]).unwrap(), Tensor::new([1.0f32, 2.0]).unwrap());
    refused(a.set_grad(short.clone()), &["set_grad: expected a gradient of shape [2], got [1]"]);
    refused(a.set_grad(a.clone()), &["set_grad", "the tensor itself", "`copied()`"]);
    refused(a.set_grad(a.detach()), &["set_grad", "the tensor itself", "`copied()`"]);
    refused(
        a.set_grad(narrow),
        &["set_grad: expected a gradient of dtype f64, got one of dtype f32", "`to_dtype`"],
    );
    assert!(a.grad().is_none());
    for on_leaf in [true, false] {
        let b = a.mul(3.0).unwrap();
        let replaced = short.clone();
        let hooked = if on_leaf { &a } else { &b };
        let _hook = hooked.register_hook(move |_| Ok(Some(replaced.clone()))).unwrap();
        refused(
            b.sum_all().unwrap().backward(),
            &["register_hook: expected a gradient of shape [2], got [1]"],
        );
        assert!(a.grad().is_none());
    }
    a.set_grad(Tensor::new([5.0f64, 6.0]).unwrap()).unwrap();
    a.sum_all().unwrap().backward().unwrap();
    assert_eq!(values(&a.grad().unwrap()), [6.0, 7.0]);
    a.zero_grad();
    assert!(a.grad().is_none());
}

struct Cube;

impl Function for Cube {
    fn name(&self) -> &'static str {
        "cube"
    }
    fn forward(&self, context: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        context.save(&[&inputs[0]]);
        let x = &inputs[0];
        Ok(vec![x.mul(x)?.mul(x)?])
    }
    fn backward(&self, context: &Context, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let x = &context.saved()[0];
        Ok(vec![Some(x.mul(x)?.mul(3.0)?.mul(&grads[0])?)])
    }
}

#[test]
fn a_hook_may_own_another_hook_of_its_tensor() {
    let a = leaf(&[1.0, 2.0]);
    let result = a.mul(3.0).unwrap();
    for owner in [&a, &result] {
        let inner = owner.register_hook(|g| g.mul(2.0).map(Some)).unwrap();
        let outer = owner
            .register_hook(move |_| {
                let _ = &inner;
                Ok(None)
            })
            .unwrap();
        drop(outer);
    }
    result.sum_all().unwrap().backward().unwrap();
    assert_eq!(values(&a.grad().unwrap()), [3.0, 3.0], "both hooks are gone");
}

#[test]
fn a_custom_function_is_differentiated_twice() {
    let x = leaf(&[2.0]);
    let y = autograd::apply(Cube, std::slice::from_ref(&x)).unwrap().remove(0);
    assert_eq!(y.grad_fn().unwrap().name(), "cube");
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let first = autograd::grad(&[y], std::slice::from_ref(&x), options.clone()).unwrap().remove(0).unwrap();
    let second = autograd::grad(std::slice::from_ref(&first), &[x], options).unwrap().remove(0).unwrap();
    assert_eq!((values(&first), values(&second)), (vec![12.0], vec![12.0]));
}

#[test]
fn a_checkpoint_gives_the_same_gradients_and_runs_twice() {
    let weight = leaf(&[3.0]);
    let x = leaf(&[2.0]);
    let runs = Arc::new(AtomicUsize::new(0));
    let (captured, counter) = (weight.clone(), runs.clone());
    let part = move |inputs: &[Tensor]| {
        counter.fetch_add(1, Ordering::Relaxed);
        let y = inputs[0].mul(&captured)?;
        Ok(vec![y.mul(&y)?])
    };
    let y = autograd::checkpoint(part, std::slice::from_ref(&x)).unwrap().remove(0);
    y.backward().unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(values(&x.grad().unwrap()), [36.0]);
    assert_eq!(values(&weight.grad().unwrap()), [24.0]);
}

#[test]
fn anomaly_detection_names_the_op_and_the_place() {
    let _watch = autograd::detect_anomaly();
    let x = leaf(&[0.0]);
    let y = x.mul(f64::INFINITY).unwrap().mul(0.0).unwrap();
    let error = autograd_error(y.backward());
    match error {
        AutogradError::Anomaly { op, trace, .. } => {
            assert_eq!(op, "mul");
            assert!(trace.len() > 20, "the trace is there: {trace}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_chain_of_a_hundred_thousand_nodes_is_dropped_without_overflowing_the_stack() {
    let x = leaf(&[1.0]);
    let mut y = x.mul(1.0).unwrap();
    for _ in 0..100_000 {
        y = y.add(0.0).unwrap();
    }
    drop(y);
    let mut z = x.mul(1.0).unwrap();
    for _ in 0..50_000 {
        z = z.mul(&z).unwrap();
    }
    drop(z);
}

#[test]
fn a_graph_is_freed_with_its_last_tensor() {
    let x = leaf(&[1.0]);
    let y = x.exp().unwrap();
    let weak = keyway_dispatcher::memory::Shared::downgrade(y.as_ref());
    let z = y.mul(&y).unwrap();
    // An in-place change of a tensor by a result that was computed from it must make no cycle.
    y.add_(&z).unwrap();
    drop((y, z));
    assert!(weak.upgrade().is_none());
}

#[test]
fn threads_may_record_and_run_their_own_graphs() {
    let w = leaf(&[2.0]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let y = w.mul(3.0).unwrap();
                    let g =
                        autograd::grad(&[y], std::slice::from_ref(&w), BackwardOptions::default()).unwrap();
                    assert_eq!(values(g[0].as_ref().unwrap()), [3.0]);
                }
            });
        }
    });
}

#[test]
fn class_weights_get_a_gradient_through_the_mean_of_their_own() {
    let scores = Tensor::from_vec(vec![-1.0f64, -2.0, -3.0, -4.0, -7.0, -8.0], [3, 2]).unwrap();
    let target = Tensor::new([0i64, 1, -100]).unwrap();
    let weight = leaf(&[0.5, 2.0]);
    scores.nll_loss_with(&target, Some(&weight), -100, Reduction::Mean).unwrap().backward().unwrap();
    // (w0 + 4 w1) / (w0 + w1)
    let (w0, w1) = (0.5f64, 2.0);
    let total = (w0 + w1) * (w0 + w1);
    let expected = [-3.0 * w1 / total, 3.0 * w0 / total];
    let got = values(&weight.grad().unwrap());
    assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?} {expected:?}");
}

/// Makes a complex tensor of any input.
struct MakesComplex;

impl Function for MakesComplex {
    fn name(&self) -> &'static str {
        "makes_complex"
    }
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![Tensor::empty_with(inputs[0].shape(), DType::C64)?])
    }
    fn backward(&self, _: &Context, _: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![None])
    }
}

#[test]
fn a_recorded_op_without_a_complex_derivative_refuses_complex_tensors() {
    let complex = Tensor::zeros_with([2, 2], DType::C64).unwrap().requires_grad_(true).unwrap();
    let error = autograd_error(complex.softmax(0));
    assert!(matches!(&error, AutogradError::Complex { op, .. } if op == "softmax"), "{error}");
    let error = autograd_error(complex.sum_all().unwrap().backward());
    assert!(matches!(&error, AutogradError::ComplexOutput { dtype, .. } if dtype == "c64"), "{error}");
    assert!(autograd::apply(MakesComplex, &[leaf(&[1.0])]).is_ok());
    assert!(complex.abs().unwrap().sum_all().unwrap().backward().is_ok());
}

#[test]
fn threads_that_share_a_leaf_lose_no_gradient() {
    let x = Tensor::ones([1000]).unwrap().requires_grad_(true).unwrap();
    const ROUNDS: usize = 200;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    x.mul(1).unwrap().sum_all().unwrap().backward().unwrap();
                }
            });
        }
    });
    assert!(x.grad().unwrap().to_vec::<f32>().unwrap().iter().all(|g| *g == 4.0 * ROUNDS as f32));
}

/// A softmax row dominated by one element: the gradient is a small difference, which intermediate rounding in the narrow
/// dtype would lose. It is computed from the rounded result.
#[test]
fn gradients_of_softmax_in_narrow_floats_are_rounded_once() {
    let weights = [1.0, -0.5, 0.25, 2.0];
    for (dtype, places) in [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))] {
        let narrow = |values: &[f64]| Tensor::new(values).unwrap().to_dtype(dtype).unwrap();
        for log in [false, true] {
            let x = narrow(&[9.0, -1.0, 0.5, -2.0]).requires_grad_(true).unwrap();
            let y = if log { x.log_softmax(0) } else { x.softmax(0) }.unwrap();
            let gradients = Some(vec![narrow(&weights)]);
            y.backward_with(BackwardOptions { gradients, ..Default::default() }).unwrap();
            let [y, got] = [y.detach(), x.grad().unwrap()].map(|t| values(&t.to_dtype(DType::F64).unwrap()));
            let pairs = || y.iter().zip(&weights);
            let (weighed, all): (f64, f64) = (pairs().map(|(y, w)| y * w).sum(), weights.iter().sum());
            let expected = pairs().map(|(y, w)| if log { w - y.exp() * all } else { y * (w - weighed) });
            for (got, expected) in got.iter().zip(expected) {
                assert!(
                    (got - expected).abs() <= expected.abs() * places + 1e-6,
                    "{dtype} log {log}: {got} for {expected}"
                );
            }
        }
    }
}

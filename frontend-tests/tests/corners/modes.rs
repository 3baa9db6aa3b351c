//! Modes whose guards are dropped in any order, and checkpoints.

use super::{leaf, values};
use keyway::autograd::{self, BackwardOptions, checkpoint};
use keyway::{DType, Device, Result, Tensor, rng};

/// Whether a product of a leaf is recorded.
fn recorded() -> bool {
    leaf(&[1.0], DType::F64).mul(2.0).unwrap().requires_grad()
}

#[test]
fn modes_end_in_whatever_order_their_guards_are_dropped() -> Result<()> {
    let (off, on) = (autograd::no_grad(), autograd::enable_grad());
    drop(off);
    assert!(recorded());
    drop(on);
    assert!(recorded() && autograd::is_grad_enabled());

    let (off, profile) = (autograd::no_grad(), keyway::profiler::profile());
    drop(off);
    assert!(recorded());
    drop(profile);
    assert!(recorded());

    let (inference, off) = (autograd::inference_mode(), autograd::no_grad());
    drop(inference);
    assert!(!recorded() && !autograd::is_inference_mode());
    drop(off);
    assert!(recorded());

    let guards: Vec<_> = (0..40).map(|_| autograd::no_grad()).collect();
    for guard in guards {
        assert!(!recorded());
        drop(guard);
    }
    assert!(recorded());

    let (first, second) =
        (keyway::backend::choose_backend("keyway-cpu")?, keyway::backend::choose_backend("keyway-cpu")?);
    drop(first);
    assert!(recorded());
    drop(second);
    assert!(recorded());
    Ok(())
}

#[test]
fn a_guard_dropped_in_a_hook_stays_dropped() -> Result<()> {
    let guard = std::rc::Rc::new(std::cell::RefCell::new(None));
    *guard.borrow_mut() = Some(autograd::no_grad());
    let on = autograd::enable_grad();
    let x = leaf(&[1.0], DType::F64);
    let y = x.mul(2.0)?;
    {
        // Within a scope that the library itself made.
        let _pass = autograd::no_grad();
        guard.borrow_mut().take();
        y.backward()?;
    }
    drop(on);
    assert!(recorded());
    Ok(())
}

fn dropped(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    Ok(vec![inputs[0].dropout(0.5, true)?])
}

#[test]
fn a_checkpoint_drops_the_same_elements_again() -> Result<()> {
    let x = leaf(&[1.0; 64], DType::F64);
    let y = checkpoint(dropped, std::slice::from_ref(&x))?.remove(0);
    let before = rng::default_generator(Device::CPU).state();
    y.sum_all()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), values(&y));
    assert!(
        rng::default_generator(Device::CPU).state().offset >= before.offset,
        "the second run moved it back"
    );

    // Also where another generator stands in, and one checkpoint within another.
    x.zero_grad();
    let own = rng::Generator::new(5);
    let outer = |inputs: &[Tensor]| {
        let first = inputs[0].dropout(0.5, true)?;
        checkpoint(dropped, &[first])
    };
    let y = rng::with_generator(&own, || checkpoint(outer, std::slice::from_ref(&x)))?.remove(0);
    let place = own.state();
    y.sum_all()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), values(&y));
    assert_eq!(own.state(), place);
    Ok(())
}

#[test]
fn a_checkpoint_whose_inputs_need_no_gradient_gives_its_parameters_theirs() -> Result<()> {
    let weight = leaf(&[3.0], DType::F64);
    let x = Tensor::new([2.0f64])?;
    let captured = weight.clone();
    let part = move |inputs: &[Tensor]| {
        let y = inputs[0].mul(&captured)?;
        Ok(vec![y.mul(&y)?, inputs[0].clone()])
    };
    let made = checkpoint(part, std::slice::from_ref(&x))?;
    assert_eq!(values(&made[0]), [36.0]);
    made[0].backward()?;
    assert_eq!(values(&weight.grad().unwrap()), [24.0]);

    // If no input requires a gradient, neither does the output.
    let plain = checkpoint(|inputs| Ok(vec![inputs[0].mul(2.0)?]), std::slice::from_ref(&x))?;
    assert!(!plain[0].requires_grad());
    let off = autograd::no_grad();
    let captured = weight.clone();
    assert!(!checkpoint(move |_| Ok(vec![captured.mul(2.0)?]), &[])?[0].requires_grad());
    drop(off);

    // Nested, and a parameter that comes out as it is.
    let captured = weight.clone();
    let nested = move |inputs: &[Tensor]| {
        let captured = captured.clone();
        let inner = move |inputs: &[Tensor]| Ok(vec![inputs[0].mul(&captured)?, captured.clone()]);
        checkpoint(inner, inputs)
    };
    weight.zero_grad();
    let made = checkpoint(nested, &[x])?;
    made[0].add(&made[1])?.backward()?;
    assert_eq!(values(&weight.grad().unwrap()), [3.0]);
    assert!(weight.is_leaf());
    Ok(())
}

#[test]
fn gradients_of_a_checkpoint_are_not_differentiated_in_silence() -> Result<()> {
    let x = leaf(&[2.0], DType::F64);
    let y = checkpoint(|inputs| Ok(vec![inputs[0].mul(&inputs[0])?]), std::slice::from_ref(&x))?.remove(0);
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let error = autograd::grad(&[y], &[x], options).unwrap_err().to_string();
    assert!(error.contains("checkpoint") && error.contains("create_graph"), "{error}");
    Ok(())
}

#[test]
fn the_trace_of_an_anomaly_begins_where_the_call_was_made() -> Result<()> {
    let _watch = autograd::detect_anomaly();
    let x = leaf(&[0.0], DType::F64);
    let y = (&x.mul(f64::INFINITY)? + &x)?.mul(0.0)?;
    let text = y.backward().unwrap_err().to_string();
    let first = text.lines().nth(1).unwrap_or_default();
    assert!(first.contains("the_trace_of_an_anomaly_begins_where_the_call_was_made"), "{text}");
    assert!(!text.contains("__rust_begin_short_backtrace"), "{text}");
    Ok(())
}

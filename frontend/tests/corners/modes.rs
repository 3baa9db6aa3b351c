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

//! A backward pass neither copies uniquely owned gradients nor computes unrequested ones.

mod rehearsal_support;

use keyway::autograd::{self, BackwardOptions};
use keyway::nn::{BatchNorm2d, Linear, Module};
use keyway::profiler::{self, Report};
use keyway::{Result, Tensor};
use rehearsal_support::load;

/// The calls of one op in a pass.
fn calls(report: &Report, op: &str) -> u64 {
    report.rows.iter().filter(|row| row.op == op).map(|row| row.calls).sum()
}

#[test]
fn gradients_of_a_linear_layer_are_taken_as_they_were_made() -> Result<()> {
    let _guard = load(&[]);
    let layer = Linear::new(3, 4)?;
    let loss = layer.forward(&Tensor::rand([5, 3])?)?.square()?.sum_all()?;
    let profile = profiler::profile();
    loss.backward()?;
    let report = profile.report();
    assert_eq!(calls(&report, "copy"), 0, "{report}");
    assert!(layer.parameters().iter().all(|p| p.grad().is_some_and(|grad| grad.is_contiguous())));
    Ok(())
}

/// Two leaves get one gradient, as it is and transposed: what is done to one must not be seen in the other.
#[test]
fn a_gradient_that_somebody_holds_is_copied() -> Result<()> {
    let _guard = load(&[]);
    let ones = || Tensor::ones([2, 2])?.requires_grad_(true);
    for held in [false, true] {
        let (a, b) = (ones()?, ones()?);
        let grad = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
        let options = BackwardOptions { gradients: Some(vec![grad.clone()]), ..Default::default() };
        let sum = a.add(&b.t()?)?;
        let kept = held.then_some(grad);
        autograd::backward(&[&sum], options)?;
        let (of_a, of_b) = (a.grad().unwrap(), b.grad().unwrap());
        of_a.zero_()?;
        assert_eq!(of_b.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
        of_b.zero_()?;
        if let Some(kept) = kept {
            assert_eq!(kept.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
        }
    }
    Ok(())
}

#[test]
fn gradients_of_statistics_that_nobody_used_are_not_filled() -> Result<()> {
    let _guard = load(&[]);
    let norm = BatchNorm2d::new(3)?;
    let x = Tensor::rand([2, 3, 4, 4])?.requires_grad_(true)?;
    let loss = norm.forward(&x)?.square()?.sum_all()?;
    let profile = profiler::profile();
    loss.backward()?;
    let report = profile.report();
    assert_eq!((calls(&report, "channel_norm_backward"), calls(&report, "fill")), (1, 1), "{report}");
    Ok(())
}

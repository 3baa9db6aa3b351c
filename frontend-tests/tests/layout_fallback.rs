//! Calls on composite tensors without a kernel for their layout, with and without the fallback to strided.

mod rehearsal_support;

use keyway::layout_fallback::{LayoutFallback, current_layout_fallback, layout_fallback};
use keyway::{Result, Tensor};
use rehearsal_support::message;

fn sparse() -> Tensor {
    Tensor::new([[0.0f64, 2.0, 0.0], [3.0, 0.0, 4.0]]).unwrap().to_sparse().unwrap()
}

#[test]
fn an_op_without_a_kernel_runs_on_strided_copies() -> Result<()> {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    let x = sparse();
    let text = message(x.cumsum(1));
    assert!(text.contains("--layout-fallback warn"), "{text}");
    let _guard = layout_fallback(LayoutFallback::Allow)?;
    let sums = x.cumsum(1)?;
    assert!(sums.as_ref().is_strided());
    assert_eq!(sums.to_vec::<f64>()?, [0.0, 2.0, 2.0, 3.0, 3.0, 7.0]);
    // A composed op is converted whole, a list and a view too.
    assert_eq!(x.logsumexp(1)?.to_vec::<f64>()?, x.to_strided()?.logsumexp(1)?.to_vec::<f64>()?);
    assert_eq!(x.flip([0])?.to_vec::<f64>()?, [3.0, 0.0, 4.0, 0.0, 2.0, 0.0]);
    // Ops that the layout serves keep the layout.
    assert!(!x.add(&x)?.as_ref().is_strided());
    assert!(!x.relu()?.as_ref().is_strided());
    Ok(())
}

#[test]
fn gradients_pass_through_the_conversion() -> Result<()> {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    let _guard = layout_fallback(LayoutFallback::Allow)?;
    let dense = Tensor::new([[0.0f64, 2.0, 0.0], [3.0, 0.0, 4.0]])?.requires_grad_(true)?;
    let weights = Tensor::new([[1.0f64, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
    dense.to_sparse()?.cumsum(1)?.mul(&weights)?.sum_all()?.backward()?;
    let through = dense.grad().unwrap().to_strided()?.to_vec::<f64>()?;
    let leaf = Tensor::new([[0.0f64, 2.0, 0.0], [3.0, 0.0, 4.0]])?.requires_grad_(true)?;
    leaf.cumsum(1)?.mul(&weights)?.sum_all()?.backward()?;
    let whole = leaf.grad().unwrap().to_vec::<f64>()?;
    assert_eq!(through, whole);
    Ok(())
}

#[test]
fn targets_that_are_composite_are_refused_and_strided_ones_written() -> Result<()> {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    let _guard = layout_fallback(LayoutFallback::Allow)?;
    let x = sparse();
    let text = message(x.exp_());
    assert!(text.contains("exp"), "{text}");
    assert_eq!(x.to_strided()?.to_vec::<f64>()?, [0.0, 2.0, 0.0, 3.0, 0.0, 4.0]);
    let mut out = Tensor::zeros_with((2, 3), keyway::DType::F64)?;
    x.exp_out(&mut out)?;
    assert_eq!(out.to_vec::<f64>()?, x.to_strided()?.exp()?.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn policies_are_those_of_the_thread_and_of_the_program() -> Result<()> {
    let _one = rehearsal_support::load(&["keyway_backend_sparse"]);
    assert_eq!(current_layout_fallback(), LayoutFallback::Error);
    let outer = layout_fallback(LayoutFallback::Allow)?;
    {
        let _inner = layout_fallback(LayoutFallback::Error)?;
        assert!(sparse().cumsum(1).is_err());
    }
    assert!(sparse().cumsum(1).is_ok());
    let elsewhere = std::thread::spawn(|| sparse().cumsum(1).is_err()).join().unwrap();
    assert!(elsewhere, "the policy is the thread's own");
    // Guards may end in any order; the most recent live one applies.
    let inner = layout_fallback(LayoutFallback::Error)?;
    drop(outer);
    assert!(sparse().cumsum(1).is_err());
    drop(inner);
    assert_eq!(current_layout_fallback(), LayoutFallback::Error);
    keyway::set_layout_fallback("warn")?;
    let elsewhere = std::thread::spawn(|| sparse().cumsum(1).is_ok()).join().unwrap();
    assert!(elsewhere, "the policy is the program's");
    keyway::set_layout_fallback("error")?;
    assert!(sparse().cumsum(1).is_err());
    assert!(keyway::set_layout_fallback("cpu").unwrap_err().to_string().contains("`warn`"));
    Ok(())
}

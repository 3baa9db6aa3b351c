//! A backend's own kernel of a composite op: it serves calls without a gradient, and is passed over where the parts must be
//! recorded.

mod rehearsal_support;

use keyway::dispatcher::ledger::last_served;
use keyway::{Tensor, with_backend};

const SECOND: &str = "keyway.test/second";

fn matrix(values: &[f32], columns: usize) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len() / columns, columns]).unwrap()
}

#[test]
fn a_fused_kernel_serves_a_composite_op_unless_a_gradient_is_wanted() {
    let _one = rehearsal_support::load(&["keyway_test_second"]);
    let (x, w) = (matrix(&[1.0, 2.0, 3.0, 4.0], 2), matrix(&[1.0, 10.0], 2));
    let fused = with_backend(SECOND, || x.linear(&w, None)).unwrap().unwrap();
    assert_eq!(last_served().name(), SECOND);
    assert_eq!(fused.to_vec::<f32>().unwrap(), [42.0, 42.0]);
    // Calls that it refuses use the decomposition.
    let row = Tensor::new([1.0f32, 2.0]).unwrap();
    let composed = with_backend(SECOND, || row.linear(&w, None)).unwrap().unwrap();
    assert_eq!(last_served().name(), "(decomposition)");
    assert_eq!(composed.to_vec::<f32>().unwrap(), [21.0]);
    // The parts are recorded.
    let w = w.requires_grad_(true).unwrap();
    let y = with_backend(SECOND, || x.linear(&w, None)).unwrap().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [21.0, 43.0]);
    y.sum_all().unwrap().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec::<f32>().unwrap(), [4.0, 6.0]);
    // Nothing is recorded without a gradient, whatever requires one.
    let _off = keyway::autograd::no_grad();
    let fused = with_backend(SECOND, || x.linear(&w, None)).unwrap().unwrap();
    assert_eq!(fused.to_vec::<f32>().unwrap(), [42.0, 42.0]);
}

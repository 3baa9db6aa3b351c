//! Arguments at the edge of what an op takes.

use super::values;
use keyway::{Result, Tensor};

#[test]
fn labels_are_smoothed_by_a_share() -> Result<()> {
    let x = Tensor::from_vec(vec![0.1f64, 0.2, 0.3, 0.4], &[2, 2])?;
    let target = Tensor::from_slice(&[0i64, 1])?;
    for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let text = x.cross_entropy(&target, None, -100, wrong, "mean").unwrap_err().to_string();
        assert!(text.contains("cross_entropy: `label_smoothing` must be a share from 0 to 1"), "{text}");
    }
    for right in [0.0, 1.0] {
        assert!(values(&x.cross_entropy(&target, None, -100, right, "mean")?)[0].is_finite());
    }
    Ok(())
}

#[test]
fn a_dimension_is_squeezed_once() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0f32], &[1, 1])?;
    let text = x.squeeze_dims(&[0, -2]).unwrap_err().to_string();
    assert!(text.contains("different dimensions") && text.contains("[0, -2]"), "{text}");
    assert_eq!(x.squeeze_dims(&[0, -1])?.sizes(), [0usize; 0]);
    Ok(())
}

//! Arguments at the edge of what an op takes.

use super::values;
use keyway::nn::Reduction;
use keyway::{Result, Tensor};

#[test]
fn labels_are_smoothed_by_a_share() -> Result<()> {
    let x = Tensor::from_vec(vec![0.1f64, 0.2, 0.3, 0.4], [2, 2])?;
    let target = Tensor::new([0i64, 1])?;
    for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let text = x.cross_entropy_with(&target, None, -100, wrong, Reduction::Mean).unwrap_err().to_string();
        assert!(text.contains("cross_entropy: `label_smoothing` must be a share from 0 to 1"), "{text}");
    }
    for right in [0.0, 1.0] {
        assert!(values(&x.cross_entropy_with(&target, None, -100, right, Reduction::Mean)?)[0].is_finite());
    }
    Ok(())
}

#[test]
fn a_dimension_is_squeezed_once() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0f32], [1, 1])?;
    let text = x.squeeze((0, -2)).unwrap_err().to_string();
    assert!(text.contains("different dimensions") && text.contains("[0, -2]"), "{text}");
    assert_eq!(x.squeeze((0, -1))?.shape(), [0usize; 0]);
    Ok(())
}

#[test]
fn the_largest_and_the_smallest_of_bool() -> Result<()> {
    let x = Tensor::from_vec(vec![false, true, false, false, true, true], [3, 2])?;
    let (value, place) = x.max(1)?;
    assert_eq!((value.to_vec::<bool>()?, place.to_vec::<i64>()?), (vec![true, false, true], vec![1, 0, 0]));
    let (value, place) = x.min(1)?;
    assert_eq!((value.to_vec::<bool>()?, place.to_vec::<i64>()?), (vec![false, false, true], vec![0, 0, 0]));
    let (value, place) = x.max_keepdim(0)?;
    assert_eq!((value.to_vec::<bool>()?, place.to_vec::<i64>()?), (vec![true, true], vec![2, 0]));
    assert_eq!(x.argmin(0)?.to_vec::<i64>()?, [0, 1]);
    assert_eq!(x.argmax_all()?.item::<i64>()?, 1);
    Ok(())
}

#[test]
fn none_of_a_single_number() -> Result<()> {
    let text = Tensor::new(3.0f32)?.topk(0, 0).unwrap_err().to_string();
    assert!(text.contains("topk: `k` must be 1 to 1"), "{text}");
    let (value, place) = Tensor::new(3.0f32)?.topk(1, -1)?;
    assert_eq!((values(&value), values(&place)), (vec![3.0], vec![0.0]));
    assert_eq!(Tensor::new([3.0f32])?.topk(0, 0)?.0.shape(), [0]);
    Ok(())
}

#[test]
fn a_roll_without_dimensions_is_one_of_the_elements_in_a_row() -> Result<()> {
    let x = Tensor::from_vec((0..6).collect(), [2, 3])?;
    assert_eq!(x.roll([1], ())?.to_vec::<i32>()?, [5, 0, 1, 2, 3, 4]);
    assert_eq!(x.roll([1], ())?.shape(), [2, 3]);
    assert_eq!(x.t()?.roll([-1], ())?.to_vec::<i32>()?, [3, 1, 4, 2, 5, 0]);
    assert_eq!(Tensor::new(7i32)?.roll([1], ())?.to_vec::<i32>()?, [7]);
    for (shifts, dims) in [(&[][..], &[][..]), (&[1, 2], &[]), (&[1], &[0, 1])] {
        let text = x.roll(shifts, dims).unwrap_err().to_string();
        assert!(text.contains("roll: `shifts`"), "{text}");
    }
    Ok(())
}

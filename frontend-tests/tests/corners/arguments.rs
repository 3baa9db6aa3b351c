//! Arguments at the edge of what an op takes.

use super::values;
use keyway::nn::{AvgPoolOptions, ConvTransposeOptions, MaxPoolOptions, Reduction};
use keyway::ops::by_name;
use keyway::{Arg, DType, MemoryFormat, Result, Tensor};

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
    let text = Tensor::new(3.0f32)?.topk(2, 0).unwrap_err().to_string();
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

/// Results without elements, whose gradients are zeros.
#[test]
fn images_of_no_elements() -> Result<()> {
    let zeros =
        |x: &Tensor| x.grad().is_some_and(|grad| grad.to_vec_f64().unwrap().iter().all(|&g| g == 0.0));
    let x = Tensor::ones((1, 2, 3, 4))?.requires_grad_(true)?;
    for made in [
        x.adaptive_avg_pool2d(0)?,
        x.adaptive_avg_pool2d([2, 0])?,
        x.adaptive_max_pool2d(0)?,
        x.adaptive_max_pool2d_with_indices([0, 2])?.0,
        x.reshape((2, 3, 4))?.adaptive_avg_pool1d(0)?,
        x.reshape((1, 2, 3, 2, 2))?.adaptive_max_pool3d([1, 0, 2])?,
    ] {
        assert_eq!(made.elem_count(), 0, "{:?}", made.shape());
        x.zero_grad();
        made.sum_all()?.backward()?;
        assert!(zeros(&x), "{:?}", made.shape());
    }
    let (x, weight) = (Tensor::ones((1, 2, 1, 3))?, Tensor::ones((2, 3, 2, 2))?);
    let (x, weight) = (x.requires_grad_(true)?, weight.requires_grad_(true)?);
    let bias = Tensor::ones(3)?.requires_grad_(true)?;
    let options = ConvTransposeOptions::default().padding([1, 0]);
    let made = x.conv_transpose2d_with(&weight, Some(&bias), options)?;
    assert_eq!(made.shape(), [1, 3, 0, 4]);
    made.sum_all()?.backward()?;
    assert!([&x, &weight, &bias].into_iter().all(zeros));
    let wrong = x.conv_transpose2d_with(&weight, None, ConvTransposeOptions::default().padding([2, 0]));
    assert!(wrong.unwrap_err().to_string().contains("an output of 0 or more elements"));
    Ok(())
}

/// The rule of PyTorch: a window that is rounded up to begins in the image or the border before it.
#[test]
fn windows_that_reach_over_the_padded_image() -> Result<()> {
    let x = Tensor::new([1.0f32, 2.0])?.reshape((1, 1, 2))?;
    for (kernel, stride, most, mean) in [(3, 2, 2.0, 1.5), (5, 4, 2.0, 1.5), (4, 5, 2.0, 1.5)] {
        let max = x.max_pool1d(MaxPoolOptions::new(kernel).stride(stride).ceil_mode(true))?;
        assert_eq!(max.to_vec::<f32>()?, [most]);
        let avg = x.avg_pool1d(AvgPoolOptions::new(kernel).stride(stride).ceil_mode(true))?;
        assert_eq!(avg.to_vec::<f32>()?, [mean]);
    }
    for (kernel, stride) in [(3, 1), (5, 2), (4, 2)] {
        assert!(x.max_pool1d(MaxPoolOptions::new(kernel).stride(stride).ceil_mode(true)).is_err());
        assert!(x.avg_pool1d(AvgPoolOptions::new(kernel).stride(stride).ceil_mode(true)).is_err());
    }
    Ok(())
}

#[test]
fn max_pools_of_integers() -> Result<()> {
    let wide = [i64::MAX, i64::MAX - 1, i64::MIN, 5, 7, 7, -1, 0, 3, 2, 1, 0];
    let x = Tensor::from_vec(wide.to_vec(), (1, 1, 3, 4))?;
    let (values, places) = x.max_pool2d_with_indices(MaxPoolOptions::new(2).stride(1))?;
    assert_eq!(values.to_vec::<i64>()?, [i64::MAX, i64::MAX - 1, 5, 7, 7, 1]);
    assert_eq!(places.to_vec::<i64>()?, [0, 1, 3, 4, 5, 10]);
    assert_eq!(x.adaptive_max_pool2d([1, 3])?.to_vec::<i64>()?, [i64::MAX, i64::MAX - 1, 5]);
    let last = x.to(MemoryFormat::ChannelsLast)?.max_pool2d(2)?;
    assert_eq!(last.to_vec::<i64>()?, [i64::MAX, 5]);
    for dtype in [DType::U8, DType::I8, DType::I16, DType::U16, DType::I32, DType::U32, DType::U64] {
        let small = Tensor::new([3i64, 1, 2, 4, 0, 9])?.to_dtype(dtype)?.reshape((1, 1, 6))?;
        assert_eq!(small.max_pool1d(3)?.to_dtype(DType::I64)?.to_vec::<i64>()?, [3, 9]);
    }
    Ok(())
}

#[test]
fn the_middle_and_the_most_of_nothing() -> Result<()> {
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let none = Tensor::zeros_with((0, 3), dtype)?.requires_grad_(true)?;
        let middle = none.median_all()?;
        assert!((middle.dtype(), middle.rank()) == (dtype, 0) && middle.to_vec_f64()?[0].is_nan());
        middle.backward()?;
        assert_eq!(none.grad().unwrap().shape(), [0, 3]);
    }
    assert!(Tensor::zeros_with(0, DType::I64)?.median_all().is_err());
    let (value, place) = Tensor::new(3.5f32)?.topk(0, 0)?;
    assert_eq!((value.shape().len(), value.item::<f32>()?, place.item::<i64>()?), (0, 3.5, 0));
    assert_eq!(Tensor::new([3.5f32])?.topk(0, 0)?.0.shape(), [0]);
    Ok(())
}

#[test]
fn calls_by_name_take_integers_for_floats() -> Result<()> {
    let x = Tensor::new([-2.0f32, f32::NAN])?;
    let one =
        |name: &str, args: &[Arg<'_>]| -> Result<Vec<f64>> { by_name::call(name, args)?[0].to_vec_f64() };
    assert_eq!(one("nan_to_num", &[(&x).into(), Arg::Int(3)])?, [-2.0, 3.0]);
    assert_eq!(one("linspace", &[(&x).into(), Arg::Int(3), Arg::Bool(true)])?, [3.0, 1.0]);
    let (y, sizes) = (Tensor::new([3.0f32, 4.0])?, Arg::Ints(&[2]));
    let norm = |eps: Arg<'_>| one("rms_norm", &[(&y).into(), sizes, Arg::None, eps]);
    assert_eq!(norm(Arg::Int(1))?, norm(Arg::Float(1.0))?);
    let wrong = norm(Arg::Str("1")).unwrap_err().to_string();
    assert!(wrong.contains("`eps`"), "{wrong}");
    let grid = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
    let rolled = grid.roll(1, ..)?.to_vec_f64()?;
    assert_eq!(one("roll", &[(&grid).into(), Arg::Ints(&[1])])?, rolled);
    assert_eq!(one("roll", &[(&grid).into(), Arg::Ints(&[1]), Arg::Ints(&[])])?, rolled);
    let wrong = one("roll", &[(&grid).into(), Arg::Ints(&[1, 2])]).unwrap_err().to_string();
    assert!(wrong.contains("one for each dimension"), "{wrong}");
    Ok(())
}

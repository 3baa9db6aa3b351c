//! Tensors: made, reduced, indexed and given other shapes, as they are guessed.

use crate::values;
use keyway::prelude::*;

#[test]
fn options_in_any_order() -> keyway::Result<()> {
    for made in [
        Tensor::zeros_with((2, 3), ("cpu", DType::F32))?,
        Tensor::zeros_with((2, 3), (DType::F32, "cpu"))?,
        Tensor::zeros_with((2, 3), (Device::CPU, DType::F32))?,
        Tensor::zeros_with((2, 3), (DType::F32, &Device::Cpu))?,
        Tensor::zeros_with([2, 3], (Device::default(), DType::F32, MemoryFormat::Contiguous))?,
        Tensor::zeros_with(vec![2usize, 3], TensorOptions { dtype: Some(DType::F32), ..Default::default() })?,
    ] {
        assert_eq!((made.shape(), made.dtype(), made.device()), (&[2, 3][..], DType::F32, Device::CPU));
    }
    assert_eq!(Tensor::randn_with((4, 5), DType::F64)?.dtype(), DType::F64);
    assert_eq!(Tensor::rand((4, 5))?.shape(), [4, 5]);
    Ok(())
}

#[test]
fn reductions_of_all_elements() -> keyway::Result<()> {
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 6.0]])?;
    assert_eq!((x.sum_all()?.item::<f32>()?, x.sum(..)?.item::<f32>()?), (12.0, 12.0));
    assert_eq!((x.mean_all()?.item::<f32>()?, x.mean(..)?.item::<f32>()?), (3.0, 3.0));
    assert_eq!((x.max_all()?.item::<f32>()?, x.min_all()?.item::<f32>()?), (6.0, 1.0));
    assert_eq!((x.prod_all()?.item::<f32>()?, x.argmax_all()?.item::<i64>()?), (36.0, 3));
    assert_eq!(values(x.var_all()), values(x.var(..)));
    assert_eq!(values(x.std_all()), values(x.std(..)));
    assert_eq!(values(x.norm_all()), values(x.norm(..)));
    assert_eq!((x.sum_keepdim(1)?.shape(), x.mean_keepdim(-1)?.shape()), (&[2, 1][..], &[2, 1][..]));
    assert!(x.gt(0.0)?.all(..)?.item::<bool>()? && x.gt(5.0)?.any(..)?.item::<bool>()?);
    Ok(())
}

#[test]
fn views() -> keyway::Result<()> {
    let x = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
    assert_eq!((x.t()?.shape(), x.transpose(0, 1)?.shape()), (&[3, 2][..], &[3, 2][..]));
    assert_eq!((x.view((3, 2))?.shape(), x.reshape((-1, 2))?.shape()), (&[3, 2][..], &[3, 2][..]));
    assert_eq!((x.unsqueeze(0)?.shape(), x.unsqueeze(0)?.squeeze(0)?.shape()), (&[1, 2, 3][..], &[2, 3][..]));
    assert_eq!((x.flatten_all()?.shape(), x.permute((1, 0))?.shape()), (&[6][..], &[3, 2][..]));
    assert_eq!(values(x.i((.., 1))), [1.0, 4.0]);
    assert_eq!(values(x.i(-1)), [3.0, 4.0, 5.0]);
    assert_eq!(values(x.narrow(1, 1, 2)), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(values(x.index_select(1, &Tensor::new([2i64, 0])?)), [2.0, 0.0, 5.0, 3.0]);
    assert_eq!(x.chunk(3, 1)?.len(), 3);
    assert_eq!(Tensor::cat(&[&x, &x], 0)?.dims(), [4, 3]);
    assert_eq!(Tensor::stack(&[x.clone(), x.clone()], 0)?.dims3()?, (2, 2, 3));
    assert_eq!(x.to_vec2::<f32>()?, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
    Ok(())
}

#[test]
fn counts_with_weights() -> keyway::Result<()> {
    let x = Tensor::new([0i64, 2, 2])?;
    assert_eq!(x.bincount()?.to_vec::<i64>()?, [1, 0, 2]);
    let weights = Tensor::new([0.5f32, 1.0, 2.0])?;
    assert_eq!(x.bincount_with(Some(&weights), 0)?.to_vec::<f32>()?, [0.5, 0.0, 3.0]);
    assert_eq!(x.bincount_with(&weights, 4)?.to_vec::<f32>()?, [0.5, 0.0, 3.0, 0.0]);
    assert_eq!(x.bincount_with(None, 4)?.to_vec::<i64>()?, [1, 0, 2, 0]);
    Ok(())
}

#[test]
fn images_by_a_factor() -> keyway::Result<()> {
    use keyway::nn::{InterpolateMode, InterpolateOptions};
    let x = Tensor::new([[[1.0f32, 3.0]]])?;
    assert_eq!(values(x.interpolate(&InterpolateOptions::scale(2.0))), [1.0, 1.0, 3.0, 3.0]);
    let linear = InterpolateOptions::scale(2.0).mode(InterpolateMode::Linear);
    assert_eq!(values(x.interpolate(&linear)), [1.0, 1.5, 2.5, 3.0]);
    Ok(())
}

#[test]
fn a_handle_of_another_shape() -> keyway::Result<()> {
    let mut x = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
    let (old, bytes) = (x.clone(), x.storage()?.bytes());
    x.resize_((2, 2))?;
    assert_eq!((values(Ok(x.clone())), old.shape()), (vec![0.0, 1.0, 2.0, 3.0], &[2, 3][..]));
    assert!(x.shares_storage(&old) && x.storage()?.bytes() == bytes);
    x.resize_((2, 3))?;
    assert_eq!(values(Ok(x.clone())), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    x.fill_(7.0)?;
    assert_eq!(values(Ok(old.clone())), [7.0; 6], "of one storage");
    // A view that begins later, and a storage that is too small.
    let mut row = Tensor::arange(0, 6)?.reshape((2, 3))?.i(1)?;
    row.resize_(5)?;
    assert_eq!(row.i(..3)?.to_vec::<i64>()?, [3, 4, 5]);
    assert_eq!(row.storage_offset(), 0);
    let mut columns = old.t()?;
    columns.resize_(6)?;
    assert_eq!((columns.shape(), columns.is_contiguous()), (&[6][..], true));
    let mut none = Tensor::empty(0)?;
    none.resize_((2, 2))?.fill_(1.0)?;
    assert_eq!(values(Ok(none)), [1.0; 4]);
    for wrong in [-1, i64::MAX] {
        assert!(x.resize_(wrong).is_err());
    }
    assert_eq!(x.shape(), [2, 3], "an error changes nothing");
    let mut learned = Tensor::ones(2)?.requires_grad_(true)?;
    let refused = learned.resize_(1).unwrap_err().to_string();
    assert!(refused.contains("require grad"), "{refused}");
    Ok(())
}

#[test]
fn a_handle_of_another_tensor() -> keyway::Result<()> {
    let source = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?.t()?;
    let mut x = Tensor::zeros(1)?;
    x.set_(&source)?;
    assert!(x.shares_storage(&source) && x.strides() == [1, 3]);
    let mut learned = Tensor::zeros(1)?.requires_grad_(true)?;
    learned.set_(&source)?;
    assert!(learned.requires_grad() && learned.is_leaf() && !source.requires_grad());
    learned.mul(2.0)?.sum_all()?.backward()?;
    assert_eq!(values(Ok(learned.grad().unwrap())), [2.0; 6]);
    assert!(x.set_(&Tensor::zeros_with(1, DType::F64)?).is_err());
    assert!(learned.mul(2.0)?.set_(&source).is_err(), "a result of the graph");
    Ok(())
}

//! Other libraries' names of tensors' methods.

use crate::values;
use keyway::nn::{Linear, Module};
use keyway::prelude::*;

fn x() -> Tensor {
    Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap()
}

#[test]
fn what_a_tensor_is_asked() -> keyway::Result<()> {
    let x = x();
    assert_eq!((x.numel(), x.nelement(), x.elem_count()), (6, 6, 6));
    assert_eq!((x.ndim(), x.rank(), x.element_size()), (2, 2, 4));
    assert_eq!((x.size(), x.shape(), x.dims()), (&[2, 3][..], &[2, 3][..], &[2, 3][..]));
    assert_eq!((x.stride(), x.strides()), (&[3, 1][..], &[3, 1][..]));
    assert!(x.is_floating_point() && !x.is_sparse() && !x.is_cuda());
    let w = Tensor::ones(2)?.set_requires_grad(true)?;
    assert!(w.requires_grad() && !w.data().requires_grad());
    assert!(Tensor::ones(2)?.require_grad()?.requires_grad());
    Ok(())
}

#[test]
fn one_element() -> keyway::Result<()> {
    let x = Tensor::new(2.5f32)?;
    assert_eq!((x.item::<f32>()?, x.to_scalar::<f32>()?), (2.5, 2.5));
    assert_eq!((x.to_vec0::<f32>()?, x.into_scalar::<f32>()?), (2.5, 2.5));
    assert!(Tensor::ones(2)?.to_scalar::<f32>().is_err());
    Ok(())
}

#[test]
fn conversions() -> keyway::Result<()> {
    let x = Tensor::new([0i64, 2])?;
    for (made, dtype) in [
        (x.float()?, DType::F32),
        (x.double()?, DType::F64),
        (x.half()?, DType::F16),
        (x.bfloat16()?, DType::BF16),
        (x.int()?, DType::I32),
        (x.long()?, DType::I64),
        (x.bool()?, DType::BOOL),
        (x.type_as(&Tensor::ones(1)?)?, DType::F32),
        (x.to(DType::U8)?, DType::U8),
    ] {
        assert_eq!(made.dtype(), dtype);
    }
    assert_eq!(x.bool()?.to_vec::<bool>()?, [false, true]);
    Ok(())
}

#[test]
fn candles_arithmetic() -> keyway::Result<()> {
    let (x, b) = (x(), Tensor::new([1.0f32, 2.0, 4.0])?);
    assert_eq!(values(x.powf(2.0)), [1.0, 4.0, 9.0, 16.0, 25.0, 36.0]);
    assert_eq!(values(x.sqr()), values(x.square()));
    assert_eq!(values(b.recip()), [1.0, 0.5, 0.25]);
    assert_eq!(values(b.affine(2.0, 1.0)), [3.0, 5.0, 9.0]);
    assert_eq!(values(x.gelu_erf()), values(x.gelu()));
    assert_eq!(values(x.log_sum_exp(1)), values(x.logsumexp(1)));
    assert_eq!(values(x.broadcast_add(&b)), [2.0, 4.0, 7.0, 5.0, 7.0, 10.0]);
    assert_eq!(values(x.broadcast_sub(&b)), [0.0, 0.0, -1.0, 3.0, 3.0, 2.0]);
    assert_eq!(values(x.broadcast_mul(&b)), [1.0, 4.0, 12.0, 4.0, 10.0, 24.0]);
    assert_eq!(values(x.broadcast_div(&b)), [1.0, 1.0, 0.75, 4.0, 2.5, 1.5]);
    assert_eq!(values(x.broadcast_pow(&b)), values(x.pow(&b)));
    assert_eq!(values(x.broadcast_maximum(&b)), [1.0, 2.0, 4.0, 4.0, 5.0, 6.0]);
    assert_eq!(values(x.broadcast_minimum(&b)), [1.0, 2.0, 3.0, 1.0, 2.0, 4.0]);
    assert_eq!(values(x.broadcast_as((1, 2, 3))), values(Ok(x.clone())));
    assert_eq!(values(x.broadcast_matmul(&x.t()?)), values(x.matmul(&x.t()?)));
    for (made, expected) in [
        (x.broadcast_eq(&b)?, [true, true, false]),
        (x.broadcast_ne(&b)?, [false, false, true]),
        (x.broadcast_lt(&b)?, [false, false, true]),
        (x.broadcast_le(&b)?, [true, true, true]),
        (x.broadcast_gt(&b)?, [false, false, false]),
        (x.broadcast_ge(&b)?, [true, true, false]),
    ] {
        assert_eq!(made.i(0)?.to_vec::<bool>()?, expected);
    }
    assert_eq!(values(x.get(1)), [4.0, 5.0, 6.0]);
    assert_eq!(values(x.get_on_dim(1, 2)), [3.0, 6.0]);
    let layer = Linear::new(3, 2)?;
    assert_eq!(values(x.apply(&layer)), values(layer.forward(&x)));
    Ok(())
}

#[test]
fn candles_dimensions() -> keyway::Result<()> {
    let x = x();
    assert_eq!(values(x.sum(D::Minus1)), [6.0, 15.0]);
    assert_eq!(values(x.softmax(D::Minus1)), values(x.softmax(-1)));
    assert_eq!((x.dim(D::Minus1)?, x.dim(D::Minus2)?), (3, 2));
    assert_eq!(x.transpose(D::Minus1, D::Minus2)?.shape(), [3, 2]);
    assert_eq!(x.unsqueeze(D::Minus1)?.squeeze(D::Minus1)?.shape(), [2, 3]);
    assert_eq!(x.narrow(D::Minus1, 0, 2)?.shape(), [2, 2]);
    Ok(())
}

#[test]
fn burns_arithmetic() -> keyway::Result<()> {
    let x = x();
    assert_eq!(values(x.add_scalar(1)), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(values(x.sub_scalar(1.0)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(values(x.mul_scalar(2.0)), values(x.mul(2)));
    assert_eq!(values(x.div_scalar(2.0)), values(x.div(2)));
    assert_eq!(values(x.powf_scalar(2.0)), values(x.powi_scalar(2)));
    assert_eq!((x.sum_dim(1)?.shape(), x.mean_dim(0)?.shape()), (&[2, 1][..], &[1, 3][..]));
    assert_eq!((x.swap_dims(0, 1)?.shape(), x.unsqueeze_dim(0)?.shape()), (&[3, 2][..], &[1, 2, 3][..]));
    let mask = x.greater(&Tensor::new(4.0f32)?)?;
    assert_eq!(values(x.mask_fill(&mask, 0.0)), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    let four = Tensor::new(4.0f32)?;
    for (made, count) in [
        (x.greater_equal(&four)?, 3),
        (x.less(&four)?, 3),
        (x.less_equal(&four)?, 4),
        (x.lower(&four)?, 3),
        (x.lower_equal(&four)?, 4),
        (x.not_equal(&four)?, 5),
    ] {
        assert_eq!(made.to_vec::<bool>()?.into_iter().filter(|&is| is).count(), count);
    }
    assert_eq!(Tensor::from_floats([1.0f32, 2.0])?.shape(), [2]);
    Ok(())
}

#[test]
fn constructors() -> keyway::Result<()> {
    let x = x();
    assert_eq!(Tensor::concat(&[&x, &x], 0)?.shape(), [4, 3]);
    assert_eq!(Tensor::tensor([1i64, 2])?.to_vec::<i64>()?, [1, 2]);
    assert_eq!(Tensor::arange_step(0, 6, 2)?.to_vec::<i64>()?, [0, 2, 4]);
    // The backend of sparse tensors may or may not be loaded in this test.
    let sparse = Tensor::sparse_coo_tensor(&Tensor::new([[0i64, 2]])?, &Tensor::new([3.0f32, 4.0])?, 3);
    assert!(sparse.map_or_else(|error| error.to_string().contains("keyway-sparse"), |made| made.is_sparse()));
    let (rows, columns) = (Tensor::new([0i64, 1])?, Tensor::new([1i64])?);
    let sparse = Tensor::sparse_csr_tensor(&rows, &columns, &Tensor::new([3.0f32])?, (1, 2));
    assert!(sparse.map_or_else(|error| error.to_string().contains("keyway-sparse"), |made| made.is_sparse()));
    Ok(())
}

#[test]
fn memory_formats() -> keyway::Result<()> {
    let x = Tensor::ones((1, 2, 3, 4))?;
    let last = x.contiguous_with(MemoryFormat::ChannelsLast)?;
    assert!(last.is_contiguous_with(MemoryFormat::ChannelsLast) && !last.is_contiguous());
    assert!(x.to(MemoryFormat::ChannelsLast)?.contiguous()?.is_contiguous());
    Ok(())
}

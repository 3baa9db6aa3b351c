//! candle-core: making tensors, shapes, arithmetic.

use crate::table::section;
use keyway::nn::{AvgPoolOptions, ConvOptions, InterpolateMode, InterpolateOptions, MaxPoolOptions};
use keyway::prelude::*;

section! {
    create "Making tensors"
    "let dev = Device::Cpu; let x = Tensor::arange(0f32, 6f32, &dev)?.reshape((2, 3))?" {
        let x = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
    }
    "Tensor::new(&[[1f32, 2.], [3., 4.]], &dev)?" => { Tensor::new(&[[1.0f32, 2.0], [3.0, 4.0]])? } "no device: the default one, or `new_with`";
    "Tensor::new(7u32, &dev)?" => { Tensor::new(7u32)? };
    "Tensor::from_vec(vec![1f32; 6], (2, 3), &dev)?" => { Tensor::from_vec(vec![1.0f32; 6], (2, 3))? };
    "Tensor::from_slice(&[1f32, 2.], 2, &dev)?" => { Tensor::from_slice(&[1.0f32, 2.0], 2)? };
    "Tensor::from_iter([1u32, 2], &dev)?" => { Tensor::new(Vec::from_iter([1u32, 2]))? };
    "Tensor::zeros((2, 3), DType::F32, &dev)?" => { Tensor::zeros((2, 3))? };
    "Tensor::zeros((2, 3), DType::F64, &dev)?" => { Tensor::zeros_with((2, 3), (DType::F64, "cpu"))? } "dtype, device and memory format in any order";
    "Tensor::ones((2, 3), DType::F32, &dev)?" => { Tensor::ones((2, 3))? };
    "Tensor::full(7f32, (2, 3), &dev)?" => { Tensor::full((2, 3), 7.0)? } "the shape comes first";
    "Tensor::eye(3, DType::F32, &dev)?" => { Tensor::eye(3)? };
    "Tensor::arange(0u32, 5, &dev)?" => { Tensor::arange(0, 5)? } "i64";
    "Tensor::arange_step(0f32, 1., 0.25, &dev)?" => { Tensor::arange_with(0.0, 1.0, 0.25, ())? };
    "Tensor::rand(0f32, 1., (2, 3), &dev)?" => { Tensor::rand((2, 3))? };
    "Tensor::rand(-1f32, 1., (2, 3), &dev)?" => { Tensor::empty((2, 3))?.uniform_(-1.0, 1.0)? };
    "Tensor::randn(0f32, 1., (2, 3), &dev)?" => { Tensor::randn((2, 3))? };
    "Tensor::randn(5f32, 2., (2, 3), &dev)?" => { Tensor::empty((2, 3))?.normal_(5.0, 2.0)? };
    "dev.set_seed(0)?" => { keyway::manual_seed(0) } "also on the CPU";
    "x.zeros_like()?" => { x.zeros_like()? };
    "x.ones_like()?" => { x.ones_like()? };
    "x.rand_like(0., 1.)?" => { x.rand_like()? };
    "x.randn_like(0., 1.)?" => { x.randn_like()? };
    "Tensor::tril2(3, DType::F32, &dev)?" => { Tensor::ones((3, 3))?.tril()? };
    "Tensor::triu2(3, DType::F32, &dev)?" => { Tensor::ones((3, 3))?.triu()? };
    "Tensor::meshgrid(&[x.get(0)?, x.get(1)?], false)?" => { Tensor::meshgrid(&[&x.i(0)?, &x.i(1)?])? } "`meshgrid_with(.., \"xy\")`";
    "Tensor::cat(&[&x, &x], 1)?" => { Tensor::cat(&[&x, &x], 1)? };
    "Tensor::stack(&[&x, &x], 0)?" => { Tensor::stack(&[&x, &x], 0)? };
    "x.copy()?" => { x.copy()? };
    "x.clone()" => { x.clone() };
}

section! {
    kinds "dtype, device, values"
    "let dev = Device::Cpu; let x = Tensor::arange(0f32, 6f32, &dev)?.reshape((2, 3))?" {
        let x = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
    }
    "Device::Cpu" => { Device::CPU };
    "Device::new_cuda(0)?" => { Device::cuda(0) } "an error where there is none";
    "Device::cuda_if_available(0)?" => { Device::cuda_if_available(0) } "no `Result`";
    "x.device().is_cpu()" => { x.device().is_cpu() };
    "x.device().is_cuda()" => { x.device().is_cuda() };
    "x.device().same_device(&dev)" => { x.device() == Device::CPU };
    "dev.synchronize()?" => { keyway::device::synchronize(Device::CPU)? };
    "x.to_device(&dev)?" => { x.to_device(Device::CPU)? } "or `x.to(\"cuda:0\")?`";
    "x.dtype()" => { x.dtype() };
    "x.to_dtype(DType::F64)?" => { x.to_dtype(DType::F64)? };
    "DType::F32.size_in_bytes()" => { DType::F32.size() };
    "DType::F32.is_float()" => { DType::F32.is_float() };
    "x.get(0)?.get(0)?.to_scalar::<f32>()?" => { x.i((0, 0))?.item::<f32>()? };
    "x.get(0)?.get(0)?.to_vec0::<f32>()?" => { x.i((0, 0))?.item::<f32>()? };
    "x.get(0)?.to_vec1::<f32>()?" => { x.i(0)?.to_vec1::<f32>()? };
    "x.to_vec2::<f32>()?" => { x.to_vec2::<f32>()? };
    "x.flatten_all()?.to_vec1::<f32>()?" => { x.to_vec::<f32>()? };
    "x.is_contiguous()" => { x.is_contiguous() };
    "x.contiguous()?" => { x.contiguous()? };
    "x.layout().start_offset()" => { x.storage_offset() } "`layout` is strided or sparse";
    "x.storage_and_layout()" => { x.storage()? } "who gave the memory, where, how large; `as_slice` and `accessor` read it";
    "println!(\"{x}\")" => { println!("{x}") };
}

section! {
    shape "Shapes, views, indices"
    "let dev = Device::Cpu; let x = Tensor::arange(0f32, 6f32, &dev)?.reshape((2, 3))?; let ids = Tensor::new(&[1u32, 0], &dev)?; let to = Tensor::zeros((2, 3), DType::U32, &dev)?; let mask = x.gt(2f32)?" {
        let x = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
        let ids = Tensor::new([1i64, 0])?;
        let to = Tensor::zeros_with((2, 3), DType::I64)?;
        let mask = x.gt(2.0)?;
    }
    "x.shape()" => { x.shape() } "a slice";
    "x.dims()" => { x.dims() };
    "x.dims2()?" => { x.dims2()? };
    "x.dim(D::Minus1)?" => { x.dim(-1)? } "dimensions are signed numbers";
    "x.rank()" => { x.rank() };
    "x.elem_count()" => { x.elem_count() };
    "x.stride()" => { x.strides() };
    "x.reshape((3, ()))?" => { x.reshape((3, -1))? };
    "x.flatten_all()?" => { x.flatten_all()? };
    "x.flatten_from(1)?" => { x.flatten_from(1)? };
    "x.flatten_to(1)?" => { x.flatten_to(1)? };
    "x.flatten(0, 1)?" => { x.flatten(0, 1)? };
    "x.squeeze(0)?" => { x.squeeze(0)? };
    "x.unsqueeze(D::Minus1)?" => { x.unsqueeze(-1)? };
    "x.t()?" => { x.t()? } "2 dimensions; `transpose(-2, -1)` for more";
    "x.transpose(0, 1)?" => { x.transpose(0, 1)? };
    "x.permute((1, 0))?" => { x.permute((1, 0))? };
    "x.expand((4, 2, 3))?" => { x.expand((4, 2, 3))? };
    "x.broadcast_as((4, 2, 3))?" => { x.expand((4, 2, 3))? };
    "x.broadcast_left(4)?" => { x.expand((4, -1, -1))? };
    "x.repeat((2, 1))?" => { x.repeat((2, 1))? };
    "x.roll(1, 0)?" => { x.roll(1, 0)? };
    "x.flip(&[0])?" => { x.flip(0)? };
    "x.pad_with_zeros(D::Minus1, 1, 2)?" => { x.pad((1, 2))? } "widths from the last dimension on";
    "x.chunk(3, 1)?" => { x.chunk(3, 1)? };
    "x.narrow(1, 0, 2)?" => { x.narrow(1, 0, 2)? };
    "x.get(0)?" => { x.select(0, 0)? };
    "x.get_on_dim(1, 0)?" => { x.select(1, 0)? };
    "x.i(0)?" => { x.i(0)? } "negative indices count from the end";
    "x.i((.., 1..))?" => { x.i((.., 1..))? };
    "x.i((0, 1))?" => { x.i((0, 1))? };
    "x.i((.., &ids))?" => { x.i((.., &ids))? };
    "x.index_select(&ids, 1)?" => { x.index_select(1, &ids)? } "the dimension comes first; indices are integers of any dtype";
    "x.gather(&to, 0)?" => { x.gather(0, &to)? };
    "x.scatter(&to, &x, 0)?" => { x.scatter(0, &to, &x)? };
    "x.scatter_add(&to, &x, 0)?" => { x.scatter_add(0, &to, &x)? };
    "x.index_add(&ids, &x, 0)?" => { x.index_add(0, &ids, &x)? };
    "x.embedding(&ids)?" => { x.embedding(&ids)? };
    "mask.where_cond(&x, &x)?" => { mask.where_cond(&x, &x)? } "numbers too";
    "x.slice_assign(&[0..1, 0..3], &x.narrow(0, 1, 1)?)?" => { let y = x.copy()?; y.i((0..1, 0..3))?.copy_(&x.narrow(0, 1, 1)?)?; y };
    "x.sort_last_dim(true)?" => { x.sort(-1)? };
    "x.arg_sort_last_dim(true)?" => { x.argsort(-1)? };
}

section! {
    math "Arithmetic and reductions"
    "let dev = Device::Cpu; let x = Tensor::arange(0f32, 6f32, &dev)?.reshape((2, 3))?; let b = Tensor::new(&[1f32, 2., 3.], &dev)?; let y = (&x + 1.)?" {
        let x = Tensor::arange(0.0, 6.0)?.reshape((2, 3))?;
        let b = Tensor::new([1.0f32, 2.0, 3.0])?;
        let y = (&x + 1.0)?;
    }
    "(&x + &y)?" => { (&x + &y)? };
    "(&x * 2.)?" => { (&x * 2.0)? };
    "(2. * &x)?" => { (2.0 * &x)? };
    "(&x * (&x + &y))?" => { (&x * (&x + &y))? };
    "x.neg()?" => { (-&x)? } "or `x.neg()?`";
    "x.add(&y)?" => { x.add(&y)? };
    "x.broadcast_add(&b)?" => { x.add(&b)? } "every op broadcasts";
    "x.broadcast_sub(&b)?" => { x.sub(&b)? };
    "x.broadcast_mul(&b)?" => { x.mul(&b)? };
    "x.broadcast_div(&b)?" => { x.div(&b)? };
    "x.broadcast_maximum(&b)?" => { x.maximum(&b)? };
    "x.broadcast_eq(&b)?" => { x.eq(&b)? };
    "x.affine(2., 1.)?" => { (&x * 2.0)?.add(1.0)? };
    "x.powf(2.)?" => { x.pow(2.0)? };
    "y.pow(&y)?" => { y.pow(&y)? };
    "x.sqr()?" => { x.square()? };
    "x.sqrt()?" => { x.sqrt()? };
    "y.recip()?" => { y.reciprocal()? };
    "y.log()?" => { y.log()? };
    "x.exp()?" => { x.exp()? };
    "x.tanh()?" => { x.tanh()? };
    "x.erf()?" => { x.erf()? };
    "x.abs()?" => { x.abs()? };
    "x.sign()?" => { x.sign()? };
    "x.round()?" => { x.round()? } "halves go to the even number";
    "x.round_to(2)?" => { ((&x * 100.0)?.round()? / 100.0)? };
    "x.clamp(0f32, 1f32)?" => { x.clamp(0.0, 1.0)? };
    "x.maximum(&y)?" => { x.maximum(&y)? };
    "x.minimum(2f32)?" => { x.minimum(2.0)? };
    "x.eq(&y)?" => { x.eq(&y)? } "bool, not u8";
    "x.lt(3f32)?" => { x.lt(3.0)? };
    "x.relu()?" => { x.relu()? };
    "x.silu()?" => { x.silu()? };
    "x.gelu_erf()?" => { x.gelu()? };
    "x.gelu()?" => { x.gelu_with(keyway::nn::Approximate::Tanh)? } "candle's `gelu` is the approximation";
    "x.elu(1.)?" => { x.elu()? } "`elu_with(alpha)`";
    "x.sum(1)?" => { x.sum(1)? };
    "x.sum((0, 1))?" => { x.sum((0, 1))? };
    "x.sum_keepdim(1)?" => { x.sum_keepdim(1)? };
    "x.sum_all()?" => { x.sum_all()? };
    "x.mean(1)?" => { x.mean(1)? };
    "x.mean_keepdim(1)?" => { x.mean_keepdim(1)? };
    "x.mean_all()?" => { x.mean_all()? };
    "x.max(1)?" => { x.amax(1)? } "`max(1)` here gives the indices too";
    "x.max_keepdim(1)?" => { x.amax_keepdim(1)? };
    "x.min(1)?" => { x.amin(1)? };
    "x.max_all()?" => { x.max_all()? };
    "x.argmax(1)?" => { x.argmax(1)? } "i64";
    "x.argmin_keepdim(1)?" => { x.argmin_keepdim(1)? };
    "x.var(1)?" => { x.var(1)? };
    "x.log_sum_exp(1)?" => { x.logsumexp(1)? };
    "x.norm()?" => { x.norm_all()? };
    "x.cumsum(1)?" => { x.cumsum(1)? };
    "x.matmul(&x.t()?)?" => { x.matmul(&x.t()?)? };
    "x.broadcast_matmul(&x.t()?)?" => { x.matmul(&x.t()?)? };
    "x.mv(&b)?" => { x.mv(&b)? };
    "b.dot(&b)?" => { b.dot(&b)? };
}

section! {
    images "Images"
    "let dev = Device::Cpu; let x = Tensor::ones((1, 2, 4, 4), DType::F32, &dev)?; let w = Tensor::ones((2, 2, 3, 3), DType::F32, &dev)?" {
        let x = Tensor::ones((1, 2, 4, 4))?;
        let w = Tensor::ones((2, 2, 3, 3))?;
    }
    "x.conv2d(&w, 1, 1, 1, 1)?" => { x.conv2d_with(&w, None, ConvOptions::default().padding(1))? } "padding, stride, dilation, groups by name; the bias too";
    "x.conv_transpose2d(&w, 0, 0, 1, 1)?" => { x.conv_transpose2d(&w, None)? };
    "x.avg_pool2d(2)?" => { x.avg_pool2d(2)? };
    "x.avg_pool2d_with_stride(2, 1)?" => { x.avg_pool2d(AvgPoolOptions::new(2).stride(1))? };
    "x.max_pool2d(2)?" => { x.max_pool2d(2)? };
    "x.max_pool2d_with_stride(2, 1)?" => { x.max_pool2d(MaxPoolOptions::new(2).stride(1))? };
    "x.upsample_nearest2d(8, 8)?" => { x.interpolate(&InterpolateOptions::size(8))? };
    "x.upsample_bilinear2d(8, 8, false)?" => { x.interpolate(&InterpolateOptions::size(8).mode(InterpolateMode::Bilinear))? };
}

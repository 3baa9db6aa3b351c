//! Devices by the names that users type.

use keyway::nn::Linear;
use keyway::prelude::*;

#[test]
fn the_host() -> keyway::Result<()> {
    assert_eq!(
        (Device::Cpu, Device::default(), Device::parse("cpu")?),
        (Device::CPU, Device::CPU, Device::CPU)
    );
    assert!(Device::CPU.is_cpu() && !Device::CPU.is_cuda());
    let x = Tensor::ones(3)?;
    assert!(x.cpu()?.ptr_eq(&x) && x.to("cpu")?.ptr_eq(&x) && x.to_device(Device::Cpu)?.ptr_eq(&x));
    Ok(())
}

#[test]
fn a_gpu_where_there_is_one() -> keyway::Result<()> {
    let there = keyway::device::is_available("cuda");
    assert_eq!(there, keyway::device::count("cuda") > 0);
    assert_eq!(Device::cuda(0).is_ok(), there);
    assert_eq!(Device::new_cuda(0).is_ok(), there);
    assert!(Device::cuda(u16::MAX).is_err(), "no machine has as many");
    let device = Device::cuda_if_available(0);
    assert_eq!((device.is_cuda(), device.is_cpu()), (there, !there));
    let x = Tensor::ones_with(3, device)?;
    assert_eq!(x.is_cuda(), there);
    assert_eq!(x.cpu()?.to_vec::<f32>()?, [1.0; 3]);
    assert_eq!(x.cuda().is_ok(), there);
    if !there {
        let message = Device::cuda(0).unwrap_err().to_string();
        assert!(message.contains("cuda"), "{message}");
    }
    Ok(())
}

#[test]
fn models() -> keyway::Result<()> {
    let model = Linear::new(3, 2)?;
    model.to("cpu")?;
    model.cpu()?;
    model.to(DType::F64)?;
    assert_eq!(model.weight().dtype(), DType::F64);
    model.float()?;
    assert_eq!((model.weight().dtype(), model.weight().requires_grad()), (DType::F32, true));
    model.half()?;
    model.double()?;
    model.to((DType::F32, Device::CPU))?;
    assert_eq!(model.bias().unwrap().dtype(), DType::F32);
    assert_eq!(model.cuda().is_ok(), keyway::device::is_available("cuda"));
    assert!(model.to("nowhere:1").is_err());
    let images = nn::Conv2d::new(3, 8, 3)?;
    images.to(MemoryFormat::ChannelsLast)?;
    assert!(
        images.weight().is_contiguous_in(MemoryFormat::ChannelsLast) && images.bias().unwrap().rank() == 1
    );
    let boxed: Box<dyn Module> = Box::new(nn::BatchNorm2d::new(3)?);
    boxed.to(DType::F64)?;
    let buffers = boxed.named_buffers();
    assert_eq!(
        (buffers[0].1.dtype(), buffers[2].1.dtype()),
        (DType::F64, DType::I64),
        "counts stay integers"
    );
    Ok(())
}

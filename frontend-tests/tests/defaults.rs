//! The dtype and device of new tensors, which belong to the whole process: one test in a program of its own.

use keyway::prelude::*;

#[test]
fn of_new_tensors() {
    assert_eq!(
        (Tensor::zeros(2).unwrap().dtype(), Tensor::zeros(2).unwrap().device()),
        (DType::F32, Device::CPU)
    );
    keyway::set_default_dtype(DType::F64).unwrap();
    for made in [Tensor::zeros(2), Tensor::rand(2), Tensor::full(2, 1.5), Tensor::linspace(0.0, 1.0, 2)] {
        assert_eq!(made.unwrap().dtype(), DType::F64);
    }
    // Integers are unchanged, and so are explicit dtypes.
    for made in [Tensor::full(2, 1), Tensor::arange(0, 2), Tensor::randint(0, 2, 2), Tensor::randperm(2)] {
        assert_eq!(made.unwrap().dtype(), DType::I64);
    }
    assert_eq!(Tensor::arange(0, 2.5).unwrap().dtype(), DType::F64);
    assert_eq!(Tensor::ones_with(2, DType::F16).unwrap().dtype(), DType::F16);
    assert_eq!(Tensor::new([1.0f32]).unwrap().dtype(), DType::F32);
    for wrong in [DType::I32, DType::BOOL] {
        let text = keyway::set_default_dtype(wrong).unwrap_err().to_string();
        assert!(text.contains("a floating-point dtype") && text.contains(wrong.name()), "{text}");
    }
    assert_eq!(keyway::default_dtype(), DType::F64);

    for wrong in ["nowhere:0", "gpu:x", ""] {
        assert!(keyway::set_default_device(wrong).is_err(), "{wrong}");
    }
    let text = keyway::set_default_device("gpu").unwrap_err().to_string();
    assert!(text.contains("`gpu`") && text.contains("`cpu`"), "{text}");
    keyway::set_default_device("CPU").unwrap();
    assert_eq!(keyway::default_device(), Device::CPU);
    let text = keyway::set_default_device(DType::F32).unwrap_err().to_string();
    assert!(text.contains("a device"), "{text}");
    keyway::set_default_device("cpu").unwrap();
    assert_eq!(keyway::default_device(), Device::CPU);
}

/// The format is that of factories alone: files and ops' scratch memory are unchanged.
#[test]
fn the_default_memory_format_is_that_of_factories() -> keyway::Result<()> {
    use keyway::MemoryFormat::ChannelsLast;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let x = Tensor::from_vec((0..48).map(|i| i as f32).collect(), (2, 2, 3, 4))?;
    keyway::io::npy::save(&path, &x)?;
    let _guard = keyway::memory_format_guard(ChannelsLast)?;
    for made in [Tensor::ones((2, 2, 3, 4))?, Tensor::empty((2, 2, 3, 4))?, Tensor::randn((2, 2, 3, 4))?] {
        assert!(made.is_contiguous_in(ChannelsLast) && !made.is_contiguous(), "{:?}", made.strides());
    }
    assert_eq!(keyway::io::npy::load(&path)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    assert_eq!(x.matmul(&x.transpose(2, 3)?)?.shape(), [2, 2, 3, 3]);
    assert!(Tensor::ones((2, 2, 3))?.is_contiguous());
    let elsewhere =
        std::thread::spawn(|| Tensor::ones((2, 2, 3, 4)).map(|t| t.is_contiguous())).join().unwrap();
    assert!(elsewhere?);
    Ok(())
}

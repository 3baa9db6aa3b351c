//! The backend for images beside the CPU's: who serves what, and that results are those of the strided kernels.

mod rehearsal_support;

use keyway::dispatcher::ledger::{Served, last_served};
use keyway::nn::{
    BatchNorm2d, Conv2d, ConvOptions, ConvTransposeOptions, MaxPool2d, Module, Relu, Sequential,
};
use keyway::rng::{self, Generator};
use keyway::{DType, Device, MemoryFormat, Result, Tensor};
use keyway_dispatcher::Layout;
use keyway_dispatcher::explain::explain;
use rehearsal_support::load;

const IMAGES: &str = "keyway-channels-last";

fn random(sizes: &[usize], seed: u64) -> Result<Tensor> {
    let count = sizes.iter().product::<usize>();
    // Deterministic pseudo-random values.
    let number =
        |i: usize| ((i as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f32 / (1 << 24) as f32;
    Tensor::from_vec((0..count).map(|i| number(i) - 0.5).collect(), sizes)
}

fn last_server() -> &'static str {
    match last_served() {
        Served::Kernel(kernel) => kernel.plugin.name,
        _ => "nobody",
    }
}

/// The largest difference of two tensors' elements.
fn difference(a: &Tensor, b: &Tensor) -> Result<f64> {
    let pairs = a.to_vec_f64()?.into_iter().zip(b.to_vec_f64()?);
    Ok(pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
}

#[test]
fn convolutions_of_images_go_to_their_backend_and_others_do_not() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let (x, w) = (random(&[2, 20, 9, 31], 1)?, random(&[35, 20, 3, 3], 2)?);
    let options = || ConvOptions::default().padding(1).stride([1, 2]);
    let plain = x.conv2d_with(&w, None, options())?;
    assert_ne!(last_server(), IMAGES);
    let y = x.to(MemoryFormat::ChannelsLast)?.conv2d_with(&w, None, options())?;
    assert_eq!(last_server(), IMAGES);
    assert!(y.is_contiguous_in(MemoryFormat::ChannelsLast));
    assert!(difference(&plain, &y)? < 1e-5);
    // Memory that is not dense is the strided kernels'.
    let wide = x.to(MemoryFormat::ChannelsLast)?.narrow(1, 3, 16)?;
    let part = wide.conv2d_with(&w.narrow(1, 3, 16)?, None, options())?;
    assert_ne!(last_server(), IMAGES);
    let expected = x.narrow(1, 3, 16)?.conv2d_with(&w.narrow(1, 3, 16)?, None, options())?;
    assert!(difference(&part, &expected)? < 1e-5);
    Ok(())
}

#[test]
fn a_network_gives_the_same_gradients_in_both_formats() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let build = || -> Result<Sequential> {
        let options = || ConvOptions::default().padding(1);
        Ok(Sequential::new()
            // The norm takes away what a bias would add: its gradient is what rounding leaves.
            .push(Conv2d::without_bias(3, 18, 3, options())?)
            .push(BatchNorm2d::new(18)?)
            .push(Relu)
            .push(MaxPool2d::new(2))
            .push(Conv2d::new_with(18, 18, 3, options().groups(18))?)
            .push(Conv2d::new_with(18, 33, 1, ConvOptions::default().stride(2))?))
    };
    let x = random(&[4, 3, 16, 18], 3)?;
    let run = |format: MemoryFormat| -> Result<Vec<Tensor>> {
        let model = rng::with_generator(&Generator::new(5), build)?;
        model.to_memory_format(format)?;
        let x = x.to(format)?.detach().requires_grad_(true)?;
        let y = model.forward(&x)?;
        assert!(y.is_contiguous_in(format), "{:?}", y.strides());
        y.square()?.sum_all()?.backward()?;
        let grads = model.parameters().into_iter().map(|p| p.grad().unwrap());
        Ok([y, x.grad().unwrap()].into_iter().chain(grads).collect())
    };
    let (plain, last) = (run(MemoryFormat::Contiguous)?, run(MemoryFormat::ChannelsLast)?);
    assert!(last[1].is_contiguous_in(MemoryFormat::ChannelsLast), "the gradient of the input has its format");
    for (nth, (a, b)) in plain.iter().zip(&last).enumerate() {
        let scale = a.to_vec_f64()?.into_iter().fold(1.0, |scale: f64, x| scale.max(x.abs()));
        assert!(difference(a, b)? < 1e-4 * scale, "result {nth}");
    }
    Ok(())
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let x = random(&[3, 33, 40, 41], 7)?.to(MemoryFormat::ChannelsLast)?.requires_grad_(true)?;
    for groups in [1, 33] {
        let w = random(&[33, 33 / groups, 3, 3], 8)?.requires_grad_(true)?;
        let run = |threads: usize| -> Result<Vec<Vec<u8>>> {
            keyway::dispatcher::parallel::set_num_threads(threads);
            x.zero_grad();
            w.zero_grad();
            let y = x.conv2d_with(&w, None, ConvOptions::default().padding(1).groups(groups))?;
            y.square()?.sum_all()?.backward()?;
            [y, x.grad().unwrap(), w.grad().unwrap()].iter().map(Tensor::to_bytes).collect()
        };
        let one = run(1)?;
        for threads in [2, 3] {
            assert!(run(threads)? == one, "{threads} threads, {groups} groups");
        }
    }
    keyway::dispatcher::parallel::set_num_threads(0);
    assert_eq!(x.device(), Device::CPU);
    Ok(())
}

/// A kernel for each channel, and both gradients, have kernels for images: none is left to the strided ones.
#[test]
fn kernels_for_each_channel_go_to_their_backend_with_their_gradients() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 4e-3), (DType::BF16, 3e-2)] {
        for (channels, stride) in [(48, [1, 1]), (35, [2, 1]), (5, [1, 3])] {
            let x = random(&[3, channels, 11, 14], 1)?.to_dtype(dtype)?;
            let w = random(&[channels, 1, 3, 3], 2)?.to_dtype(dtype)?;
            let run = |format: MemoryFormat| -> Result<[Tensor; 3]> {
                let x = x.to(format)?.detach().requires_grad_(true)?;
                let w = w.detach().requires_grad_(true)?;
                let options = ConvOptions::default().padding(1).stride(stride).groups(channels);
                let y = x.conv2d_with(&w, None, options)?;
                y.square()?.sum_all()?.backward()?;
                Ok([y, x.grad().unwrap(), w.grad().unwrap()])
            };
            let plain = run(MemoryFormat::Contiguous)?;
            let profile = keyway::profiler::profile();
            let last = run(MemoryFormat::ChannelsLast)?;
            let report = profile.report();
            for op in ["conv", "conv_input_grad", "conv_weight_grad"] {
                let servers: Vec<&str> =
                    report.rows.iter().filter(|row| row.op == op).map(|row| &*row.served_by).collect();
                assert_eq!(servers, [IMAGES], "{op} of {dtype}, {channels} channels: {report}");
            }
            for (nth, (a, b)) in plain.iter().zip(&last).enumerate() {
                let scale = a.to_vec_f64()?.into_iter().fold(1.0, |scale: f64, x| scale.max(x.abs()));
                let apart = difference(a, b)? / scale;
                assert!(apart < tolerance, "{dtype}, {channels} channels, result {nth}: {apart}");
            }
        }
    }
    Ok(())
}

/// Some channels of images one pixel wide: the distance to the next pixel says nothing about how many there are.
#[test]
fn depthwise_convolutions_of_a_part_of_the_channels_of_narrow_images() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    for (height, kernel, format) in [
        (1, 1, MemoryFormat::Contiguous),
        (1, 3, MemoryFormat::Contiguous),
        (8, 3, MemoryFormat::ChannelsLast),
    ] {
        let part = |seed| random(&[4, 64, height, 1], seed)?.to(format)?.narrow(1, 16, 32);
        let (x, grad, w) = (part(1)?, part(2)?, random(&[32, 1, kernel, kernel], 3)?);
        let run = |dense: bool| -> Result<[Tensor; 3]> {
            let of = |t: &Tensor| if dense { t.contiguous() } else { Ok(t.detach()) };
            let (x, w) = (of(&x)?.requires_grad_(true)?, w.detach().requires_grad_(true)?);
            let y = x.conv2d_with(&w, None, ConvOptions::default().padding(kernel / 2).groups(32))?;
            y.backward_with(&of(&grad)?)?;
            Ok([y, x.grad().unwrap(), w.grad().unwrap()])
        };
        for (a, b) in run(true)?.iter().zip(&run(false)?) {
            assert!(difference(a, b)? < 1e-5, "{height} rows, a kernel of {kernel}");
        }
    }
    Ok(())
}

/// A transposed convolution is the op of a gradient, which has a kernel for images; `explain` says so.
#[test]
fn transposed_convolutions_of_images_go_to_their_backend() -> Result<()> {
    let _guard = load(&["keyway_backend_channels_last"]);
    let op = keyway_dispatcher::registry::find_op("conv_input_grad").unwrap();
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 2e-2), (DType::BF16, 2e-1)] {
        let why = explain(op, Device::CPU, Layout::CHANNELS_LAST, dtype);
        let first = why.candidates.first().unwrap();
        assert!(first.chosen && first.what.contains(IMAGES), "{why}");
        for groups in [1, 2] {
            let x = random(&[2, 24, 7, 9], 1)?.to_dtype(dtype)?;
            let (w, bias) =
                (random(&[24, 18, 4, 4], 2)?.to_dtype(dtype)?, random(&[18 * groups], 4)?.to_dtype(dtype)?);
            let options =
                || ConvTransposeOptions::default().stride(2).padding(1).output_padding(1).groups(groups);
            let plain = x.conv_transpose2d_with(&w, Some(&bias), options())?;
            let profile = keyway::profiler::profile();
            let y = x.to(MemoryFormat::ChannelsLast)?.conv_transpose2d_with(&w, Some(&bias), options())?;
            let report = profile.report();
            let of = |op: &str| report.rows.iter().find(|row| row.op == op).map(|row| row.served_by.clone());
            assert_eq!(of("conv_input_grad").as_deref(), Some(IMAGES), "{report}");
            assert!(y.is_contiguous_in(MemoryFormat::ChannelsLast), "{:?}", y.strides());
            assert!(difference(&plain, &y)? < tolerance, "{dtype} {groups}");
        }
    }
    Ok(())
}

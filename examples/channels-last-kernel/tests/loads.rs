//! The plugin, loaded by the real loader beside the installed CPU backend.

use keyway::dispatcher::explain::explain;
use keyway::dispatcher::ledger::last_served;
use keyway::dispatcher::registry::find_op;
use keyway::dispatcher::tensor::Format;
use keyway::MemoryFormat;
use keyway::{DType, Device, Layout, Tensor, runtime};

const PLUGIN: &str = "example.org/channels-last-kernel";

fn load() {
    let library = std::env::current_exe().unwrap().with_file_name("libchannels_last_kernel.so");
    let loaded = runtime::load_backends(&[library]).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
}

/// Images in row-major order, and the same in channels_last.
fn images(dtype: DType) -> [Tensor; 2] {
    let numel = 2 * 3 * 5 * 7;
    let values: Vec<f64> = (0..numel).map(|i| f64::from(i * 37 % 101) / 20.0 - 2.5).collect();
    let rows = Tensor::from_vec(values, &[2, 3, 5, 7]).unwrap().to_dtype(dtype).unwrap();
    let last = rows.to(MemoryFormat::ChannelsLast).unwrap();
    assert_eq!((rows.format(), last.format()), (Format::Contiguous, Format::ChannelsLast));
    [rows, last]
}

fn vector(values: [f64; 3], dtype: DType) -> Tensor {
    Tensor::new(&values).unwrap().to_dtype(dtype).unwrap()
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

fn assert_close(a: &Tensor, b: &Tensor, dtype: DType) {
    let tolerance = if dtype == DType::F64 { 1e-12 } else { 2e-6 };
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    for (a, b) in values(a).iter().zip(values(b)) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} {b}");
    }
}

/// `batch_norm` with weight and bias, and the candidate that served it.
fn normalised(x: &Tensor, training: bool) -> (Tensor, &'static str) {
    let of = |values| vector(values, x.dtype());
    let (mean, var) = (of([0.5, -1.0, 2.0]), of([1.0, 0.25, 4.0]));
    let (weight, bias) = (of([1.5, 0.5, -2.0]), of([0.1, 0.2, 0.3]));
    let made = x.batch_norm(Some((&mean, &var)), Some(&weight), Some(&bias), training, 0.1, 1e-5).unwrap();
    (made, last_served().name())
}

#[test]
fn channels_last_images_go_to_the_kernel_and_contiguous_ones_do_not() {
    load();
    for dtype in [DType::F32, DType::F64] {
        let [rows, last] = images(dtype);
        let (expected, by) = normalised(&rows, false);
        assert_eq!((by, expected.format()), ("keyway-cpu", Format::Contiguous));
        let (made, by) = normalised(&last, false);
        assert_eq!((by, made.format(), made.strides()), (PLUGIN, Format::ChannelsLast, last.strides()));
        assert_close(&made, &expected, dtype);

        let expected = rows.mean((2, 3)).unwrap();
        assert_eq!(last_served().name(), "keyway-cpu");
        let made = last.mean((2, 3)).unwrap();
        assert_eq!(last_served().name(), PLUGIN);
        assert_close(&made, &expected, dtype);
        let made = last.mean_keepdim((-1, -2)).unwrap();
        assert_eq!(last_served().name(), PLUGIN);
        assert_close(&made.reshape((2, 3)).unwrap(), &expected, dtype);
    }
    // Other dtypes have no kernel, and the decomposition preserves the format.
    let [rows, last] = images(DType::BF16);
    let ((expected, _), (made, by)) = (normalised(&rows, false), normalised(&last, false));
    assert_eq!((by, made.format()), ("(decomposition)", Format::ChannelsLast));
    assert_eq!(values(&made), values(&expected));
}

#[test]
fn what_the_kernel_refuses_goes_on() {
    load();
    let [rows, last] = images(DType::F32);
    let ((expected, _), (made, by)) = (normalised(&rows, true), normalised(&last, true));
    assert_eq!((by, made.format()), ("(decomposition)", Format::ChannelsLast));
    assert_close(&made, &expected, DType::F32);
    assert_close(&last.mean(1).unwrap(), &rows.mean(1).unwrap(), DType::F32);
    assert_eq!(last_served().name(), "keyway-cpu");
    // A slice of the pixels: the channels are still contiguous, but there are gaps.
    let part = |t: &Tensor| t.narrow(3, 1, 4).unwrap();
    assert_close(&normalised(&part(&last), false).0, &normalised(&part(&rows), false).0, DType::F32);
    // Running statistics in another dtype.
    let (mean, var) = (vector([0.5, -1.0, 2.0], DType::F64), vector([1.0, 0.25, 4.0], DType::F64));
    last.batch_norm(Some((&mean, &var)), None, None, false, 0.1, 1e-5).unwrap();
    assert_eq!(last_served().name(), "(decomposition)");
}

#[test]
fn gradients_are_those_of_the_parts() {
    load();
    let gradient = |x: &Tensor| {
        let x = x.copy().unwrap().requires_grad_(true).unwrap();
        let (made, by) = normalised(&x, false);
        made.mul(&made).unwrap().sum_all().unwrap().backward().unwrap();
        (x.grad().unwrap(), by)
    };
    let [rows, last] = images(DType::F64);
    let ((expected, _), (made, by)) = (gradient(&rows), gradient(&last));
    assert_ne!(by, PLUGIN, "a kernel of a composite op serves calls without a gradient");
    assert_close(&made, &expected, DType::F64);
}

#[test]
fn the_readme_shows_who_serves_what() {
    load();
    for (op, layout) in [
        ("batch_norm", Layout::CHANNELS_LAST),
        ("batch_norm", Layout::STRIDED),
        ("mean", Layout::CHANNELS_LAST),
    ] {
        let explained = explain(find_op(op).unwrap(), Device::CPU, layout, DType::F32);
        // A second backend for the CPU may be installed, and follows the first.
        let own = if layout == Layout::CHANNELS_LAST { 5 } else { 4 };
        let text = explained.to_string().lines().take(own).collect::<Vec<_>>().join("\n");
        let (first, last) = (&explained.candidates[0], explained.candidates.last().unwrap());
        assert_eq!(last.what, "other ops");
        assert!(include_str!("../README.md").contains(&text), "the README lacks:\n{text}");
        assert_eq!(first.what.contains(PLUGIN), layout == Layout::CHANNELS_LAST);
        assert!(first.chosen);
    }
}

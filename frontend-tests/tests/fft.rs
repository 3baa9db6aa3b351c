//! Fourier transforms: values beside a direct transform, lengths, normalizations, dimensions, strides, gradients, spectrograms, and
//! bad input.

mod rehearsal_support;

mod derivatives_support;

use derivatives_support::check;
use keyway::fft::{self, FftOptions, FftnOptions, IstftOptions, Norm, StftOptions};
use keyway::nn::PadMode;
use keyway::prelude::*;
use keyway::{Complex, Result};
use rehearsal_support::{load, message};
use std::f64::consts::PI;

type C = Complex<f64>;

const PLUGINS: &[&str] = &["keyway_backend_fft"];
const NORMS: [Norm; 3] = [Norm::Backward, Norm::Ortho, Norm::Forward];

/// Fixed values without a pattern, between -1 and 1.
fn value(i: usize) -> f64 {
    ((i * i * 37 + i * 101 + 13) % 199) as f64 / 99.5 - 1.0
}

fn real(sizes: &[usize]) -> Tensor {
    Tensor::from_vec((0..sizes.iter().product()).map(value).collect(), sizes).unwrap()
}

fn complex(sizes: &[usize]) -> Tensor {
    let count: usize = sizes.iter().product();
    Tensor::from_vec((0..count).map(|i| C::new(value(i), value(i + 7919))).collect(), sizes).unwrap()
}

fn list(x: &Tensor) -> Vec<C> {
    x.to_dtype(DType::C128).unwrap().to_vec().unwrap()
}

/// The transform by its definition, without a factor.
fn direct(x: &[C], forward: bool) -> Vec<C> {
    let n = x.len();
    let sign = if forward { -1.0 } else { 1.0 };
    let root = |k: usize| C::from_polar(1.0, sign * 2.0 * PI * (k % n) as f64 / n as f64);
    (0..n).map(|k| (0..n).map(|j| x[j] * root(j * k)).sum()).collect()
}

/// [`direct`] along one dimension of row-major elements.
fn direct_along(x: &[C], sizes: &[usize], dim: usize, forward: bool) -> Vec<C> {
    let (n, inner) = (sizes[dim], sizes[dim + 1..].iter().product::<usize>());
    let mut all = x.to_vec();
    for line in (0..x.len()).filter(|at| at / inner % n == 0) {
        let made = direct(&(0..n).map(|i| x[line + i * inner]).collect::<Vec<_>>(), forward);
        made.into_iter().enumerate().for_each(|(i, z)| all[line + i * inner] = z);
    }
    all
}

fn factor(norm: Norm, forward: bool, n: usize) -> f64 {
    let n = n as f64;
    match (norm, forward) {
        (Norm::Ortho, _) => 1.0 / n.sqrt(),
        (Norm::Backward, false) | (Norm::Forward, true) => 1.0 / n,
        _ => 1.0,
    }
}

fn scaled(x: Vec<C>, by: f64) -> Vec<C> {
    x.into_iter().map(|z| z * by).collect()
}

#[track_caller]
fn assert_close(what: &str, got: &Tensor, wanted: &[C], tolerance: f64) {
    let got = list(got);
    assert_eq!(got.len(), wanted.len(), "{what}");
    let largest = wanted.iter().map(|z| z.norm()).fold(1.0, f64::max);
    for (i, (g, w)) in got.iter().zip(wanted).enumerate() {
        assert!((g - w).norm() <= tolerance * largest, "{what}, element {i}: got {g}, expected {w}");
    }
}

fn lengths() -> impl Iterator<Item = usize> {
    (1..=40).chain([97, 128, 1000])
}

#[test]
fn values_are_those_of_the_definition() {
    let _one = load(PLUGINS);
    for n in lengths() {
        let (z, x) = (complex(&[n]), real(&[n]));
        for (forward, run) in [(true, fft::fft as fn(&Tensor) -> Result<Tensor>), (false, fft::ifft)] {
            let by = factor(Norm::Backward, forward, n);
            for (signal, what) in [(&z, "complex"), (&x, "real")] {
                let wanted = scaled(direct(&list(signal), forward), by);
                let what = format!("{what}, {n}, forward {forward}");
                assert_close(&what, &run(signal).unwrap(), &wanted, 1e-13);
                let narrow =
                    signal.to_dtype(if signal.is_complex() { DType::C64 } else { DType::F32 }).unwrap();
                let made = run(&narrow).unwrap();
                assert_eq!(made.dtype(), DType::C64);
                assert_close(&what, &made, &wanted, 2e-6);
            }
        }
        let whole = direct(&list(&x), true);
        let half = fft::rfft(&x).unwrap();
        assert_eq!(half.shape(), [n / 2 + 1]);
        assert_close(&format!("rfft {n}"), &half, &whole[..n / 2 + 1], 1e-13);
        let options = FftOptions { n: Some(n), ..FftOptions::default() };
        let back = fft::irfft_with(&half, options).unwrap();
        assert_eq!(back.dtype(), DType::F64);
        assert_close(&format!("irfft {n}"), &back, &list(&x), 1e-13);
        // Hermitian signals: the transform of the half is that of the whole one.
        let real_spectrum = fft::hfft_with(&half, options).unwrap();
        assert_close(&format!("hfft {n}"), &real_spectrum, &direct(&whole, true), 1e-12);
        assert_close(&format!("ihfft {n}"), &fft::ihfft(&real_spectrum).unwrap(), &whole[..n / 2 + 1], 1e-13);
    }
}

#[test]
fn normalizations_scale_each_direction() {
    let _one = load(PLUGINS);
    for norm in NORMS {
        for n in [7, 12] {
            let options = FftOptions { n: Some(n), norm, ..FftOptions::default() };
            let (z, x) = (complex(&[n]), real(&[n]));
            let wanted = |x: &Tensor, forward| scaled(direct(&list(x), forward), factor(norm, forward, n));
            assert_close("fft", &fft::fft_with(&z, options).unwrap(), &wanted(&z, true), 1e-13);
            assert_close("ifft", &fft::ifft_with(&z, options).unwrap(), &wanted(&z, false), 1e-13);
            assert_close("fft of real", &fft::fft_with(&x, options).unwrap(), &wanted(&x, true), 1e-13);
            assert_close("ifft of real", &fft::ifft_with(&x, options).unwrap(), &wanted(&x, false), 1e-13);
            let half = fft::rfft_with(&x, options).unwrap();
            assert_close("rfft", &half, &wanted(&x, true)[..n / 2 + 1], 1e-13);
            assert_close("irfft", &fft::irfft_with(&half, options).unwrap(), &list(&x), 1e-13);
            let inverse = fft::ihfft_with(&x, options).unwrap();
            assert_close("ihfft", &inverse, &wanted(&x, false)[..n / 2 + 1], 1e-13);
            assert_close("hfft", &fft::hfft_with(&inverse, options).unwrap(), &list(&x), 1e-13);
            let many = FftnOptions { norm, ..FftnOptions::default() };
            // Along one dimension both are the same, and the inverse of two dimensions is one.
            let last = FftnOptions { dim: Some(vec![-1]), ..many.clone() };
            assert_close("ihfftn", &fft::ihfftn_with(&x, &last).unwrap(), &list(&inverse), 1e-13);
            let rows = real(&[4, n]);
            let half = fft::ihfft2_with(&rows, &many).unwrap();
            assert_eq!(half.shape(), [4, n / 2 + 1]);
            let shape = FftnOptions { s: Some(vec![4, n as i64]), ..many.clone() };
            assert_close("hfft2", &fft::hfft2_with(&half, &shape).unwrap(), &list(&rows), 1e-13);
            assert_close("hfftn", &fft::hfftn_with(&half, &shape).unwrap(), &list(&rows), 1e-13);
            let square = complex(&[n, 5]);
            let both = direct_along(&direct_along(&list(&square), &[n, 5], 0, true), &[n, 5], 1, true);
            let both = scaled(both, factor(norm, true, 5 * n));
            assert_close("fft2", &fft::fft2_with(&square, &many).unwrap(), &both, 1e-13);
            let back = fft::ifft2_with(&fft::fft2_with(&square, &many).unwrap(), &many).unwrap();
            assert_close("ifft2", &back, &list(&square), 1e-13);
        }
    }
}

#[test]
fn signals_are_cropped_and_padded() {
    let _one = load(PLUGINS);
    let x = complex(&[2, 6]);
    for n in [1, 3, 6, 9] {
        let options = FftOptions { n: Some(n), dim: 1, ..FftOptions::default() };
        let resized: Vec<C> = list(&x)
            .chunks(6)
            .flat_map(|row| (0..n).map(|i| row.get(i).copied().unwrap_or_default()).collect::<Vec<_>>())
            .collect();
        let wanted = direct_along(&resized, &[2, n], 1, true);
        assert_close("fft", &fft::fft_with(&x, options).unwrap(), &wanted, 1e-13);
    }
    let options = FftnOptions { s: Some(vec![4, -1]), ..FftnOptions::default() };
    let made = fft::fftn_with(&complex(&[3, 3, 5]), &options).unwrap();
    assert_eq!(made.shape(), [3, 4, 5]);
    let options = FftnOptions { s: Some(vec![5, 3]), dim: Some(vec![2, 0]), ..FftnOptions::default() };
    assert_eq!(fft::irfftn_with(&complex(&[3, 2, 4]), &options).unwrap().shape(), [3, 2, 5]);
    assert_eq!(fft::rfftn_with(&real(&[3, 2, 4]), &options).unwrap().shape(), [2, 2, 5]);
}

#[test]
fn any_dimension_any_strides() {
    let _one = load(PLUGINS);
    let sizes = [3, 8, 5, 4];
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [1, 3, 2, 0], [2, 0, 3, 1]] {
        for dims in [vec![0], vec![1], vec![-1], vec![2, 0], vec![1, 3], vec![0, 1, 2, 3], vec![3, 2, 1, 0]] {
            let options = FftnOptions { dim: Some(dims.clone()), ..FftnOptions::default() };
            let at = |dim: i64| if dim < 0 { (dim + 4) as usize } else { dim as usize };
            let z = complex(&sizes).permute(order).unwrap();
            // A gap between elements, and an offset.
            let gaps = complex(&[7, 8, 11, 5])
                .slice(0, Some(1), Some(7), 2)
                .unwrap()
                .slice(2, None, None, 2)
                .unwrap();
            let gaps = gaps.narrow(2, 1, 5).unwrap().narrow(3, 1, 4).unwrap().permute(order).unwrap();
            let shown = complex(&[1, 8, 1, 4]).expand(sizes).unwrap().permute(order).unwrap();
            for signal in [z, gaps, shown] {
                let what = format!("{order:?} {dims:?} {:?}", signal.strides());
                let wanted = dims
                    .iter()
                    .fold(list(&signal), |all, &dim| direct_along(&all, signal.shape(), at(dim), true));
                let made = fft::fftn_with(&signal, &options).unwrap();
                assert_close(&what, &made, &wanted, 1e-13);
                assert_close(&what, &fft::ifftn_with(&made, &options).unwrap(), &list(&signal), 1e-13);
                let x = signal.real().unwrap();
                let wanted =
                    dims.iter().fold(list(&x), |all, &dim| direct_along(&all, x.shape(), at(dim), true));
                assert_close(&what, &fft::fftn_with(&x, &options).unwrap(), &wanted, 1e-13);
                let last = at(dims[dims.len() - 1]);
                let whole = Tensor::from_vec(wanted, x.shape()).unwrap();
                let half = fft::rfftn_with(&x, &options).unwrap();
                let wanted = whole.narrow(last, 0, x.shape()[last] / 2 + 1).unwrap();
                assert_eq!(half.shape(), wanted.shape());
                assert_close(&what, &half, &list(&wanted), 1e-13);
                let s = dims.iter().map(|&dim| x.shape()[at(dim)] as i64).collect();
                let back = FftnOptions { s: Some(s), ..options.clone() };
                // The spectrum in other strides.
                let strided = half.transpose(0, 2).unwrap().contiguous().unwrap().transpose(0, 2).unwrap();
                assert_close(&what, &fft::irfftn_with(&strided, &back).unwrap(), &list(&x), 1e-13);
            }
        }
    }
}

#[test]
fn many_and_long_lines_are_split_the_same_for_every_number_of_threads() {
    let _one = load(PLUGINS);
    let all = |x: &Tensor| {
        let mut made = Vec::new();
        for dim in 0..2 {
            let options = FftOptions { dim, ..FftOptions::default() };
            made.push(fft::fft_with(x, options).unwrap());
            made.push(fft::rfft_with(&x.real().unwrap(), options).unwrap());
            made.push(fft::irfft_with(x, options).unwrap().to_dtype(DType::C128).unwrap());
        }
        made.push(fft::fftn(x).unwrap());
        made.iter().flat_map(list).collect::<Vec<_>>()
    };
    let threads = keyway::num_threads();
    for sizes in [[300, 257], [3000, 12], [17, 10_007]] {
        let x = complex(&sizes);
        keyway::set_num_threads(1);
        let one = all(&x);
        keyway::set_num_threads(4);
        assert!(one == all(&x), "{sizes:?}");
    }
    keyway::set_num_threads(threads);
}

#[test]
fn long_lines_return_to_their_signal() {
    let _one = load(PLUGINS);
    for n in [10_007, 1 << 16, 99_991, 100_000, 1 << 18] {
        let x = complex(&[n]);
        let made = fft::fft(&x).unwrap();
        // Parseval, and one element by the definition.
        let energy = |x: &Tensor| list(x).iter().map(|z| z.norm_sqr()).sum::<f64>();
        assert!((energy(&made) / n as f64 / energy(&x) - 1.0).abs() < 1e-12, "{n}");
        let k = n / 3;
        let root = |j: usize| C::from_polar(1.0, -2.0 * PI * (j * k % n) as f64 / n as f64);
        let wanted: C = list(&x).iter().enumerate().map(|(j, z)| z * root(j)).sum();
        assert!((list(&made)[k] - wanted).norm() < 1e-9, "{n}");
        assert_close(&n.to_string(), &fft::ifft(&made).unwrap(), &list(&x), 1e-13);
    }
}

#[test]
fn dtypes() {
    let _one = load(PLUGINS);
    let x = Tensor::new([1i32, 2, 3, 4]).unwrap();
    for dtype in [DType::I32, DType::U8, DType::F16, DType::BF16, DType::F32] {
        let made = fft::rfft(&x.to_dtype(dtype).unwrap()).unwrap();
        assert_eq!(made.dtype(), DType::C64);
        assert_close("rfft", &made, &[C::new(10.0, 0.0), C::new(-2.0, 2.0), C::new(-2.0, 0.0)], 1e-6);
    }
    assert_eq!(fft::fft(&Tensor::new([true, false]).unwrap()).unwrap().dtype(), DType::C64);
    assert_eq!(fft::irfft(&real(&[4])).unwrap().dtype(), DType::F64);
    // No dimension at all is the identity.
    let scalar = Tensor::new(2.0f64).unwrap();
    assert_close("fftn", &fft::fftn(&scalar).unwrap(), &[C::new(2.0, 0.0)], 0.0);
    // An empty batch.
    assert_eq!(fft::fft(&real(&[0, 4])).unwrap().shape(), [0, 4]);
    assert_eq!(fft::rfft2(&real(&[0, 3, 4])).unwrap().shape(), [0, 3, 3]);
    assert_eq!(fft::irfft2(&complex(&[0, 3, 4])).unwrap().shape(), [0, 3, 6]);
}

/// A function that is not linear, so that second derivatives are not 0.
fn curved(x: Result<Tensor>) -> Result<Tensor> {
    let x = x?;
    x.mul(&x)
}

#[test]
fn transforms_have_first_and_second_derivatives() {
    let _one = load(PLUGINS);
    for norm in NORMS {
        for n in [1, 2, 3, 4, 5, 6] {
            let options = FftOptions { n: Some(n), norm, ..FftOptions::default() };
            let what = |name: &str| format!("{name} {n} {norm:?}");
            let (z, x, half) = (complex(&[2, n]), real(&[2, n]), complex(&[2, n / 2 + 1]));
            check(&what("fft"), std::slice::from_ref(&z), |i| curved(fft::fft_with(&i[0], options)));
            check(&what("ifft"), std::slice::from_ref(&z), |i| curved(fft::ifft_with(&i[0], options)));
            check(&what("fft of real"), std::slice::from_ref(&x), |i| curved(fft::fft_with(&i[0], options)));
            check(&what("ifft of real"), std::slice::from_ref(&x), |i| {
                curved(fft::ifft_with(&i[0], options))
            });
            check(&what("rfft"), std::slice::from_ref(&x), |i| curved(fft::rfft_with(&i[0], options)));
            check(&what("ihfft"), std::slice::from_ref(&x), |i| curved(fft::ihfft_with(&i[0], options)));
            check(&what("irfft"), std::slice::from_ref(&half), |i| curved(fft::irfft_with(&i[0], options)));
            check(&what("hfft"), std::slice::from_ref(&half), |i| curved(fft::hfft_with(&i[0], options)));
        }
    }
}

#[test]
fn transforms_of_several_dimensions_have_derivatives() {
    let _one = load(PLUGINS);
    for dims in [vec![0, 1], vec![1, 0], vec![-1, 0, 1]] {
        for (rows, columns) in [(3, 4), (4, 3), (2, 5)] {
            let options =
                FftnOptions { dim: Some(dims.clone()), norm: Norm::Ortho, ..FftnOptions::default() };
            let what = |name: &str| format!("{name} {rows} {columns} {dims:?}");
            let sizes = [rows, columns, 2];
            check(&what("fftn"), &[complex(&sizes)], |i| curved(fft::fftn_with(&i[0], &options)));
            check(&what("fftn of real"), &[real(&sizes)], |i| curved(fft::fftn_with(&i[0], &options)));
            check(&what("rfftn"), &[real(&sizes)], |i| curved(fft::rfftn_with(&i[0], &options)));
            let s = dims.iter().map(|&dim| sizes[if dim < 0 { 2 } else { dim as usize }] as i64).collect();
            let options = FftnOptions { s: Some(s), ..options.clone() };
            check(&what("irfftn"), &[complex(&sizes)], |i| curved(fft::irfftn_with(&i[0], &options)));
        }
    }
}

#[test]
fn frequencies_and_shifts() {
    let f64s = |x: Tensor| x.to_vec::<f64>().unwrap();
    assert_eq!(f64s(fft::fftfreq_with(5, 0.5, DType::F64).unwrap()), [0.0, 0.4, 0.8, -0.8, -0.4]);
    assert_eq!(f64s(fft::fftfreq_with(0, 1.0, DType::F64).unwrap()), [0.0; 0]);
    assert_eq!(f64s(fft::rfftfreq_with(6, 0.5, DType::F64).unwrap()), [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]);
    assert_eq!(f64s(fft::rfftfreq_with(1, 1.0, DType::F64).unwrap()), [0.0]);
    assert!(message(fft::fftfreq_with(3, 0.0, ())).contains("other than 0"));
    assert!(message(fft::rfftfreq(0)).contains("1 or more"));
    assert!(message(fft::fftfreq_with(3, 1.0, DType::I64)).contains("a floating-point dtype"));
    let _one = load(PLUGINS);
    let x = Tensor::new([[0i64, 1, 2], [3, 4, 5]]).unwrap();
    let ints = |x: &Tensor| x.to_vec::<i64>().unwrap();
    assert_eq!(ints(&fft::fftshift(&x, ..).unwrap()), [5, 3, 4, 2, 0, 1]);
    assert_eq!(ints(&fft::fftshift(&x, -1).unwrap()), [2, 0, 1, 5, 3, 4]);
    assert_eq!(ints(&fft::ifftshift(&x, [1]).unwrap()), [1, 2, 0, 4, 5, 3]);
    assert_eq!(ints(&fft::ifftshift(&fft::fftshift(&x, ..).unwrap(), ..).unwrap()), ints(&x));
    assert!(message(fft::fftshift(&x, 2)).contains("out of range"));
}

#[test]
fn windows_are_those_of_their_formulas() {
    for n in [0usize, 1, 2, 3, 8, 15] {
        for periodic in [true, false] {
            let last = if periodic { n as f64 } else { n as f64 - 1.0 };
            let turn = |i: usize| 2.0 * PI * i as f64 / last;
            let wanted = |f: &dyn Fn(usize) -> f64| -> Vec<f64> {
                (0..n).map(|i| if n == 1 { 1.0 } else { f(i) }).collect()
            };
            let close = |what: &str, got: Tensor, wanted: Vec<f64>| {
                let got = got.to_vec::<f64>().unwrap();
                assert_eq!(got.len(), wanted.len());
                for (g, w) in got.iter().zip(&wanted) {
                    assert!((g - w).abs() < 1e-14, "{what} {n} {periodic}: {got:?}, expected {wanted:?}");
                }
            };
            close(
                "hann",
                fft::hann_window_with(n, periodic, DType::F64).unwrap(),
                wanted(&|i| 0.5 - 0.5 * turn(i).cos()),
            );
            close(
                "hamming",
                fft::hamming_window_with(n, periodic, 0.54, 0.46, DType::F64).unwrap(),
                wanted(&|i| 0.54 - 0.46 * turn(i).cos()),
            );
            close(
                "blackman",
                fft::blackman_window_with(n, periodic, DType::F64).unwrap(),
                wanted(&|i| 0.42 - 0.5 * turn(i).cos() + 0.08 * (2.0 * turn(i)).cos()),
            );
            close(
                "bartlett",
                fft::bartlett_window_with(n, periodic, DType::F64).unwrap(),
                wanted(&|i| 1.0 - (2.0 * i as f64 / last - 1.0).abs()),
            );
        }
    }
    // numpy.kaiser(5, 12.0)
    let kaiser = fft::kaiser_window_with(5, false, 12.0, DType::F64).unwrap().to_vec::<f64>().unwrap();
    let wanted =
        [5.2773441320097665e-05, 0.2156727447589671, 1.0, 0.2156727447589671, 5.2773441320097665e-05];
    assert!(kaiser.iter().zip(wanted).all(|(g, w)| (g - w).abs() < 1e-14), "{kaiser:?}");
    assert!(message(fft::kaiser_window_with(5, true, 1e4, ())).contains("from -700 to 700"));
    assert!(message(fft::hann_window_with(5, true, DType::I32)).contains("a floating-point dtype"));
}

/// One frame of a spectrogram by its definition.
fn frame(x: &[C], window: &[f64], start: i64) -> Vec<C> {
    let n = x.len() as i64;
    let mirrored = |i: i64| {
        if i < 0 {
            -i
        } else if i >= n {
            2 * (n - 1) - i
        } else {
            i
        }
    };
    let signal: Vec<C> =
        window.iter().enumerate().map(|(i, w)| x[mirrored(start + i as i64) as usize] * w).collect();
    direct(&signal, true)
}

#[test]
fn spectrograms_are_those_of_their_definition() {
    let _one = load(PLUGINS);
    let window = fft::hann_window_with(6, true, DType::F64).unwrap();
    let mut padded = vec![0.0; 9];
    padded[1..7].copy_from_slice(&window.to_vec::<f64>().unwrap());
    for center in [true, false] {
        for x in [real(&[40]), complex(&[40])] {
            let options = StftOptions {
                hop_length: Some(4),
                win_length: Some(6),
                window: Some(&window),
                center,
                ..StftOptions::new(9)
            };
            let made = fft::stft(&x, options).unwrap();
            let frequencies = if x.is_complex() { 9 } else { 5 };
            let frames = if center { 10 } else { 8 };
            assert_eq!(made.shape(), [frequencies, frames]);
            for t in 0..frames {
                let start = 4 * t as i64 - if center { 4 } else { 0 };
                let wanted = frame(&list(&x), &padded, start);
                let column = made.select(1, t).unwrap();
                assert_close(&format!("frame {t}"), &column, &wanted[..frequencies], 1e-13);
            }
        }
    }
}

#[test]
fn spectrograms_return_to_their_signal() {
    let _one = load(PLUGINS);
    for (n_fft, hop, win) in [(16, 4, 16), (15, 5, 15), (16, 3, 12), (9, 2, 7)] {
        for (normalized, center) in [(false, true), (true, true), (false, false)] {
            let window = fft::hamming_window_with(win, true, 0.54, 0.46, DType::F64).unwrap();
            for x in [real(&[2, 120]), real(&[120]), complex(&[2, 120])] {
                // Without centring, the ends are covered only by a window as long as the frame.
                if !center && win != n_fft {
                    continue;
                }
                let what = format!("{n_fft} {hop} {win} {normalized} {center}");
                let options = StftOptions {
                    hop_length: Some(hop),
                    win_length: Some(win),
                    window: Some(&window),
                    normalized,
                    center,
                    pad_mode: PadMode::Constant,
                    ..StftOptions::new(n_fft)
                };
                let spectrogram = fft::stft(&x, options).unwrap();
                let back = IstftOptions {
                    hop_length: Some(hop),
                    win_length: Some(win),
                    window: Some(&window),
                    normalized,
                    center,
                    return_complex: x.is_complex(),
                    ..IstftOptions::new(n_fft)
                };
                let y = fft::istft(&spectrogram, back).unwrap();
                let covered = y.dim(-1).unwrap();
                assert!(covered > 120 - hop - n_fft % 2 && covered <= 120, "{what}: {covered}");
                assert_close(&what, &y, &list(&x.narrow(-1, 0, covered).unwrap()), 1e-12);
                // The last frame ends with the zeros around a short window.
                if center && win == n_fft {
                    let longer =
                        fft::istft(&spectrogram, IstftOptions { length: Some(130), ..back }).unwrap();
                    assert_eq!(longer.dim(-1).unwrap(), 130, "{what}");
                    assert_close(&what, &longer.narrow(-1, 0, covered).unwrap(), &list(&y), 1e-12);
                }
                let shorter = fft::istft(&spectrogram, IstftOptions { length: Some(50), ..back }).unwrap();
                assert_close(&what, &shorter, &list(&x.narrow(-1, 0, 50).unwrap()), 1e-12);
            }
        }
    }
}

#[test]
fn spectrograms_have_derivatives() {
    let _one = load(PLUGINS);
    let window = fft::hamming_window_with(4, true, 0.54, 0.46, DType::F64).unwrap();
    for x in [real(&[10]), complex(&[10])] {
        let is_complex = x.is_complex();
        check("stft", &[x, window.clone()], |i| {
            fft::stft(&i[0], StftOptions { window: Some(&i[1]), hop_length: Some(2), ..StftOptions::new(4) })
        });
        let rows = if is_complex { 4 } else { 3 };
        check("istft", &[complex(&[rows, 4]), window.clone()], |i| {
            let options = IstftOptions {
                window: Some(&i[1]),
                hop_length: Some(2),
                return_complex: is_complex,
                ..IstftOptions::new(4)
            };
            fft::istft(&i[0], options)
        });
    }
}

#[test]
fn bad_input_is_an_error() {
    let _one = load(PLUGINS);
    let (x, z) = (real(&[2, 4]), complex(&[2, 4]));
    let with = |n, dim| FftOptions { n, dim, norm: Norm::Backward };
    let many = |s: Option<&[i64]>, dim: Option<&[i64]>| FftnOptions {
        s: s.map(<[i64]>::to_vec),
        dim: dim.map(<[i64]>::to_vec),
        norm: Norm::Backward,
    };
    let table: Vec<(keyway::Result<Tensor>, &str)> = vec![
        (fft::fft_with(&x, with(None, 2)), "fft: dimension 2 is out of range"),
        (fft::fft_with(&x, with(Some(0), 0)), "fft: `n` must be"),
        (fft::fft(&Tensor::new(1.0f32).unwrap()), "one dimension or more"),
        (fft::fft(&real(&[2, 0])), "one element or more along dimension 1"),
        (fft::rfft(&z), "rfft: `x` must be"),
        (fft::ihfft(&z), "ihfft: `x` must be"),
        (fft::irfft(&complex(&[1])), "2 elements or more"),
        (fft::irfft_with(&z, with(Some(0), 0)), "irfft: `n` must be"),
        (fft::irfft(&complex(&[2, 0])), "2 elements or more"),
        (fft::fftn_with(&x, &many(None, Some(&[0, 0]))), "different dimensions"),
        (fft::fftn_with(&x, &many(None, Some(&[0, -2]))), "different dimensions"),
        (fft::fftn_with(&x, &many(Some(&[2]), Some(&[0, 1]))), "2 lengths"),
        (fft::fftn_with(&x, &many(Some(&[2, 2, 2]), None)), "at most 2 lengths"),
        (fft::fftn_with(&x, &many(Some(&[-2]), None)), "lengths of 1 or more, or -1"),
        (fft::fftn_with(&x, &many(Some(&[0]), None)), "a length of 1 or more"),
        (fft::rfftn_with(&x, &many(None, Some(&[]))), "one dimension or more"),
        (fft::irfftn_with(&z, &many(None, Some(&[]))), "one dimension or more"),
        (fft::rfft2(&real(&[4])), "out of range"),
        (x.fft_c2c(&[0], "backward", true), "c64 or c128"),
        (z.fft_c2c(&[0], "half", true), "\"backward\", \"ortho\" or \"forward\""),
        (z.fft_r2c(&[0], "backward", true), "f32 or f64"),
        (
            Tensor::new([1.0f32]).unwrap().to_dtype(DType::F16).unwrap().fft_r2c(&[0], "ortho", true),
            "f32 or f64",
        ),
        (z.fft_c2r(&[1], "backward", 8), "5 elements along dimension 1"),
        (z.fft_c2r(&[1], "backward", 0), "1 or more"),
        (z.fft_c2r(&[1], "backward", usize::MAX), "elements along dimension 1"),
    ];
    for (made, wanted) in table {
        let text = message(made);
        assert!(text.contains(wanted), "{text}, expected {wanted}");
    }
    let signal = real(&[20]);
    let window = Tensor::ones_with(8, DType::F64).unwrap();
    let base = StftOptions::new(8);
    let table: Vec<(StftOptions<'_>, Tensor, &str)> = vec![
        (StftOptions::new(0), signal.clone(), "stft: `n_fft` must be"),
        (StftOptions { hop_length: Some(0), ..base }, signal.clone(), "stft: `hop_length` must be"),
        (StftOptions { win_length: Some(9), ..base }, signal.clone(), "stft: `win_length` must be"),
        (StftOptions { win_length: Some(7), window: Some(&window), ..base }, signal.clone(), "[7]"),
        (StftOptions { onesided: Some(true), ..base }, complex(&[20]), "has no symmetry"),
        (StftOptions { center: false, ..base }, real(&[7]), "at least `n_fft`"),
        (base, real(&[4]), "widths of at most 3"),
        (base, real(&[1, 2, 20]), "[batch, length]"),
    ];
    for (options, x, wanted) in table {
        let text = message(fft::stft(&x, options));
        assert!(text.contains(wanted), "{text}, expected {wanted}");
    }
    let hann = fft::hann_window_with(8, true, DType::F64).unwrap();
    let spectrogram = complex(&[5, 3]);
    let base = IstftOptions::new(8);
    let table: Vec<(IstftOptions<'_>, Tensor, &str)> = vec![
        (base, real(&[5, 3]), "c64 or c128"),
        (base, complex(&[5, 0]), "one frame or more"),
        (base, complex(&[1, 1, 5, 3]), "[batch, frequency, frame]"),
        (base, complex(&[6, 3]), "5 frequencies"),
        (IstftOptions { onesided: Some(false), ..base }, spectrogram.clone(), "8 frequencies"),
        (IstftOptions { return_complex: true, ..base }, spectrogram.clone(), "false for a complex signal"),
        (IstftOptions { win_length: Some(3), hop_length: Some(4), ..base }, spectrogram.clone(), "at most"),
        (IstftOptions { window: Some(&hann), center: false, ..base }, spectrogram, "at least 1e-11"),
    ];
    for (options, x, wanted) in table {
        let text = message(fft::istft(&x, options));
        assert!(text.contains(wanted), "{text}, expected {wanted}");
    }
}

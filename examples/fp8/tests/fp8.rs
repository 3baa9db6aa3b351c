//! The plugin, loaded by the real loader. No other backend is needed: the host does everything that is not a kernel of the
//! plugin.

use keyway::dispatcher::dtype::Limits;
use keyway::dispatcher::explain::explain;
use keyway::dispatcher::memory::write_bytes;
use keyway::dispatcher::{Layout, registry};
use keyway::{DType, Device, Tensor, io::safetensors, nn::StateDict, runtime};
use std::sync::OnceLock;

const NAME: &str = "example.org/fp8_e4m3";

/// The dtype, once its plugin is loaded.
fn fp8() -> DType {
    static FP8: OnceLock<DType> = OnceLock::new();
    *FP8.get_or_init(|| {
        let library = std::env::current_exe().unwrap().parent().unwrap().join("libfp8_plugin.so");
        let loaded = runtime::load_backends(&[library]).unwrap();
        assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
        DType::from_name(NAME).unwrap()
    })
}

/// A tensor with these codes.
fn of_codes(codes: &[u8]) -> Tensor {
    let t = Tensor::empty_with(&[codes.len()], fp8()).unwrap();
    write_bytes(t.as_ref().storage().unwrap(), 0, codes).unwrap();
    t
}

fn of(values: &[f32]) -> Tensor {
    Tensor::new(values).unwrap().to_dtype(fp8()).unwrap()
}

fn values(t: &Tensor) -> Vec<f32> {
    t.to_dtype(DType::F32).unwrap().to_vec().unwrap()
}

/// The value of a code, by the specification's table rather than the plugin's arithmetic: from the code's bits.
fn specified(code: u8) -> f32 {
    let digits = format!("{code:08b}");
    let (sign, rest) = digits.split_at(1);
    let (exponent, mantissa) = rest.split_at(4);
    let bit = |(digit, value): (char, f32)| if digit == '1' { value } else { 0.0 };
    let fraction = mantissa.chars().zip([0.5, 0.25, 0.125]).map(bit).fold(0.0, |sum, value| sum + value);
    let magnitude = match (exponent, mantissa) {
        ("1111", "111") => f32::NAN,
        ("0000", _) => fraction * 2f32.powi(-6),
        _ => (1.0 + fraction) * 2f32.powi(i32::from_str_radix(exponent, 2).unwrap() - 7),
    };
    if sign == "1" { -magnitude } else { magnitude }
}

/// The nearest finite code by search: of two equally near ones the even code; beyond the ends the last one.
fn nearest(value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 0x80u8 } else { 0 };
    let distance = |code: u8| (f64::from(specified(code)) - f64::from(value.abs().min(500.0))).abs();
    let best =
        (0..0x7f).min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a % 2).cmp(&(b % 2)))).unwrap();
    sign | best
}

#[test]
fn the_host_knows_the_dtype() {
    let fp8 = fp8();
    assert_eq!((fp8.size(), fp8.name(), fp8.plugin()), (1, NAME, Some("example.org/fp8")));
    assert!(fp8.is_float() && fp8.is_differentiable());
    assert_eq!(fp8.limits(), Some(Limits { max: 448.0, min: -448.0, epsilon: 0.125 }));
    let cast = registry::find_op("to_dtype").unwrap();
    let server = registry::serving::server(cast, Device::CPU, Layout::STRIDED, fp8);
    assert_eq!(server.map(|candidate| candidate.name()), Some("(host)"));
    assert_eq!(fp8.promote(fp8), Some(fp8));
    assert_eq!(fp8.promote(DType::F32), Some(DType::F32));
    assert_eq!(DType::BF16.promote(fp8), Some(DType::F32));
    assert_eq!(DType::I64.promote(fp8), Some(DType::F16));
}

#[test]
fn all_codes_have_the_specified_values_and_come_back() {
    let codes: Vec<u8> = (0..=255).collect();
    let t = of_codes(&codes);
    for (code, (value, read)) in values(&t).into_iter().zip(t.to_vec_f64().unwrap()).enumerate() {
        let expected = specified(code as u8);
        assert!(
            value == expected || (value.is_nan() && expected.is_nan()),
            "{code:#x}: {value}, not {expected}"
        );
        assert_eq!(value.is_sign_negative(), expected.is_sign_negative(), "{code:#x}");
        assert_eq!(value.to_bits(), (read as f32).to_bits(), "{code:#x}");
    }
    for dtype in [DType::F32, DType::F16, DType::F64] {
        let back = t.to_dtype(dtype).unwrap().to_dtype(fp8()).unwrap();
        assert_eq!(back.to_bytes().unwrap(), codes, "through {dtype}");
    }
}

#[test]
fn halfway_cases_round_to_even_and_their_neighbours_to_the_nearest() {
    let mut cases = vec![0.0f32, f32::MIN_POSITIVE, 1e-30, 447.9, 448.0, 463.9, 464.0, 480.0, 1e30];
    for code in 0..0x7e {
        let halfway = (specified(code) + specified(code + 1)) / 2.0;
        cases.extend([halfway.next_down(), halfway, halfway.next_up(), specified(code)]);
    }
    cases.extend(cases.clone().iter().map(|x| -x));
    let codes = of(&cases).to_bytes().unwrap();
    for (case, code) in cases.iter().zip(codes) {
        assert_eq!(code, nearest(*case), "{case:e}");
    }
}

#[test]
fn what_is_out_of_range_saturates() {
    let t = of(&[f32::INFINITY, f32::NEG_INFINITY, 1e9, -1e9, f32::NAN]);
    assert_eq!(t.to_bytes().unwrap(), [0x7e, 0xfe, 0x7e, 0xfe, 0x7f]);
    let integers = Tensor::new(&[i64::MAX, i64::MIN, 17, -3, 0]).unwrap().to_dtype(fp8()).unwrap();
    // 17 is halfway between 16 and 18; 16 has the even mantissa.
    assert_eq!(values(&integers), [448.0, -448.0, 16.0, -3.0, 0.0]);
    assert_eq!(integers.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap(), [448, -448, 16, -3, 0]);
}

#[test]
fn the_plugin_adds_and_compares() {
    let (a, b) = (of(&[1.0, 2.0, 384.0, 0.5]), of(&[0.25, 2.0, 100.0, -0.5]));
    let sum = a.add(&b).unwrap();
    assert_eq!((sum.dtype(), values(&sum)), (fp8(), vec![1.25, 4.0, 448.0, 0.0]));
    assert_eq!(a.eq(&b).unwrap().to_vec::<bool>().unwrap(), [false, true, false, false]);
    // A Rust scalar is cast to the dtype, and a tensor of one element is broadcast.
    assert_eq!(values(&a.add(1.5).unwrap()), [2.5, 3.5, 384.0, 2.0]);
    assert_eq!(values(&a.add(&of(&[1.0])).unwrap()), [2.0, 3.0, 384.0, 1.5]);
    assert_eq!(values(&a.add_(&b).unwrap()), [1.25, 4.0, 448.0, 0.0]);
    let rows = of(&[1.0, 2.0, 3.0, 4.0]).view(&[2, 2]).unwrap();
    let columns = rows.t().unwrap();
    assert_eq!(values(&rows.add(&columns).unwrap()), [2.0, 5.0, 5.0, 8.0]);
}

#[test]
fn with_another_dtype_it_is_promoted_before_a_kernel_is_looked_for() {
    // The kernel for f32 is in another backend.
    match of(&[1.0]).add(&Tensor::new(&[1.3f32]).unwrap()) {
        Ok(sum) => assert_eq!(sum.to_vec::<f32>().unwrap(), [2.3]),
        Err(error) => assert!(error.to_string().contains("no kernel for (cpu, strided, f32)"), "{error}"),
    }
}

#[test]
fn copies_cast_both_ways_and_keep_strides() {
    let t = Tensor::empty_with(&[2, 2], fp8()).unwrap();
    t.copy_(&Tensor::from_vec(vec![1i32, 2, 3, 4], &[2, 2]).unwrap()).unwrap();
    let column = t.t().unwrap().select(0, 1).unwrap();
    column.copy_(&Tensor::new(9.0f64).unwrap()).unwrap();
    assert_eq!(values(&t), [1.0, 9.0, 3.0, 9.0]);
    let packed = t.t().unwrap().contiguous().unwrap();
    assert_eq!((packed.dtype(), values(&packed)), (fp8(), vec![1.0, 3.0, 9.0, 9.0]));
    assert_eq!(t.copy().unwrap().to_bytes().unwrap(), t.to_bytes().unwrap());
    let wide = Tensor::new(&[0u8; 2]).unwrap();
    wide.copy_(&column).unwrap();
    assert_eq!(wide.to_vec::<u8>().unwrap(), [9, 9]);
    // In place, with itself reversed.
    t.copy_(&t.t().unwrap()).unwrap();
    assert_eq!(values(&t), [1.0, 3.0, 9.0, 9.0]);
    assert_eq!(values(&of(&[])), [0f32; 0]);
}

#[test]
fn it_prints() {
    let text = of(&[1.0, -0.375, 16.0]).to_string();
    assert_eq!(text, format!("tensor([ 1.0000, -0.3750, 16.0000], dtype={NAME})"));
}

#[test]
fn it_is_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let codes: Vec<u8> = (0..=255).collect();
    let matrix = of_codes(&codes).view(&[16, 16]).unwrap();
    let saved = StateDict::from([
        ("w".to_string(), matrix.t().unwrap()),
        ("b".to_string(), Tensor::new(&[1.0f32]).unwrap()),
    ]);
    let notes = [("model".to_string(), "mlp".to_string())].into();
    safetensors::save_with_metadata(&path, &saved, &notes).unwrap();
    let loaded = safetensors::load_file(&path).unwrap();
    assert_eq!(loaded.metadata, notes);
    let w = &loaded.tensors["w"];
    assert_eq!((w.dtype(), w.shape()), (fp8(), &[16, 16][..]));
    assert_eq!(w.t().unwrap().to_bytes().unwrap(), codes);

    // A program without the plugin reads bytes; a name that no plugin registers, or one for the wrong tensor, is an error.
    let bytes = std::fs::read(&path).unwrap();
    let damaged = |from: &str, to: &str| {
        let text = String::from_utf8_lossy(&bytes[8..]).into_owned();
        assert!(text.contains(from) && from.len() == to.len(), "{text}");
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        let mut other = bytes.clone();
        other[at..at + to.len()].copy_from_slice(to.as_bytes());
        std::fs::write(&path, other).unwrap();
        safetensors::load(&path).unwrap_err().to_string()
    };
    let error = damaged("org/fp8_e4m3", "org/fp8_e4m9");
    assert!(error.contains("`w`") && error.contains("org/fp8_e4m9") && error.contains("install"), "{error}");
    let error = damaged("{\\\"w\\\"", "{\\\"b\\\"");
    assert!(error.contains("`b`") && error.contains("u8"), "{error}");
    let reserved = [("keyway.dtypes".to_string(), "{}".to_string())].into();
    let error = safetensors::save_with_metadata(&path, &saved, &reserved).unwrap_err().to_string();
    assert!(error.contains("keyway.dtypes"), "{error}");
}

#[test]
fn gradients_pass_through_a_cast() {
    let x = Tensor::new(&[1.0f32, 2.1]).unwrap().requires_grad_(true).unwrap();
    let y = x.to_dtype(fp8()).unwrap().to_dtype(DType::F32).unwrap();
    assert_eq!(values(&y), [1.0, 2.0]);
    let gradients = Some(vec![Tensor::new(&[1.0f32, 0.5]).unwrap()]);
    y.backward_with(keyway::autograd::BackwardOptions { gradients, ..Default::default() }).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [1.0, 0.5]);
}

#[test]
fn the_readme_shows_who_serves_what() {
    let dtype = fp8();
    for (op, served) in [("add", true), ("exp", false)] {
        let explained = explain(registry::find_op(op).unwrap(), Device::CPU, Layout::STRIDED, dtype);
        let text = explained.to_string();
        assert!(include_str!("../README.md").contains(&text), "the README lacks:\n{text}");
        assert_eq!(explained.candidates.first().is_some_and(|first| first.chosen), served);
        assert_eq!(explained.verdict.contains("`example.org/fp8`"), served);
    }
}

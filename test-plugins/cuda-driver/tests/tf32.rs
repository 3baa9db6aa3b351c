//! Products and convolutions of f32 whose factors may be rounded to TF32: only the factors are rounded, and only if the
//! program allows it and the chip supports it; otherwise f32 is exact. The expected results are computed by the CPU backend
//! in f64, from factors that are rounded here.

mod support;

use keyway::nn::ConvOptions;
use keyway::{DType, Device, MatmulPrecision, MemoryFormat, Tensor, set_float32_matmul_precision};
use keyway_test_cuda_driver::blas;
use std::path::Path;
use support::{cuda, is_stand_in, load, run, stand_in};

/// Whether this chip multiplies TF32.
const HAS: &str = "KEYWAY_TEST_HAS_TF32";

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    let Some(scenario) = support::scenario() else { return };
    load();
    let has = std::env::var_os(HAS).is_some();
    check("products", products, has);
    if scenario == "kernels" {
        check("convolutions", convolutions, has);
        others();
        no_numbers();
    }
}

/// In each order of threads; and on a chip without TF32, where nothing is rounded.
#[test]
fn factors_are_rounded_where_the_program_lets_them_be() {
    let Some(driver) = stand_in() else { return };
    for (seed, chip) in [("3", "90"), ("4", "80"), ("5", "120"), ("6", "75")] {
        let launched = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tf32-{chip}"));
        let mut machine = vec![
            ("KEYWAY_STAND_IN_SEED", seed),
            ("KEYWAY_STAND_IN_CHIP", chip),
            ("KEYWAY_STAND_IN_LAUNCHED", launched.to_str().unwrap()),
        ];
        if chip != "75" {
            machine.push((HAS, "1"));
        }
        run("kernels", &driver, &machine);
        let launched = std::fs::read_to_string(&launched).unwrap();
        for entry in ["mm_f32_cores", "conv_f32_cores"] {
            assert_eq!(
                launched.contains(&format!("{entry} ")),
                chip != "75",
                "{entry} on {chip}: {launched}"
            );
        }
        assert!(launched.contains("mm_f32_tile ") && launched.contains("conv_f32_tile "), "{launched}");
    }
}

#[test]
fn so_they_are_by_the_stand_in_for_the_library() {
    let Some(driver) = stand_in() else { return };
    let library = blas(&driver);
    for chip in ["80", "75"] {
        let mut machine =
            vec![("KEYWAY_CUDA_BLAS", library.to_str().unwrap()), ("KEYWAY_STAND_IN_CHIP", chip)];
        if chip != "75" {
            machine.push((HAS, "1"));
        }
        run("products", &driver, &machine);
    }
}

/// Rounds to 10 bits after the leading one, ties away from 0.
fn rounded(x: f32) -> f32 {
    f32::from_bits((x.to_bits() + 0x1000) & !0x1fff)
}

/// The device on which operands are created, and the function applied to their elements first.
#[derive(Clone, Copy)]
struct Of {
    device: Device,
    dtype: DType,
    change: fn(f32) -> f32,
}

impl Of {
    /// Pseudo-random values between -1 and 1, with more bits than TF32 has.
    fn numbers(self, sizes: &[usize]) -> Tensor {
        let count = sizes.iter().product::<usize>();
        let number = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        let values: Vec<f32> = (0..count).map(|i| (self.change)(number(i))).collect();
        Tensor::from_vec(values, sizes).unwrap().to_dtype(self.dtype).unwrap().to_device(self.device).unwrap()
    }

    fn transposed(self, sizes: [usize; 2]) -> Tensor {
        self.numbers(&[sizes[1], sizes[0]]).t().unwrap()
    }
}

/// Compares with results of rounded factors if rounding is allowed and `has`, otherwise with those of exact factors;
/// bit-identical every time.
#[track_caller]
fn check(what: &str, make: fn(Of) -> Vec<Tensor>, has: bool) {
    let on = Of { device: cuda(0), dtype: DType::F32, change: |x| x };
    let values =
        |of: Of| -> Vec<Vec<f64>> { make(of).iter().map(|made| made.to_vec_f64().unwrap()).collect() };
    let host = Of { device: Device::CPU, dtype: DType::F64, ..on };
    let (exact, coarse) = (values(host), values(Of { change: rounded, ..host }));
    let with = |precision| {
        set_float32_matmul_precision(precision);
        let (made, again) = (values(on), values(on));
        set_float32_matmul_precision(MatmulPrecision::Highest);
        assert!(made == again, "{what}: other bits the second time");
        made
    };
    let (highest, high) = (with(MatmulPrecision::Highest), with(MatmulPrecision::High));
    near(what, &exact, &highest, 1e-5);
    // The rounding of factors by cuBLASLt is unspecified.
    if is_stand_in() || support::scenario().as_deref() == Some("kernels") {
        near(what, if has { &coarse } else { &exact }, &high, 1e-5);
    }
    // The rounding is detectable, and its error is at most that of half a ULP of both factors.
    near(what, &exact, &high, 2e-3);
    let differs = exact.iter().zip(&high).any(|(exact, high)| far(exact, high, 1e-5).is_some());
    assert_eq!(differs, has, "{what}");
    assert!(highest == with(MatmulPrecision::Highest), "{what}: not as before");
}

/// The index of the first element that differs from the expected one by more than this fraction of the largest.
fn far(expected: &[f64], got: &[f64], tolerance: f64) -> Option<usize> {
    assert_eq!(expected.len(), got.len());
    let largest = expected.iter().fold(1f64, |most, x| most.max(x.abs()));
    expected.iter().zip(got).position(|(wanted, own)| (wanted - own).abs() > tolerance * largest)
}

#[track_caller]
fn near(what: &str, expected: &[Vec<f64>], got: &[Vec<f64>], tolerance: f64) {
    for (i, (expected, got)) in expected.iter().zip(got).enumerate() {
        if let Some(at) = far(expected, got, tolerance) {
            panic!("{what} {i}, element {at}: {}, not {}", got[at], expected[at]);
        }
    }
}

fn products(of: Of) -> Vec<Tensor> {
    let mut made = Vec::new();
    // With aligned vector loads if the sizes are multiples of 4; several tiles, the last of them partial.
    for [rows, inner, columns] in [[70, 40, 136], [72, 104, 130], [65, 33, 67], [8, 8, 8], [9, 18, 100]] {
        let (left, right) = ([rows, inner], [inner, columns]);
        made.push(of.numbers(&left).mm(&of.numbers(&right)).unwrap());
        made.push(of.transposed(left).mm(&of.transposed(right)).unwrap());
        made.push(of.numbers(&left).mm(&of.transposed(right)).unwrap());
        made.push(of.transposed(left).mm(&of.numbers(&right)).unwrap());
    }
    // Views that begin at an odd element, or whose rows have an odd stride.
    let odd = of.numbers(&[70, 65]).narrow(1, 1, 64).unwrap();
    made.push(odd.mm(&of.numbers(&[65, 80]).narrow(0, 1, 64).unwrap()).unwrap());
    made.push(odd.t().unwrap().mm(&of.numbers(&[70, 64])).unwrap());
    // Several blocks share the addends. The added matrix is not a factor, and is not rounded.
    let product = of.numbers(&[70, 1504]).mm(&of.transposed([1504, 72])).unwrap();
    let bias = Of { change: |x| x, ..of }.numbers(&[72]);
    let sum = bias.addmm(&of.numbers(&[70, 24]), &of.numbers(&[24, 72])).unwrap();
    made.extend([product, sum, of.numbers(&[3, 20, 704]).bmm(&of.numbers(&[3, 704, 66])).unwrap()]);
    made
}

/// Results, and gradients by input and weight: the factors of each are rounded, its sums are not.
fn convolutions(of: Of) -> Vec<Tensor> {
    let mut made = Vec::new();
    let formats = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];
    for (format, (channels, groups, stride)) in formats
        .into_iter()
        .flat_map(|format| [(16, 1, 1), (16, 2, 2), (10, 1, 2)].map(|other| (format, other)))
    {
        let tracked = |sizes: &[usize]| of.numbers(sizes).to(format).unwrap().requires_grad_(true).unwrap();
        let (x, weight) = (tracked(&[2, channels, 13, 11]), tracked(&[72, channels / groups, 3, 3]));
        let options = ConvOptions::default().stride(stride).padding(1).groups(groups);
        let y = x.conv2d_with(&weight, None, options).unwrap();
        y.mul(&of.numbers(y.shape())).unwrap().sum_all().unwrap().backward().unwrap();
        made.push(y.detach());
        made.extend([x, weight].map(|leaf| leaf.grad().unwrap()));
    }
    made
}

/// Nothing else is rounded: not attention of f32, nor products of other dtypes, nor those that are too small for tensor
/// cores.
fn others() {
    let all = |precision| -> Vec<Vec<f64>> {
        set_float32_matmul_precision(precision);
        let mut made = Vec::new();
        let of = Of { device: cuda(0), dtype: DType::F32, change: |x| x };
        let head = of.numbers(&[2, 20, 16]);
        made.push(head.scaled_dot_product_attention(&head, &head).unwrap());
        for dtype in [DType::F64, DType::F16, DType::BF16, DType::I32] {
            let of = Of { dtype, ..of };
            made.push(of.numbers(&[20, 16]).mm(&of.numbers(&[16, 24])).unwrap());
        }
        made.push(of.numbers(&[5, 16]).mm(&of.numbers(&[16, 24])).unwrap());
        set_float32_matmul_precision(MatmulPrecision::Highest);
        made.iter().map(|made| made.to_vec_f64().unwrap()).collect()
    };
    assert!(all(MatmulPrecision::Highest) == all(MatmulPrecision::High));
}

/// NaN and infinities are preserved.
fn no_numbers() {
    let of = Of { device: Device::CPU, dtype: DType::F32, change: |x| x };
    let mut values = of.numbers(&[16, 16]).to_vec::<f32>().unwrap();
    (values[0], values[17], values[34]) = (f32::NAN, f32::INFINITY, -f32::INFINITY);
    let left = Tensor::from_vec(values, [16, 16]).unwrap().to_device(cuda(0)).unwrap();
    let right = Tensor::ones_with([16, 8], cuda(0)).unwrap();
    set_float32_matmul_precision(MatmulPrecision::High);
    let made = left.mm(&right).unwrap().to_vec::<f32>().unwrap();
    set_float32_matmul_precision(MatmulPrecision::Highest);
    for column in 0..8 {
        assert!(made[column].is_nan() && made[8 + column] == f32::INFINITY, "{made:?}");
        assert!(made[16 + column] == -f32::INFINITY && made[24 + column].is_finite(), "{made:?}");
    }
}

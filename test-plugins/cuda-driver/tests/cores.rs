//! Products and convolutions on tensor cores: sizes of one element to several tiles, operands stored along rows and along
//! k, aligned and unaligned, many addends for few results. The expected results are those of the CPU backend, and each
//! result is bit-identical every time.

mod support;

use keyway::nn::ConvOptions;
use keyway::{DType, Device, MemoryFormat, Tensor};
use std::fs;
use support::{cuda, load, run, stand_in};

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    if support::scenario().is_some() {
        load();
        for dtype in [DType::F16, DType::BF16] {
            same("products", dtype, products);
            same("convolutions", dtype, convolutions);
        }
    }
}

/// On chips with tensor cores for both dtypes, in each order of threads, and on one with tensor cores only for f16.
#[test]
fn tensor_cores_give_what_the_cpu_gives() {
    let Some(driver) = stand_in() else { return };
    for (seed, chip) in [("3", "90"), ("4", "80"), ("5", "86"), ("6", "75")] {
        let counts = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cores-{chip}"));
        let file = counts.to_str().unwrap();
        let machine = [
            ("KEYWAY_STAND_IN_SEED", seed),
            ("KEYWAY_STAND_IN_CHIP", chip),
            ("KEYWAY_STAND_IN_LAUNCHED", file),
        ];
        run("cores", &driver, &machine);
        let launched = fs::read_to_string(&counts).unwrap();
        for (entry, is_there) in [
            ("mm_f16_cores", true),
            ("conv_f16_cores", true),
            ("mm_bf16_cores", chip != "75"),
            ("conv_bf16_cores", chip != "75"),
            ("mm_bf16_tile", true),
        ] {
            assert_eq!(launched.contains(&format!("{entry} ")), is_there, "{entry} on {chip}: {launched}");
        }
    }
}

/// The result of `make` on a device equals that on the CPU, and is the same twice.
#[track_caller]
fn same(what: &str, dtype: DType, make: fn(Device, DType) -> Vec<Tensor>) {
    let values = |device| -> Vec<Vec<f64>> {
        make(device, dtype).iter().map(|tensor| tensor.to_vec_f64().unwrap()).collect()
    };
    let (expected, got) = (values(Device::CPU), values(cuda(0)));
    assert_eq!(expected.len(), got.len());
    // One ULP of the dtype.
    let tolerance = if dtype == DType::F16 { 1.0 / 1024.0 } else { 1.0 / 128.0 };
    for (i, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_eq!(expected.len(), got.len(), "{what} {i}");
        let largest = expected.iter().fold(0.5f64, |most, x| most.max(x.abs()));
        for (at, (wanted, own)) in expected.iter().zip(got).enumerate() {
            let near = (wanted - own).abs() <= tolerance * wanted.abs().max(largest / 256.0);
            assert!(near, "{what} {i} {dtype}, element {at}: {own}, not {wanted}");
        }
    }
    let bits = |all: Vec<Vec<f64>>| all.concat().iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
    assert!(bits(got) == bits(values(cuda(0))), "{what} {dtype}: other bits the second time");
}

/// Pseudo-random values between -1 and 1, rounded to the dtype.
fn numbers((device, dtype): (Device, DType), sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let values = (0..count).map(|i| ((i * 7919 + 13) % 1009) as f64 / 504.5 - 1.0).collect();
    Tensor::from_vec(values, sizes).unwrap().to_dtype(dtype).unwrap().to_device(device).unwrap()
}

fn products(device: Device, dtype: DType) -> Vec<Tensor> {
    let of = |sizes: &[usize]| numbers((device, dtype), sizes);
    let transposed = |sizes: &[usize]| of(&[sizes[1], sizes[0]]).t().unwrap();
    let mut made = Vec::new();
    // With aligned vector loads if the sizes are multiples of 8.
    for [rows, inner, columns] in
        [[70, 40, 136], [72, 104, 130], [65, 33, 67], [8, 8, 8], [9, 17, 100], [1, 5, 1]]
    {
        let (left, right) = ([rows, inner], [inner, columns]);
        made.push(of(&left).mm(&of(&right)).unwrap());
        made.push(transposed(&left).mm(&transposed(&right)).unwrap());
        made.push(of(&left).mm(&transposed(&right)).unwrap());
        made.push(transposed(&left).mm(&of(&right)).unwrap());
    }
    // Views that begin at an odd element, or whose rows have an odd stride.
    let (wide, tall) = (of(&[70, 65]), of(&[65, 80]));
    let odd = wide.narrow(1, 1, 64).unwrap();
    made.push(odd.mm(&tall.narrow(0, 1, 64).unwrap()).unwrap());
    made.push(odd.t().unwrap().mm(&of(&[70, 64])).unwrap());
    // Several blocks share the terms.
    let bias = of(&[72]);
    made.push(bias.addmm_with(&of(&[70, 1504]), &of(&[72, 1504]).t().unwrap(), 2.0, 0.5).unwrap());
    made.push(of(&[3, 20, 704]).bmm(&of(&[3, 704, 66])).unwrap());
    made.push(of(&[90, 1100]).mv(&of(&[1100])).unwrap());
    made
}

fn convolutions(device: Device, dtype: DType) -> Vec<Tensor> {
    let mut made = Vec::new();
    let formats = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];
    for (format, (channels, groups, stride)) in formats
        .into_iter()
        .flat_map(|format| [(16, 1, 1), (16, 2, 2), (6, 1, 2)].map(|other| (format, other)))
    {
        let tracked = |sizes: &[usize]| {
            let made = numbers((device, dtype), sizes);
            let made = if sizes.len() == 4 { made.to(format).unwrap() } else { made };
            made.requires_grad_(true).unwrap()
        };
        let (x, weight) = (tracked(&[2, channels, 13, 11]), tracked(&[72, channels / groups, 3, 3]));
        let bias = tracked(&[72]);
        let options = ConvOptions::default().stride(stride).padding(1).groups(groups);
        let y = x.conv2d_with(&weight, Some(&bias), options).unwrap();
        y.mul(&numbers((device, dtype), y.shape())).unwrap().sum_all().unwrap().backward().unwrap();
        made.push(y.detach());
        made.extend([x, weight].map(|leaf| leaf.grad().unwrap()));
    }
    made
}

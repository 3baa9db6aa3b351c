//! The kernels of networks at sizes that the suite's quick cases do not have: several tiles, and reductions of few results that
//! are split over several blocks. The expected results are those of the CPU backend, and each result is bit-identical every time.

mod support;

use keyway::nn::{ConvOptions, MaxPoolOptions};
use keyway::{DType, Device, MemoryFormat, Tensor};
use std::path::Path;
use support::{cuda, load, run, stand_in};

/// Kernels of norms that must have run: of scalars, and of vectors.
const NORMS: &[&str] = &[
    "statistics_f32",
    "normalise_f32",
    "normalise_f32_kept",
    "input_gradient_f32",
    "input_gradient_f32_sums",
    "affine_gradient_f32",
    "statistics_f32_pieces",
    "normalise_f32_pieces",
    "normalise_f16_pieces",
    "input_gradient_f32_pieces",
    "input_gradient_f32_sums_pieces",
    "input_gradient_f32_results_pieces",
    "input_gradient_f16_pieces",
    "affine_gradient_f32_pieces",
    "affine_gradient_f32_finish",
];

/// The scenarios of a started program, not a test by itself.
#[test]
fn scenarios() {
    match support::scenario().as_deref() {
        None => {}
        Some("norms") => {
            load();
            same("norms", |device| norms(device, DType::F32));
            same("norms of f16", |device| norms(device, DType::F16));
        }
        Some(_) => {
            load();
            same("products", products);
            same("convolutions", convolutions);
            same("reductions", reductions);
            same("pools", pools);
        }
    }
}

/// With threads in ascending, descending and random order.
#[test]
fn large_sizes_are_as_on_the_cpu() {
    let Some(driver) = stand_in() else { return };
    for seed in ["3", "4", "5"] {
        run("nets", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

/// The same, with all kernels of norms.
#[test]
fn norms_and_their_gradients_are_as_on_the_cpu() {
    let Some(driver) = stand_in() else { return };
    for seed in ["3", "4", "5"] {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("norms-{seed}"));
        let machine = [("KEYWAY_STAND_IN_SEED", seed), ("KEYWAY_STAND_IN_LAUNCHED", file.to_str().unwrap())];
        run("norms", &driver, &machine);
        let launched = std::fs::read_to_string(&file).unwrap();
        for entry in NORMS {
            assert!(launched.contains(&format!("{entry} ")), "{entry}: {launched}");
        }
    }
}

/// The result of `make` on a device equals that on the CPU, and is the same twice.
#[track_caller]
fn same(what: &str, make: fn(Device) -> Vec<Tensor>) {
    let values = |device| -> Vec<Vec<f32>> {
        make(device).iter().map(|tensor| tensor.to_vec::<f32>().unwrap()).collect()
    };
    let (expected, got) = (values(Device::CPU), values(cuda(0)));
    assert_eq!(expected.len(), got.len());
    for (i, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_eq!(expected.len(), got.len(), "{what} {i}");
        let largest = expected.iter().fold(1f32, |most, x| most.max(x.abs()));
        let share = if what.ends_with("f16") { 1e-3 } else { 2e-5 };
        for (at, (wanted, own)) in expected.iter().zip(got).enumerate() {
            assert!((wanted - own).abs() <= share * largest, "{what} {i}, element {at}: {own}, not {wanted}");
        }
    }
    let bits = |all: Vec<Vec<f32>>| all.concat().iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert!(bits(got) == bits(values(cuda(0))), "{what}: other bits the second time");
}

/// Pseudo-random values between -1 and 1.
fn numbers(device: Device, sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    let values = (0..count).map(|i| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0).collect();
    Tensor::from_vec(values, sizes).unwrap().to_device(device).unwrap()
}

fn products(device: Device) -> Vec<Tensor> {
    let of = |sizes: &[usize]| numbers(device, sizes);
    let bias = of(&[130]);
    vec![
        of(&[70, 40]).mm(&of(&[40, 130])).unwrap(),
        of(&[40, 70]).t().unwrap().mm(&of(&[130, 40]).t().unwrap()).unwrap(),
        bias.addmm_with(&of(&[70, 1500]), &of(&[130, 1500]).t().unwrap(), 2.0, 0.5).unwrap(),
        of(&[3, 20, 700]).bmm(&of(&[3, 700, 66])).unwrap(),
        of(&[90, 1100]).mv(&of(&[1100])).unwrap(),
        of(&[5003]).dot(&of(&[5003])).unwrap(),
    ]
}

fn convolutions(device: Device) -> Vec<Tensor> {
    let mut made = Vec::new();
    for (groups, stride) in [(1, 1), (2, 2)] {
        let tracked = |sizes: &[usize]| numbers(device, sizes).requires_grad_(true).unwrap();
        let (x, weight, bias) = (tracked(&[4, 6, 17, 15]), tracked(&[70, 6 / groups, 3, 3]), tracked(&[70]));
        let options = ConvOptions::default().stride(stride).padding(1).groups(groups);
        let y = x.conv2d_with(&weight, Some(&bias), options).unwrap();
        y.mul(&y.detach()).unwrap().sum_all().unwrap().backward().unwrap();
        made.push(y.detach());
        made.extend([x, weight, bias].map(|leaf| leaf.grad().unwrap()));
    }
    made
}

fn reductions(device: Device) -> Vec<Tensor> {
    let x = numbers(device, &[3, 30_011]);
    let mut made: Vec<Tensor> = [0.0, 1.0, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY]
        .iter()
        .flat_map(|&p| [x.norm_with(p, 1, false).unwrap(), x.norm_with(p, .., false).unwrap()])
        .collect();
    made.extend([x.softmax(1).unwrap(), x.t().unwrap().log_softmax(0).unwrap(), x.softmax(0).unwrap()]);
    made
}

/// Windows that overlap, and windows with gaps, in both memory formats; rows of more than a group of them.
fn pools(device: Device) -> Vec<Tensor> {
    let mut made = Vec::new();
    for (sizes, format) in [
        ([2, 37, 40, 43], MemoryFormat::Contiguous),
        ([2, 37, 40, 43], MemoryFormat::ChannelsLast),
        ([1, 3, 3, 300], MemoryFormat::Contiguous),
    ] {
        for (kernel, stride, padding) in [(3, 2, 1), (2, 2, 0), (3, 1, 1), (2, 3, 0)] {
            let x = numbers(device, &sizes).to(format).unwrap().detach().requires_grad_(true).unwrap();
            let options = MaxPoolOptions::new(kernel).stride(stride).padding(padding);
            let y = x.max_pool2d(options).unwrap();
            y.mul(&y.detach()).unwrap().sum_all().unwrap().backward().unwrap();
            made.extend([y.detach(), x.grad().unwrap()]);
        }
    }
    made
}

/// Images with planes of whole vectors and of others, a few long rows that blocks share, and a view that begins at an
/// unaligned address.
fn norms(device: Device, dtype: DType) -> Vec<Tensor> {
    let mut made = Vec::new();
    let mut keep = |y: Tensor, leaves: &[&Tensor]| {
        y.mul(&y.detach().sin().unwrap()).unwrap().sum_all().unwrap().backward().unwrap();
        made.push(y.detach().to_dtype(DType::F32).unwrap());
        for leaf in leaves {
            made.push(leaf.grad().unwrap().to_dtype(DType::F32).unwrap());
            leaf.zero_grad();
        }
    };
    for sizes in [[3, 4, 6, 8], [2, 6, 5, 7], [2, 2, 90, 80], [3, 2, 90, 81]] {
        let leaf = |sizes: &[usize]| {
            let own = numbers(device, sizes).to_dtype(dtype).unwrap();
            own.detach().requires_grad_(true).unwrap()
        };
        let (x, weight, bias) = (leaf(&sizes), leaf(&sizes[1..2]), leaf(&sizes[1..2]));
        let all = [&x, &weight, &bias];
        let affine = (Some(&weight), Some(&bias));
        keep(x.batch_norm(None, affine.0, affine.1, true, 0.1, 1e-3).unwrap(), &all);
        keep(x.instance_norm_with(None, affine.0, affine.1, true, 0.1, 1e-3).unwrap(), &all);
        keep(x.group_norm(2, affine.0, affine.1).unwrap(), &all);
        keep(x.layer_norm(&sizes[1..], None, None).unwrap(), &[&x]);
        keep(x.rms_norm(&sizes[1..], None).unwrap(), &[&x]);
        let scale = leaf(&sizes[3..]);
        keep(x.rms_norm(&sizes[3..], Some(&scale)).unwrap(), &[&x, &scale]);
        let long = x.transpose(0, 1).unwrap();
        keep(long.batch_norm(None, None, None, true, 0.1, 1e-3).unwrap(), &[&x]);
        let from_the_second = x.narrow(3, 1, sizes[3] - 1).unwrap();
        keep(from_the_second.group_norm(1, None, None).unwrap(), &[&x]);
    }
    made
}

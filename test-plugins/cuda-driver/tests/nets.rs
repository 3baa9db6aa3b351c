//! The kernels of nets at sizes that the suite's quick cases do not have: several tiles, and few results of so many terms that
//! several blocks share them. The CPU backend gives what is expected, and each result has the same bits every time.

mod support;

use keyway::nn::ConvOptions;
use keyway::{Device, Tensor};
use support::{cuda, load, run, stand_in};

/// Not a test of its own: what a started program does.
#[test]
fn scenarios() {
    if support::scenario().is_some() {
        load();
        same("products", products);
        same("convolutions", convolutions);
        same("reductions", reductions);
    }
}

/// In an order of the threads each: forward, backward, at random.
#[test]
fn large_sizes_are_as_on_the_cpu() {
    let Some(driver) = stand_in() else { return };
    for seed in ["3", "4", "5"] {
        run("nets", &driver, &[("KEYWAY_STAND_IN_SEED", seed)]);
    }
}

/// What `make` makes on a device is what it makes on the CPU, and twice the same.
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
        for (at, (wanted, own)) in expected.iter().zip(got).enumerate() {
            assert!((wanted - own).abs() <= 2e-5 * largest, "{what} {i}, element {at}: {own}, not {wanted}");
        }
    }
    let bits = |all: Vec<Vec<f32>>| all.concat().iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert!(bits(got) == bits(values(cuda(0))), "{what}: other bits the second time");
}

/// Numbers between -1 and 1 of some disorder.
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

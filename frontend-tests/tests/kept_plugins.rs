//! Plugins that were built once, for ABI 1, and are kept as they were: this host loads them and they work as on their first
//! day. What they are, and how they were built, stands in `plugin-sdk/kept/README.md`.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use keyway::autograd::BackwardOptions;
use keyway::dispatcher::op::Arg;
use keyway::ops::by_name;
use keyway::{DType, Device, Layout, Tensor, ops, runtime};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin-sdk/kept/abi-1");

/// The bytes of a kept plugin, which are those that the list states.
fn bytes(name: &str) -> Vec<u8> {
    let packed = std::fs::File::open(Path::new(KEPT).join(format!("{name}.so.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let list = std::fs::read_to_string(Path::new(KEPT).join("SHA256SUMS")).unwrap();
    assert!(list.lines().any(|line| line == format!("{hash}  {name}.so")), "{name} is another file: {hash}");
    bytes
}

/// Loads it into this process, where it stays.
fn load(name: &str) {
    let folder: PathBuf = tempfile::tempdir().unwrap().keep();
    let library = folder.join(format!("lib{name}.so"));
    std::fs::write(&library, bytes(name)).unwrap();
    let loaded = runtime::load_backends(&[library]).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
}

#[test]
fn nothing_is_kept_that_the_list_does_not_state() {
    let mut kept: Vec<String> = std::fs::read_dir(KEPT)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".so.gz").map(str::to_string))
        .collect();
    kept.sort();
    assert_eq!(kept, ["arena_device", "c_plugin", "diagonal_plugin", "fp8_plugin", "softsign_plugin"]);
    kept.iter().for_each(|name| drop(bytes(name)));
}

/// A kernel names the signature that it was written against, so an op keeps its own within ABI 1: one that needs another argument
/// gets a sibling, whose decomposition calls it.
#[test]
fn ops_keep_their_signatures() {
    let list = std::fs::read_to_string(Path::new(KEPT).join("signatures.txt")).unwrap();
    let now = ops::all().map(|op| (op.name(), op.entry().unwrap().schema.signature.as_str()));
    let now: BTreeMap<&str, &str> = now.collect();
    for line in list.lines() {
        let (op, signature) = line.split_once(' ').unwrap();
        assert_eq!(now.get(op), Some(&signature), "kernels of `{op}` were written for {signature}");
    }
    assert!(list.lines().count() >= 272, "a signature is never removed");
}

/// A device with its memory, copies and kernels.
#[test]
fn a_device_in_rust_trains() {
    load("arena_device");
    let device = Device::new("example.org/arena", 0).unwrap();
    let there = |values: &[f32], sizes: &[usize]| {
        Tensor::from_vec(values.to_vec(), sizes).unwrap().to_device(device).unwrap()
    };
    let x = there(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    let w = there(&[0.5, -1.0, 0.25, 2.0], &[2, 2]).requires_grad_(true).unwrap();
    let y = x.mm(&w).unwrap().relu().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 3.0, 2.5, 5.0]);
    y.sum_all().unwrap().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec::<f32>().unwrap(), [4.0, 4.0, 6.0, 6.0]);
}

/// An op with its derivative, forms and samples.
#[test]
fn an_op_in_rust_is_differentiated() {
    load("softsign_plugin");
    let x = Tensor::new([-3.0f64, 0.0, 1.0]).unwrap().requires_grad_(true).unwrap();
    let y = by_name::call("softsign", &[(&x).into()]).unwrap().remove(0);
    assert_eq!(y.to_vec::<f64>().unwrap(), [-0.75, 0.0, 0.5]);
    let gradients = Some(vec![Tensor::new([1.0f64, 1.0, 1.0]).unwrap()]);
    y.backward_with(BackwardOptions { gradients, ..BackwardOptions::default() }).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [0.0625, 1.0, 0.25]);
    assert_eq!(by_name::samples("softsign").unwrap().len(), 2);
}

/// A dtype, which the host stores, converts and prints.
#[test]
fn a_dtype_in_rust_is_stored_and_printed() {
    load("fp8_plugin");
    let fp8 = DType::from_name("example.org/fp8_e4m3").unwrap();
    let x = Tensor::new([1.1f32, -448.0, 1000.0]).unwrap().to_dtype(fp8).unwrap();
    assert_eq!(x.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap()[..2], [1.125, -448.0]);
    assert!(format!("{x}").contains("1.125"), "{x}");
}

/// A layout with its conversions.
#[test]
fn a_layout_in_rust_is_converted() {
    load("diagonal_plugin");
    let layout = Layout::from_name("example.org/diagonal").unwrap();
    let dense = Tensor::from_vec(vec![1.0f64, 0.0, 0.0, -2.0], [2, 2]).unwrap();
    let d = dense.to_layout(layout).unwrap();
    assert_eq!(d.component("values").unwrap().to_vec::<f64>().unwrap(), [1.0, -2.0]);
    assert_eq!(d.to_strided().unwrap().to_vec::<f64>().unwrap(), [1.0, 0.0, 0.0, -2.0]);
}

/// An op and a device of a plugin that knows the header alone.
#[test]
fn a_plugin_in_c_serves() {
    load("c_plugin");
    let a = Tensor::new([1.0f32, 2.0]).unwrap();
    let made = by_name::call("axpby", &[(&a).into(), (&a).into(), Arg::Float(0.5), Arg::Int(10)]).unwrap();
    assert_eq!(made[0].to_vec::<f32>().unwrap(), [10.5, 21.0]);
    let there = a.to_device(Device::new("example.org/c-device", 0).unwrap()).unwrap();
    assert_eq!((&there + &there).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
}

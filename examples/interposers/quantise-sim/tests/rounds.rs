//! The plugin, loaded by the real loader beside the installed CPU backend.

use keyway::dispatcher::explain::explain;
use keyway::dispatcher::registry::find_op;
use keyway::{DType, Device, Layout, Tensor, interposer, runtime};

fn load() {
    let library = std::env::current_exe().unwrap().with_file_name("libquantise_sim.so");
    let loaded = runtime::load_backends(&[library]).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
}

#[test]
fn products_are_rounded_where_it_is_on_and_gradients_pass() {
    load();
    let a =
        Tensor::from_vec(vec![127.0f64, 0.4, 50.6, 0.0], &[2, 2]).unwrap().requires_grad_(true).unwrap();
    let eye = Tensor::from_vec(vec![1.0f64, 0.0, 0.0, 1.0], &[2, 2]).unwrap();
    let exact = a.mm(&eye).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(exact, [127.0, 0.4, 50.6, 0.0]);

    let sim = interposer("quantise-sim").unwrap();
    let on = sim.enter();
    let rounded = a.mm(&eye).unwrap();
    assert_eq!(rounded.to_vec::<f64>().unwrap(), [127.0, 0.0, 51.0, 0.0]);
    // Other ops are not changed.
    assert_eq!(a.mul(1.0).unwrap().to_vec::<f64>().unwrap(), exact);
    rounded.sum_all().unwrap().backward().unwrap();
    assert_eq!(a.grad().unwrap().to_vec::<f64>().unwrap(), [1.0; 4]);
    drop(on);
    assert_eq!(a.mm(&eye).unwrap().to_vec::<f64>().unwrap(), exact);
    // The caller's tensor is unchanged.
    assert_eq!(a.to_vec::<f64>().unwrap(), exact);
}

#[test]
fn the_readme_shows_who_acts_first() {
    load();
    let explained = explain(find_op("mm").unwrap(), Device::CPU, Layout::STRIDED, DType::F32);
    // A second backend for the CPU may be installed, and follows this one.
    let text = explained.to_string().lines().take(5).collect::<Vec<_>>().join("\n");
    assert!(include_str!("../../README.md").contains(&text), "the README lacks:\n{text}");
    assert_eq!(explained.interposers[0].name, "quantise-sim");
    assert!(explained.candidates[0].chosen && explained.verdict.contains("`keyway-cpu`"), "{text}");
}

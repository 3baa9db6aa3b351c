//! The plugin, loaded by the real loader without any other backend.

use keyway::autograd::BackwardOptions;
use keyway::dispatcher::explain::explain;
use keyway::dispatcher::registry::find_op;
use keyway::{DType, Device, Layout, Tensor, runtime};

#[test]
fn the_op_and_its_derivative_arrive() {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libsoftsign_plugin.so");
    let loaded = runtime::load_backends(&[library]).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);

    let x = Tensor::new(&[-3.0f64, 0.0, 1.0]).unwrap().requires_grad_(true).unwrap();
    let y = keyway::ops::by_name::call("softsign", &[(&x).into()]).unwrap().remove(0);
    assert_eq!(y.to_vec::<f64>().unwrap(), [-0.75, 0.0, 0.5]);
    let gradients = Some(vec![Tensor::new(&[1.0f64, 1.0, 1.0]).unwrap()]);
    y.backward_with(BackwardOptions { gradients, ..BackwardOptions::default() }).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [0.0625, 1.0, 0.25]);
}

#[test]
fn every_form_and_the_samples_are_there() {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libsoftsign_plugin.so");
    runtime::load_backends(&[library]).unwrap();
    let x = Tensor::new(&[-3.0f64, 1.0]).unwrap();
    keyway::ops::by_name::call_in_place("softsign", &[(&x).into()]).unwrap();
    assert_eq!(x.to_vec::<f64>().unwrap(), [-0.75, 0.5]);
    assert_eq!(keyway::ops::by_name::samples("softsign").unwrap().len(), 2);
    let expected = keyway::ops::by_name::reference("softsign", &[(&x).into()]).unwrap().unwrap();
    assert_eq!(expected[0].to_vec::<f64>().unwrap()[1], 1.0 / 3.0);
}

#[test]
fn the_readme_shows_who_serves_what() {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libsoftsign_plugin.so");
    runtime::load_backends(&[library]).unwrap();
    for (dtype, served) in [(DType::F32, true), (DType::F16, false)] {
        let explained = explain(find_op("softsign").unwrap(), Device::CPU, Layout::STRIDED, dtype);
        let text = explained.to_string();
        assert!(include_str!("../README.md").contains(&text), "the README lacks:\n{text}");
        assert_eq!(explained.candidates.first().is_some_and(|first| first.chosen), served);
        assert_eq!(explained.verdict.contains("`example.org/softsign`"), served);
    }
}

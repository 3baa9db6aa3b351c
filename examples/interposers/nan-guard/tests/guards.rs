//! The plugin, loaded by the real loader beside the installed CPU backend.

use keyway::dispatcher::explain::explain;
use keyway::dispatcher::registry::find_op;
use keyway::{DType, Device, Layout, Tensor, interposer, runtime};

fn load() {
    let library = std::env::current_exe().unwrap().with_file_name("libnan_guard.so");
    let loaded = runtime::load_backends(&[library]).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
}

#[test]
fn the_op_that_makes_the_first_nan_is_named() {
    load();
    let x = Tensor::from_vec(vec![1.0f32, 2.0, -3.0, 4.0], &[2, 2]).unwrap();
    // It is off until enabled.
    assert!(x.log().unwrap().to_vec::<f32>().unwrap()[2].is_nan());

    let guard = interposer("nan-guard").unwrap();
    assert!(!guard.is_on());
    let on = guard.enter();
    assert!(guard.is_on());
    assert_eq!(x.exp().unwrap().shape(), [2, 2]);
    let text = x.log().unwrap_err().to_string();
    for part in ["example.org/nan-guard", "`log` made the first NaN (forward pass)", "f32 [2, 2], at [1, 0]"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // An op that propagates a NaN is not reported.
    let spoilt = {
        let _off = guard.exclude();
        x.log().unwrap()
    };
    spoilt.add(&x).unwrap();
    let text = x.copy().unwrap().sqrt_().unwrap_err().to_string();
    assert!(text.contains("`sqrt` made the first NaN"), "{text}");
    drop(on);
    assert!(!guard.is_on());
}

#[test]
fn the_backward_pass_is_watched() {
    load();
    let x = Tensor::new(&[0.0f64]).unwrap().requires_grad_(true).unwrap();
    // The derivative of sqrt is infinite at 0, and 0 times infinity is NaN.
    let y = x.sqrt().unwrap().mul(0.0).unwrap().sum_all().unwrap();
    let _on = interposer("nan-guard").unwrap().enter();
    let text = y.backward().unwrap_err().to_string();
    assert!(text.contains("(backward pass)"), "{text}");
}

#[test]
fn the_readme_shows_who_acts_first() {
    load();
    let explained = explain(find_op("log").unwrap(), Device::CPU, Layout::STRIDED, DType::F32);
    // A second backend for the CPU may be installed, and follows this one.
    let text = explained.to_string().lines().take(5).collect::<Vec<_>>().join("\n");
    assert!(include_str!("../../README.md").contains(&text), "the README lacks:\n{text}");
    assert_eq!(explained.interposers[0].name, "nan-guard");
    assert!(explained.candidates[0].chosen && explained.verdict.contains("`keyway-cpu`"), "{text}");
}

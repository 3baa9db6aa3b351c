//! The plugin in plain C of `examples/c-plugin`, compiled by the system's compiler as its README says.

#[path = "../../plugin-sdk/tests/c_compiler/mod.rs"]
mod c_compiler;

use keyway::ops::by_name;
use keyway::{DType, Device, Layout, Tensor, runtime};
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::op::Arg;
use keyway_dispatcher::registry::find_op;
use std::path::Path;

/// Loads the plugin. `false` without a compiler.
fn load() -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/c-plugin/plugin.c");
    static ONCE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ONCE.get_or_init(|| {
        // Each test may be a separate process, concurrent with the others.
        let name = format!("keyway_c_example_{}", std::process::id());
        let Some(library) = c_compiler::plugin(&source, &name, &[]) else { return false };
        let loaded = runtime::load_backends(&[library]).unwrap();
        assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
        true
    })
}

fn ramp(sizes: &[usize]) -> Tensor {
    let numel = sizes.iter().product::<usize>();
    Tensor::from_vec((0..numel).map(|i| i as f32).collect(), sizes).unwrap()
}

#[test]
fn an_op_in_c_runs_on_the_cpu() {
    if !load() {
        return;
    }
    let (a, b) = (ramp(&[2, 3]), ramp(&[3, 2]).t().unwrap());
    let made = by_name::call("axpby", &[(&a).into(), (&b).into(), Arg::Float(0.5), Arg::Int(10)]).unwrap();
    assert_eq!(made[0].to_vec::<f32>().unwrap(), [0.0, 20.5, 41.0, 11.5, 32.0, 52.5]);
    // A kernel in C checks four arguments by the letters of its signature: other kinds never reach it.
    let call = |args: &[Arg<'_>]| by_name::call("axpby", args).unwrap_err().to_string();
    let (x, one) = (Arg::from(&a), Arg::Int(1));
    let text = call(&[x]);
    assert!(text.contains("must be 2 to 4, those of `axpby(") && text.contains("got 1"), "{text}");
    // Trailing arguments with defaults may be omitted.
    let sum = by_name::call("axpby", &[x, x]).unwrap();
    assert_eq!(sum[0].to_vec::<f32>().unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    assert!(call(&[x, x, one, one, one]).contains("got 5"));
    for (at, other) in [(0, Arg::Str("text")), (1, Arg::None), (2, x), (3, Arg::Ints(&[1]))] {
        let mut args = [x, x, one, one];
        args[at] = other;
        let text = call(&args);
        assert!(text.contains(["self", "other", "alpha", "beta"][at]) && text.contains("must be"), "{text}");
    }
    // The op has no derivative, and reports this if one is requested.
    let grad = ramp(&[2]).requires_grad_(true).unwrap();
    let error = by_name::call("axpby", &[(&grad).into(), (&grad).into(), one, one]).unwrap_err().to_string();
    assert!(error.contains("axpby"), "{error}");
    // There is no kernel for f64: the error names the plugins that serve the op.
    let wide = a.to_dtype(DType::F64).unwrap();
    let error = by_name::call("axpby", &[(&wide).into(), (&wide).into(), one, one]).unwrap_err().to_string();
    assert!(error.contains("axpby: no kernel for") && error.contains("example.org/c-plugin"), "{error}");
}

#[test]
fn a_device_in_c_adds_and_prints() {
    if !load() {
        return;
    }
    let device = Device::new("example.org/c-device", 0).unwrap();
    assert_eq!(keyway_dispatcher::device::properties(device).unwrap().name, "a device in C");
    let a = ramp(&[2, 2]).to_device(device).unwrap();
    let sum = (&a + &a.t().unwrap()).unwrap();
    assert_eq!(sum.device(), device);
    assert_eq!(sum.to_vec::<f32>().unwrap(), [0.0, 3.0, 3.0, 6.0]);
    let scaled = (&sum * 0.5).unwrap();
    assert_eq!(scaled.to_device(Device::CPU).unwrap().to_vec::<f32>().unwrap(), [0.0, 1.5, 1.5, 3.0]);
    let text = format!("{scaled}");
    assert!(text.contains("1.5") && text.contains("example.org/c-device"), "{text}");
    // Values that argument marshalling must not change.
    let odd = Tensor::new([f32::INFINITY, -0.0, f32::NAN]).unwrap().to_device(device).unwrap();
    let bits: Vec<u32> = odd.copy().unwrap().to_vec::<f32>().unwrap().iter().map(|v| v.to_bits()).collect();
    assert_eq!(bits[..2], [f32::INFINITY.to_bits(), (-0.0f32).to_bits()]);
    // More memory than there is: an error, and the device works on.
    let error = Tensor::empty_with([1usize << 50], device).unwrap_err().to_string();
    assert!(error.contains("example.org/c-device"), "{error}");
    assert_eq!((&a + &a).unwrap().to_vec::<f32>().unwrap(), [0.0, 2.0, 4.0, 6.0]);
}

#[test]
fn its_readme_shows_who_serves_what() {
    if !load() {
        return;
    }
    let device = Device::new("example.org/c-device", 0).unwrap();
    for (op, device) in [("axpby", Device::CPU), ("add", device)] {
        let explained = explain(find_op(op).unwrap(), device, Layout::STRIDED, DType::F32);
        let text = explained.to_string();
        assert!(
            include_str!("../../examples/c-plugin/README.md").contains(&text),
            "the README lacks:\n{text}"
        );
        assert!(explained.candidates[0].chosen && explained.verdict.contains("`example.org/c-plugin`"));
    }
}

#[test]
fn a_backward_op_that_does_not_exist_fails_at_the_forward_call() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/c/mistaken.c");
    let name = format!("keyway_c_mistaken_{}", std::process::id());
    let Some(library) = c_compiler::plugin(&source, &name, &["-DMISTAKE=BACKWARD"]) else { return };
    let loaded = runtime::load_backends(&[library]).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    let x = ramp(&[2]).requires_grad_(true).unwrap();
    let error = by_name::call("mistaken_same", &[(&x).into()]).unwrap_err().to_string();
    for part in
        ["mistaken_same: no derivative", "backward op `mistaken_same_backwrd`", "keyway.test/mistaken"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    // Without a gradient a kernel is requested, and there is none.
    let error = by_name::call("mistaken_same", &[(&x.detach()).into()]).unwrap_err().to_string();
    assert!(error.contains("mistaken_same: no kernel for"), "{error}");
}

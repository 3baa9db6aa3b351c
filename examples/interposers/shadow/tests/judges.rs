//! The plugin, loaded by the real loader beside the installed CPU backend.

use keyway::dispatcher::explain::explain;
use keyway::dispatcher::registry::find_op;
use keyway::ops::by_name;
use keyway::{Arg, DType, Device, Layout, Tensor, interposer, runtime};

fn worst(op: &str) -> f64 {
    let like = Tensor::new(0.0f32).unwrap();
    let made = by_name::call("shadow_worst", &[(&like).into(), Arg::Str(op)]).unwrap();
    made[0].to_vec::<f64>().unwrap()[0]
}

fn load() {
    let library = std::env::current_exe().unwrap().with_file_name("libshadow.so");
    let loaded = runtime::load_backends(&[library]).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
}

#[test]
fn each_op_is_run_twice_and_the_worst_difference_kept() {
    load();
    let x = Tensor::new(&[0.1f32, 1.3, -2.7]).unwrap();
    x.exp().unwrap();
    assert!(worst("exp").is_nan(), "nothing is judged while it is off");
    let on = interposer("shadow").unwrap().enter();
    let fine = x.exp().unwrap();
    let single = worst("exp");
    assert!(single > 0.0 && single < 1e-6, "{single}");
    // Half precision differs more.
    x.to_dtype(DType::F16).unwrap().exp().unwrap();
    assert!(worst("exp") > 1e-5, "{}", worst("exp"));
    // In place: the reference run reads the previous value of the argument.
    let changed = x.copy().unwrap();
    changed.mul_(3.0).unwrap();
    assert!(worst("mul") < 1e-6, "{}", worst("mul"));
    drop(on);
    let like = Tensor::new(0.0f32).unwrap();
    let ops = by_name::call("shadow_report", &[(&like).into()]).unwrap();
    assert!(ops[0].to_vec::<f64>().unwrap()[0] >= 2.0);
    assert_eq!(fine.dtype(), DType::F32);
}

#[test]
fn a_named_device_that_agrees_with_itself() {
    const NAME: &str = "a_named_device_that_agrees_with_itself";
    if std::env::var_os("KEYWAY_SHADOW").is_none() {
        // The environment is read once, so this test continues in its own process.
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        assert!(again.args([NAME, "--exact"]).env("KEYWAY_SHADOW", "cpu").status().unwrap().success());
        return;
    }
    load();
    let x = Tensor::new(&[0.1f32, 1.3, -2.7]).unwrap();
    let on = interposer("shadow").unwrap().enter();
    x.exp().unwrap();
    drop(on);
    assert_eq!(worst("exp"), 0.0);
}

#[test]
fn the_readme_shows_who_acts_first() {
    load();
    let explained = explain(find_op("exp").unwrap(), Device::CPU, Layout::STRIDED, DType::F32);
    // A second backend for the CPU may be installed, and follows this one.
    let text = explained.to_string().lines().take(5).collect::<Vec<_>>().join("\n");
    assert!(include_str!("../../README.md").contains(&text), "the README lacks:\n{text}");
    assert_eq!(explained.interposers[0].name, "shadow");
    assert!(explained.candidates[0].chosen && explained.verdict.contains("`keyway-cpu`"), "{text}");
}

//! Shared code of the rehearsals: finding and loading the test plugins.
#![allow(dead_code, reason = "each test program uses a part of it")]

use keyway::{Device, Tensor, runtime};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

/// Cargo leaves the libraries of dev-dependencies beside the test program.
fn built(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("the test program has a path");
    program.parent().expect("the test program lies in a folder").join(format!(
        "{}{name}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ))
}

/// Loads the CPU backend and these plugins with the real loader. The tests of one program share devices and
/// their statistics, so they run one at a time while they hold the guard.
pub fn load(names: &[&str]) -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let paths: Vec<PathBuf> = ["keyway_backend_cpu"].iter().chain(names).map(|n| built(n)).collect();
    runtime::start_with(&paths[..1]).expect("the runtime starts");
    let loaded = runtime::load_backends(&paths).expect("the runtime starts");
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    guard
}

/// Device `index` of the asynchronous test plugin.
pub fn remote(index: u16) -> Device {
    Device::new("test.keyway/remote", index).expect("there is room for the name")
}

/// A matrix of consecutive integers.
pub fn ramp(sizes: &[usize]) -> Tensor {
    let count = sizes.iter().product::<usize>();
    Tensor::from_vec((0..count).map(|i| i as f32 * 0.25 - 1.0).collect(), sizes).expect("the length fits")
}

/// The message of an error.
pub fn message<T>(result: keyway::Result<T>) -> String {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

/// Fails unless all values are within `tolerance` of each other.
#[track_caller]
pub fn assert_close(got: &[f64], wanted: &[f64], tolerance: f64) {
    assert_eq!(got.len(), wanted.len());
    for (i, (g, w)) in got.iter().zip(wanted).enumerate() {
        assert!((g - w).abs() <= tolerance * w.abs().max(1.0), "element {i}: got {g}, expected {w}");
    }
}

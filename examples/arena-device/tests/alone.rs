//! A program that has this device and no other backend, not even one for the CPU.

mod support;

use keyway::data::{DataLoader, Digits};
use keyway::dispatcher::registry;
use keyway::nn::{Linear, Module, functional};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::{Device, runtime};

/// Set in the program without other backends.
const ALONE: &str = "ARENA_DEVICE_ALONE";

#[test]
fn a_step_of_training_needs_no_other_backend() {
    if std::env::var_os(ALONE).is_none() {
        // The environment has the path of the other backends, so this test continues in a process with another environment.
        let nowhere = std::env::temp_dir().join("keyway-tests-nowhere");
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["a_step_of_training_needs_no_other_backend", "--exact"]).env(ALONE, "1");
        again.env("KEYWAY_BACKEND_PATH", &nowhere).env("XDG_DATA_HOME", &nowhere);
        assert!(again.status().unwrap().success());
        return;
    }
    let loaded = runtime::load_backends(&[support::library()]).unwrap();
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    assert_eq!(registry::plugins().len(), 1);
    let device = Device::new("example.org/arena", 0).unwrap();
    let (train, _) = Digits::train_test().unwrap();
    let model = Linear::new(64, 10).unwrap();
    model.to_device(device).unwrap();
    let mut optimizer =
        Sgd::new(model.parameters(), SgdOptions { lr: 0.5, momentum: 0.9, ..SgdOptions::default() }).unwrap();
    let mut losses = Vec::new();
    for batch in DataLoader::new(train, 256).unwrap().shuffle(0).epoch(0) {
        let batch = batch.unwrap();
        let inputs = batch.inputs.to_device(device).unwrap();
        let targets = batch.targets.to_device(device).unwrap();
        optimizer.zero_grad();
        let loss = functional::cross_entropy(&model.forward(&inputs).unwrap(), &targets).unwrap();
        loss.backward().unwrap();
        optimizer.step().unwrap();
        losses.push(loss.detach().item::<f32>().unwrap());
    }
    assert!(losses.last() < losses.first(), "{losses:?}");
}

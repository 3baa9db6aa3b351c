//! Data sets in the host's memory where no backend is installed: the host picks their rows itself.

use keyway::data::{DataLoader, Dataset, Digits, TensorDataset};
use keyway::{DType, Tensor, runtime};

/// Set in the program without backends.
const ALONE: &str = "KEYWAY_TEST_ALONE";

#[test]
fn rows_are_picked_without_kernels() {
    if std::env::var_os(ALONE).is_none() {
        // The environment says where backends are, so this test goes on in a program that has another one.
        let nowhere = std::env::temp_dir().join("keyway-tests-nowhere");
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["rows_are_picked_without_kernels", "--exact"]).env(ALONE, "1");
        again.env("KEYWAY_BACKEND_PATH", &nowhere).env("XDG_DATA_HOME", &nowhere);
        assert!(again.status().unwrap().success());
        return;
    }
    runtime::start().unwrap();
    assert!(keyway::dispatcher::registry::kernels().is_empty());
    let inputs = Tensor::from_vec((0..24).collect::<Vec<i32>>(), [4, 3, 2]).unwrap();
    // A part of a larger tensor begins somewhere in its memory.
    let targets = Tensor::new([9i64, 0, 10, 20, 30]).unwrap().narrow(0, 1, 4).unwrap();
    let data = TensorDataset::new(inputs, targets).unwrap();
    let batch = data.batch(&[3, 0, 3]).unwrap();
    assert_eq!((batch.inputs.shape(), batch.inputs.dtype()), ([3, 3, 2].as_slice(), DType::I32));
    let wanted: Vec<i32> = (18..24).chain(0..6).chain(18..24).collect();
    assert_eq!(batch.inputs.to_vec::<i32>().unwrap(), wanted);
    assert_eq!(batch.targets.to_vec::<i64>().unwrap(), [30, 0, 30]);
    assert_eq!(data.batch(&[]).unwrap().inputs.shape(), [0, 3, 2]);
    assert!(data.batch(&[4]).unwrap_err().to_string().contains('4'));

    let (train, _) = Digits::train_test().unwrap();
    let first = DataLoader::new(train, 32).unwrap().shuffle(0).epoch(0).next().unwrap().unwrap();
    assert_eq!((first.inputs.shape(), first.targets.shape()), ([32, 64].as_slice(), [32].as_slice()));
}

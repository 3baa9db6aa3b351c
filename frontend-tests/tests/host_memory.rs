//! Host memory that does not suffice for the values of a tensor is an error that says how much was asked for.

use keyway::io::safetensors::{SafetensorsError, save};
use keyway::nn::StateDict;
use keyway::{DType, Error, Result, Tensor};
use std::fmt::Debug;

/// More bytes than any machine gives, of a tensor that has one.
fn huge() -> Tensor {
    Tensor::new(1u8).unwrap().expand([1usize << 40, 1 << 10]).unwrap()
}

fn out_of_memory<T: Debug>(result: Result<T>, bytes: u64) {
    match result {
        Err(Error::Dispatch(error @ keyway_dispatcher::Error::OutOfMemory { requested, .. })) => {
            assert_eq!(requested, bytes);
            assert!(error.to_string().contains(&format!("{bytes} bytes were asked for")), "{error}");
        }
        other => panic!("expected out of memory, got {other:?}"),
    }
}

#[test]
fn values_that_do_not_fit_the_host() -> Result<()> {
    out_of_memory(huge().to_vec::<u8>(), 1 << 50);
    out_of_memory(huge().to_bytes(), 1 << 50);
    out_of_memory(huge().to_vec_f64(), 1 << 53);
    let wide = Tensor::new(1.0f32)?.expand([1usize << 40, 1 << 10])?;
    out_of_memory(wide.to_vec::<f32>(), 1 << 52);
    out_of_memory(wide.to_vec_f64(), 1 << 53);
    out_of_memory(Tensor::empty_with([1usize << 50], DType::U8), 1 << 50);
    // No elements, and rows that take room all the same.
    let row = size_of::<Vec<u8>>() as u64;
    out_of_memory(Tensor::empty_with([1usize << 45, 0], DType::U8)?.to_vec2::<u8>(), row << 45);
    out_of_memory(Tensor::empty_with([1usize << 45, 2, 0], DType::U8)?.to_vec3::<u8>(), row << 45);
    out_of_memory(Tensor::empty_with([1, 1usize << 45, 0], DType::U8)?.to_vec3::<u8>(), row << 45);
    Ok(())
}

/// Tables of indices that ops fill on the host: their length is a size that the caller names, of a tensor that repeats an element.
#[test]
fn tables_that_do_not_fit_the_host() -> Result<()> {
    const LONG: usize = 1 << 50;
    let x = Tensor::new([1.0f32, 2.0, 3.0])?.requires_grad_(true)?;
    let padded = x.pad_with((0, LONG as i64), keyway::nn::PadMode::Replicate, 0);
    assert!(
        matches!(padded, Err(Error::Dispatch(keyway_dispatcher::Error::OutOfMemory { .. }))),
        "{padded:?}"
    );
    let long = Tensor::new([1.0f32])?.expand(LONG)?;
    let running = long.cummax(0);
    assert!(
        matches!(running, Err(Error::Dispatch(keyway_dispatcher::Error::OutOfMemory { .. }))),
        "{running:?}"
    );
    let wide = Tensor::new([[1.0f32]])?.expand((1usize << 25, 1usize << 25))?;
    let lower = wide.tril();
    assert!(matches!(lower, Err(Error::Dispatch(keyway_dispatcher::Error::OutOfMemory { .. }))), "{lower:?}");
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn a_save_needs_no_copy_of_a_tensor() {
    // A device that takes nothing: the error is the file's, not that of an allocation.
    let error = save("/dev/full", &StateDict::from([("w".to_string(), huge())])).unwrap_err();
    assert!(
        matches!(&error, Error::Safetensors(SafetensorsError::Write { source, .. })
            if source.kind() == std::io::ErrorKind::StorageFull),
        "{error:?}"
    );
}

/// Set in a child process that has little address space.
const CHILD: &str = "KEYWAY_TEST_LITTLE_MEMORY";

#[test]
#[cfg(target_os = "linux")]
fn a_slice_that_cannot_be_copied() {
    const BYTES: usize = 1 << 30;
    if std::env::var_os(CHILD).is_some() {
        let values = vec![0u8; BYTES];
        let error = Tensor::new(&values).expect_err("the limit leaves no room for a second gibibyte");
        println!("{error}");
        let small = Tensor::new(&values[..10]).unwrap();
        assert_eq!(small.to_vec::<u8>().unwrap(), [0; 10]);
        return;
    }
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 1800000; exec \"$0\" --exact a_slice_that_cannot_be_copied --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("out of memory on cpu: {BYTES} bytes were asked for")), "{text}");
}

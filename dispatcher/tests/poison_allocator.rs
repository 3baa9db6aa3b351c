//! A plugin that panics in its allocator: the call is an error, the plugin is not called again, the host lives.

mod table_support;

use keyway_dispatcher::memory::{read_bytes, write_bytes};
use keyway_dispatcher::tensor::TensorImpl;
use keyway_dispatcher::{DType, Device};
use table_support::*;

#[test]
fn an_allocator_that_fails_and_one_that_panics() {
    let _one = load(&["keyway_test_faulty"]);
    let twin = Device::new("test.keyway/twin", 0).unwrap();
    let kept = TensorImpl::empty(&[4], DType::F32, twin).unwrap();
    write_bytes(kept.storage().unwrap(), 0, &[7; 16]).unwrap();
    let text = TensorImpl::empty(&[1414], DType::F32, twin).unwrap_err().to_string();
    assert!(text.contains("keyway.test/faulty") && text.contains("told to fail in the allocator"), "{text}");
    TensorImpl::empty(&[5], DType::F32, twin).unwrap();
    let text = TensorImpl::empty(&[1313], DType::F32, twin).unwrap_err().to_string();
    assert!(text.contains("told to panic in the allocator"), "{text}");
    let text = TensorImpl::empty(&[5], DType::F32, twin).unwrap_err().to_string();
    assert!(text.contains("panicked in an earlier call"), "{text}");
    // Memory allocated before is still valid, and dropping it ends nothing.
    let mut bytes = [0; 16];
    read_bytes(kept.storage().unwrap(), 0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 16]);
    drop(kept);
    TensorImpl::empty(&[5], DType::F32, Device::CPU).unwrap();
}

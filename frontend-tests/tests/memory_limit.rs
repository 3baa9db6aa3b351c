//! A limit on a device's memory. It holds for the whole process, so this test has one of its own.

use keyway::{DType, Device, Error, Tensor};
use keyway_dispatcher::device::set_memory_limit;

#[test]
fn an_allocation_beyond_the_limit_is_an_error_and_the_program_goes_on() {
    keyway::runtime::start().unwrap();
    set_memory_limit(Device::CPU, 16 << 20).unwrap();
    let small = Tensor::empty_with([1 << 20], DType::U8).unwrap();
    let error = Tensor::empty_with([1 << 30], DType::U8).expect_err("the limit is 16 MiB");
    let message = error.to_string();
    for part in ["out of memory", "cpu", "1073741824", "free tensors"] {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
    assert!(
        matches!(error, Error::Dispatch(keyway_dispatcher::Error::OutOfMemory { requested, .. }) if requested == 1 << 30),
        "{error:?}"
    );
    assert_eq!(small.fill_(3).unwrap().sum_all().unwrap().item::<i64>().unwrap(), 3 << 20);
    set_memory_limit(Device::CPU, 0).unwrap();
    Tensor::empty_with([64 << 20], DType::U8).unwrap();
}

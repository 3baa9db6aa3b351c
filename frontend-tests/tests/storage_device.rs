//! Storages on a device whose memory the host cannot read and whose work is done later, pinned memory, and composite tensors.

mod rehearsal_support;

use keyway::ops::by_name;
use keyway::storage::{Blob, Storage};
use keyway::{DType, Device, Tensor};
use keyway_dispatcher::device::synchronize;
use keyway_dispatcher::op::Arg;
use rehearsal_support::*;
use std::sync::Arc;

const PLUGINS: &[&str] = &["keyway_test_device", "keyway_backend_sparse"];

fn contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

#[test]
fn what_the_host_cannot_read_is_copied_and_says_how() {
    let _one = load(PLUGINS);
    let d = remote(0);
    let mut x = ramp(&[2, 3]).to_device(d).unwrap();
    let storage = x.storage().unwrap();
    assert_eq!((storage.device(), storage.is_host_accessible(), storage.bytes()), (d, false, 24));
    assert_eq!(storage.allocator(), "keyway.test/device");
    assert_eq!(storage.to_bytes().unwrap()[..4], (-1.0f32).to_ne_bytes());
    let parts = ["test.keyway/remote:0", "`to_device(Device::CPU)`"];
    contains(&message(x.accessor::<f32, 2>()), &parts);
    contains(&message(x.accessor_mut::<f32, 2>()), &parts);
    contains(&message(x.as_slice::<f32>()), &parts);
    let home = x.to_device(Device::CPU).unwrap();
    assert_eq!(home.accessor::<f32, 2>().unwrap().get([0, 1]), Some(-0.75));
    // Pinned memory is the host's, and given by the device.
    let mut pinned = ramp(&[4]).pin_memory().unwrap();
    assert_eq!(pinned.storage().unwrap().device(), Device::CPU);
    assert_eq!(pinned.storage().unwrap().allocator(), "keyway.test/device");
    pinned.as_slice_mut::<f32>().unwrap()[0] = 7.0;
    assert_eq!(pinned.to_vec::<f32>().unwrap()[..2], [7.0, -0.75]);
}

#[test]
fn foreign_memory_of_a_device_goes_back_when_the_device_is_done_with_it() {
    let _one = load(PLUGINS);
    let d = remote(0);
    let owner = ramp(&[64]).to_device(d).unwrap();
    synchronize(d).unwrap();
    let at = owner.data_ptr().cast_mut();
    let (done, is_done) = std::sync::mpsc::channel();
    // SAFETY: memory of the device's own tensor, which the deleter keeps until then.
    let blob = unsafe {
        Blob::from_raw_parts(at, 256, d, move |_| {
            let value = owner.to_vec::<f32>().unwrap()[0];
            done.send(value).unwrap();
        })
    };
    let x = Tensor::from_blob(blob.unwrap().named("lent"), [64], DType::F32).unwrap();
    assert_eq!((x.device(), x.storage().unwrap().allocator()), (d, "lent"));
    by_name::call("remote_pause", &[(&x).into(), Arg::Int(30)]).unwrap();
    x.fill_(5.0).unwrap();
    drop(x);
    assert_eq!(is_done.try_recv(), Ok(5.0), "the work that was queued came before the deleter");
}

#[test]
fn a_composite_tensor_has_the_storages_of_its_parts() {
    let _one = load(PLUGINS);
    let mut s = ramp(&[2, 2]).to_sparse_with(2).unwrap();
    contains(&message(s.storage()), &["storage", "sparse_coo", "`to_dense()`"]);
    contains(&message(s.accessor::<f32, 2>()), &["accessor", "`to_dense()`"]);
    contains(&message(s.as_slice::<f32>()), &["as_slice", "`to_dense()`"]);
    assert!(s.data_ptr().is_null() && !s.shares_storage(&s));
    // Values that others read are unchanged.
    let values: Arc<[f32]> = vec![1.0, 2.0].into();
    let indices = Tensor::from_vec(vec![0i64, 1, 1, 0], [2, 2]).unwrap();
    let fixed =
        Tensor::sparse_coo(&indices, &Tensor::from_owner(values.clone(), [2]).unwrap(), [2, 2]).unwrap();
    assert!(fixed.is_read_only());
    contains(&message(fixed.mul_(2.0)), &["read-only"]);
    contains(&message(fixed.zero_()), &["read-only"]);
    assert_eq!(fixed.mul(2.0).unwrap().to_dense().unwrap().to_vec::<f32>().unwrap(), [0.0, 2.0, 4.0, 0.0]);
    assert_eq!(&values[..], [1.0, 2.0]);
}

#[test]
fn host_allocators_leave_other_devices_alone() {
    let _one = load(PLUGINS);
    struct Nothing;
    // SAFETY: it passes no memory.
    unsafe impl keyway::storage::HostAllocator for Nothing {
        fn name(&self) -> &str {
            "none"
        }
        fn allocate(&self, _: std::alloc::Layout) -> Option<std::ptr::NonNull<u8>> {
            None
        }
        unsafe fn free(&self, _: std::ptr::NonNull<u8>, _: std::alloc::Layout) {}
    }
    keyway::storage::with_host_allocator(Arc::new(Nothing), || {
        assert!(Storage::allocate(remote(0), 100).is_ok());
        contains(&Storage::allocate(Device::CPU, 100).unwrap_err().to_string(), &["`none` has no more"]);
    });
}

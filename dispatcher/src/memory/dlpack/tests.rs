//! Tests of structs of this crate and of another producer.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A struct of another producer with its arrays and memory, and a counter of deleter calls.
struct Producer {
    managed: DLManagedTensorVersioned,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    values: Vec<f32>,
    freed: Arc<AtomicUsize>,
}

unsafe extern "C" fn free(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the box of `foreign`, which is freed here alone.
    let producer = unsafe { Box::from_raw((*managed).manager_ctx.cast::<Producer>()) };
    producer.freed.fetch_add(1, Ordering::SeqCst);
}

fn foreign(
    sizes: &[i64],
    strides: &[i64],
    change: impl FnOnce(&mut DLManagedTensorVersioned),
) -> (ManagedTensor, Arc<AtomicUsize>) {
    let freed: Arc<AtomicUsize> = Arc::default();
    let counter = Arc::clone(&freed);
    let dl_tensor = DLTensor {
        data: ptr::null_mut(),
        device: DLDevice { device_type: CPU, device_id: 0 },
        ndim: sizes.len() as i32,
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 9 },
        manager_ctx: ptr::null_mut(),
        deleter: Some(free),
        flags: 0,
        dl_tensor,
    };
    let values = (0u8..24).map(f32::from).collect();
    let (sizes, strides) = (sizes.to_vec(), strides.to_vec());
    let producer = Box::into_raw(Box::new(Producer { managed, sizes, strides, values, freed: counter }));
    // SAFETY: the box was just given up; its arrays live as long as it.
    unsafe {
        let described = &mut (*producer).managed.dl_tensor;
        described.shape = (*producer).sizes.as_mut_ptr();
        if !(*producer).strides.is_empty() {
            described.strides = (*producer).strides.as_mut_ptr();
        }
        described.data = (*producer).values.as_mut_ptr().cast();
        (*producer).managed.manager_ctx = producer.cast();
        change(&mut (*producer).managed);
        (ManagedTensor::from_raw(&raw mut (*producer).managed).unwrap(), freed)
    }
}

#[test]
fn a_foreign_struct_is_freed_once_with_its_last_storage() {
    let (managed, freed) = foreign(&[2, 3], &[1, 2], |managed| {
        managed.dl_tensor.byte_offset = 8;
        managed.flags = READ_ONLY;
    });
    let strided = managed.into_strided("test").unwrap();
    let read: Vec<u8> = strided.storage.to_bytes().unwrap();
    assert_eq!(read.len(), 24, "from the first element to the last");
    assert_eq!(read[..4], 2.0f32.to_ne_bytes());
    assert!(strided.storage.is_read_only());
    assert_eq!(
        (&strided.sizes[..], &strided.strides[..], strided.dtype),
        (&[2, 3][..], &[1, 2][..], DType::F32)
    );
    let alias = strided.storage.clone();
    drop(strided);
    assert_eq!(freed.load(Ordering::SeqCst), 0);
    drop(alias);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn missing_strides_are_those_of_a_row_major_tensor() {
    let (managed, freed) = foreign(&[2, 3, 4], &[], |_| ());
    assert_eq!(managed.into_strided("test").unwrap().strides[..], [12, 4, 1]);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    let (managed, freed) = foreign(&[], &[], |_| ());
    assert_eq!(managed.into_strided("test").unwrap().storage.bytes(), 4);
    let (managed, empty) = foreign(&[2, 0], &[], |managed| managed.dl_tensor.data = ptr::null_mut());
    assert_eq!(managed.into_strided("test").unwrap().storage.bytes(), 0);
    assert_eq!((freed.load(Ordering::SeqCst), empty.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn structs_that_no_tensor_has_are_refused_and_freed() {
    type Change = fn(&mut DLManagedTensorVersioned);
    let changes: [(&str, &[i64], &[i64], Change); 8] = [
        ("memory of a device", &[2], &[1], |managed| managed.dl_tensor.device.device_type = 2),
        ("4 lanes", &[2], &[1], |managed| managed.dl_tensor.dtype.lanes = 4),
        ("code 9", &[2], &[1], |managed| managed.dl_tensor.dtype.code = 9),
        ("65 dimensions", &[1; 65], &[1; 65], |_| ()),
        ("-1 dimensions", &[1], &[1], |managed| managed.dl_tensor.ndim = -1),
        ("at least 0", &[2], &[-1], |_| ()),
        ("address space", &[i64::MAX, 4], &[4, 1], |_| ()),
        ("aligned", &[2], &[1], |managed| managed.dl_tensor.byte_offset = 1),
    ];
    for (expected, sizes, strides, change) in changes {
        let (managed, freed) = foreign(sizes, strides, change);
        let error = managed.into_strided("test").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(freed.load(Ordering::SeqCst), 1, "{expected}");
    }
}

#[test]
fn another_major_version_is_refused_without_a_look_at_its_fields() {
    let (managed, freed) = foreign(&[2], &[1], |_| ());
    let raw = managed.into_raw();
    // SAFETY: the pointer is that of `into_raw`; a refused struct stays the caller's.
    unsafe {
        (*raw).version.major = 2;
        let error = ManagedTensor::from_raw(raw).unwrap_err().to_string();
        assert!(error.contains("version 2.9"), "{error}");
        (*raw).version.major = 1;
        drop(ManagedTensor::from_raw(raw));
        assert!(ManagedTensor::from_raw(ptr::null_mut()).is_err());
        assert!(ManagedTensor::from_raw_unversioned(ptr::null_mut()).is_err());
    }
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn the_struct_without_a_version_wraps_the_other() {
    let (managed, freed) = foreign(&[2], &[1], |_| ());
    let old = managed.into_raw_unversioned().unwrap();
    // SAFETY: the pointer is that of `into_raw_unversioned`, which is taken back once.
    let strided = unsafe { ManagedTensor::from_raw_unversioned(old) }.unwrap().into_strided("test").unwrap();
    assert_eq!(strided.storage.to_bytes().unwrap()[4..], 1.0f32.to_ne_bytes());
    drop(strided);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    let (managed, freed) = foreign(&[2], &[1], |managed| managed.flags = READ_ONLY);
    assert!(managed.into_raw_unversioned().is_err());
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn memory_for_a_prototype_is_row_major() {
    let device = DLDevice { device_type: CPU, device_id: 0 };
    let float = DLDataType { code: 2, bits: 64, lanes: 1 };
    let managed = empty(device, float, &[2, 3]).unwrap();
    assert!(!managed.is_read_only());
    let strided = managed.with_copied(true).into_strided("test").unwrap();
    assert_eq!((strided.storage.bytes(), &strided.strides[..]), (48, &[3, 1][..]));
    assert!(empty(device, float, &[-1]).is_err());
    assert!(empty(device, float, &[i64::MAX, 8]).is_err());
    assert!(empty(DLDevice { device_type: 2, device_id: 0 }, float, &[1]).is_err());
}

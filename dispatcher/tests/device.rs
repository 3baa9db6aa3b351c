//! Two plugins for one device, and what becomes of memory when one takes the device over from the other. Also streams that
//! are others'.

mod table_support;

use keyway_dispatcher::device::{Event, Stream, memory_stats};
use keyway_dispatcher::memory::{Storage, copy_bytes, read_bytes, write_bytes};
use keyway_dispatcher::registry::{restore, retire};
use keyway_dispatcher::tensor::TensorImpl;
use keyway_dispatcher::{DType, Device, host};
use keyway_sdk::abi::RawStr;
use keyway_sdk::abi::codes::{name_kind, status};
use table_support::*;

const BETTER: &str = "keyway.test/interposer";
const PLUGINS: &[&str] = &["keyway_test_faulty", "keyway_test_interposer", "keyway_test_device"];

fn twin() -> Device {
    Device::new("test.keyway/twin", 0).unwrap()
}

fn worse() -> Device {
    Device::new("test.keyway/twin@keyway.test/faulty", 0).unwrap()
}

/// The pieces of memory that a twin gave and did not get back.
fn alive(device: Device) -> u64 {
    memory_stats(device).unwrap().unwrap().in_use
}

#[test]
fn scratch_goes_back_to_the_plugin_that_gave_it() {
    let _one = load(PLUGINS);
    let (services, kind) = (host::table(), twin().kind);
    let (better, worse_before) = (alive(twin()), alive(worse()));
    let (mut pointer, mut owner) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: both places are valid for the writes.
    assert_eq!(unsafe { (services.allocate)(kind, 0, 256, &mut pointer, &mut owner) }, status::OK);
    assert_eq!(alive(twin()), better + 1);
    // The other plugin has the device now.
    assert!(retire(BETTER));
    assert_eq!(alive(twin()), worse_before);
    // SAFETY: the memory and its owner came from `allocate`, and the memory is freed once.
    unsafe { (services.free)(owner, kind, 0, pointer, 256) };
    assert_eq!(alive(twin()), worse_before, "the other one was not asked");
    assert!(restore(BETTER));
    assert_eq!(alive(twin()), better);
}

#[test]
fn services_refuse_places_that_are_null_and_numbers_that_nobody_has() {
    let _one = load(PLUGINS);
    let services = host::table();
    let (mut pointer, mut owner) = (std::ptr::null_mut(), std::ptr::null());
    let mut name = RawStr::EMPTY;
    // SAFETY: null is refused before anything is written; the other places are valid for the writes.
    unsafe {
        let code = (services.allocate)(0, 0, 64, std::ptr::null_mut(), &mut owner);
        assert_eq!(code, status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`out` must be a place for a pointer"));
        let code = (services.allocate)(0, 0, 64, &mut pointer, std::ptr::null_mut());
        assert_eq!(code, status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`owner` must be a place for a pointer"));
        (services.free)(std::ptr::null(), 0, 0, std::ptr::null_mut(), 64);
        assert_eq!((services.name)(9, 0, &mut name), status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`kind`"));
        assert_eq!((services.name)(name_kind::DEVICE, 60_000, &mut name), status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`number` must be one that `intern` gave, but got 60000"));
        assert_eq!((services.name)(name_kind::DEVICE, twin().kind, &mut name), status::OK);
        assert_eq!(name.read(), "test.keyway/twin");
    }
    // Without a CPU backend the host itself gives scratch memory.
    // SAFETY: the places are valid for the writes, and the memory goes back once with its owner.
    unsafe {
        assert_eq!((services.allocate)(0, 0, 64, &mut pointer, &mut owner), status::OK);
        assert!(owner.is_null() && !pointer.is_null());
        (services.free)(owner, 0, 0, pointer, 64);
    }
}

#[test]
fn storages_are_copied_and_freed_by_the_plugin_that_gave_them() {
    let _one = load(PLUGINS);
    let before = alive(twin());
    let kept = Storage::allocate(twin(), 128).unwrap();
    write_bytes(&kept, 0, &[7; 128]).unwrap();
    assert!(retire(BETTER));
    let other = Storage::allocate(twin(), 128).unwrap();
    copy_bytes(&other, 0, &kept, 0, 128).unwrap();
    let mut bytes = [0; 128];
    read_bytes(&other, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 128]);
    drop((kept, other));
    assert!(restore(BETTER));
    assert_eq!((alive(twin()), alive(worse())), (before, 0));
}

#[test]
fn a_plugin_reaches_its_device_also_under_its_second_name() {
    let _one = load(PLUGINS);
    let t = TensorImpl::empty(&[3], DType::F32, worse()).unwrap();
    let values: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
    write_bytes(t.storage().unwrap(), 0, &values).unwrap();
    let made = one("test_twin", &t).unwrap();
    assert_eq!(made.device(), worse());
    let mut bytes = [0; 12];
    read_bytes(made.storage().unwrap(), 0, &mut bytes).unwrap();
    let wanted: Vec<u8> = [2.0f32, 3.0, 4.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
    assert_eq!(bytes[..], wanted[..]);
}

#[test]
fn streams_and_events_of_one_plugin_mean_nothing_to_another() {
    let _one = load(PLUGINS);
    let (stream, event) = (Stream::new(twin()).unwrap(), Event::new(worse()).unwrap());
    for error in [event.record(&stream).unwrap_err(), stream.wait(&event).unwrap_err()] {
        let text = error.to_string();
        assert!(text.contains("`event` must be one of") && text.contains("keyway.test/faulty"), "{text}");
    }
}

#[test]
fn streams_of_others_are_wrapped_and_ours_handed_out() {
    let _one = load(PLUGINS);
    let device = |index| Device::new("test.keyway/remote", index).unwrap();
    let ours = Stream::new(device(0)).unwrap();
    assert!(!ours.as_raw().is_null() && ours.device() == device(0));
    let current = || Stream::current(device(0)).unwrap().as_raw();
    // SAFETY: the stream is one of this device's and outlives the wrapped one and its memory.
    let theirs = unsafe { Stream::from_raw(device(0), ours.as_raw()) }.unwrap();
    let kept = {
        let _in = theirs.enter();
        assert_eq!(current(), ours.as_raw());
        let kept = Storage::allocate(device(0), 64).unwrap();
        write_bytes(&kept, 0, &[5; 64]).unwrap();
        kept
    };
    assert!(current().is_null());
    let event = Event::new(device(0)).unwrap();
    event.record(&theirs).unwrap();
    event.synchronize().unwrap();
    drop(theirs);
    // Dropping it did not destroy the stream.
    let _in = ours.enter();
    let mut bytes = [0; 64];
    read_bytes(&kept, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [5; 64]);
    assert!(Stream::current(device(1)).unwrap().as_raw().is_null());
    // SAFETY: the device is refused before the stream is looked at.
    assert!(unsafe { Stream::from_raw(device(9), ours.as_raw()) }.is_err());
}

//! Tests of two plugins for one device, of memory when one takes the device over from the other, and of foreign streams.

mod table_support;

use keyway_dispatcher::device::{Event, Stream, memory_stats, report, server};
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::ledger::last_served;
use keyway_dispatcher::memory::{Storage, copy_bytes, read_bytes, write_bytes};
use keyway_dispatcher::registry::{restore, retire};
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use keyway_dispatcher::{DType, Device, Error, Layout, host};
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
    // SAFETY: both addresses are valid for the writes.
    assert_eq!(unsafe { (services.allocate)(kind, 0, 256, &mut pointer, &mut owner) }, status::OK);
    assert_eq!(alive(twin()), better + 1);
    // The other plugin has the device now.
    assert!(retire(BETTER));
    assert_eq!(alive(twin()), worse_before);
    // SAFETY: the memory and its owner are from `allocate`, and the memory is freed once.
    unsafe { (services.free)(owner, kind, 0, pointer, 256) };
    assert_eq!(alive(twin()), worse_before, "the other one was not asked");
    assert!(restore(BETTER));
    assert_eq!(alive(twin()), better);
}

#[test]
fn services_refuse_null_addresses_and_unknown_numbers() {
    let _one = load(PLUGINS);
    let services = host::table();
    let (mut pointer, mut owner) = (std::ptr::null_mut(), std::ptr::null());
    let mut name = RawStr::EMPTY;
    // SAFETY: null is refused before anything is written; the other addresses are valid for the writes.
    unsafe {
        let code = (services.allocate)(0, 0, 64, std::ptr::null_mut(), &mut owner);
        assert_eq!(code, status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`out` must be an address for a pointer"));
        let code = (services.allocate)(0, 0, 64, &mut pointer, std::ptr::null_mut());
        assert_eq!(code, status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`owner` must be an address for a pointer"));
        (services.free)(std::ptr::null(), 0, 0, std::ptr::null_mut(), 64);
        assert_eq!((services.name)(9, 0, &mut name), status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`kind`"));
        assert_eq!((services.name)(name_kind::DEVICE, 60_000, &mut name), status::INVALID_ARGUMENT);
        assert!(host::take_message().contains("`number` must be one that `intern` gave, but got 60000"));
        assert_eq!((services.name)(name_kind::DEVICE, twin().kind, &mut name), status::OK);
        assert_eq!(name.read(), "test.keyway/twin");
    }
    // Without a CPU backend the host itself allocates scratch memory.
    // SAFETY: the addresses are valid for the writes, and the memory is freed once with its owner.
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

/// A tensor of 1, 2 and 3 on a device.
fn numbers(device: Device) -> TensorRef {
    let t = TensorImpl::empty(&[3], DType::F32, device).unwrap();
    let values: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
    write_bytes(t.storage().unwrap(), 0, &values).unwrap();
    t
}

fn values(t: &TensorRef) -> Vec<f32> {
    let mut bytes = [0; 12];
    read_bytes(t.storage().unwrap(), 0, &mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|b| f32::from_ne_bytes(*b)).collect()
}

#[test]
fn a_plugin_reaches_its_device_also_under_its_second_name() {
    let _one = load(PLUGINS);
    let made = one("test_twin", &numbers(worse())).unwrap();
    assert_eq!((made.device(), values(&made)), (worse(), vec![2.0, 3.0, 4.0]));
}

#[test]
fn a_plugin_serves_the_device_of_the_one_that_it_names_as_compatible() {
    const SECOND: &str = "keyway.test/second";
    let _one = load(&["keyway_test_faulty", "keyway_test_interposer", "keyway_test_second"]);
    let serves = || {
        let made = one("test_nothing", &numbers(twin())).unwrap();
        assert_eq!(
            (last_served().name(), made.device(), values(&made)),
            (SECOND, twin(), vec![3.0, 4.0, 5.0])
        );
    };
    let first = |device| {
        let why = explain(op("test_nothing"), device, Layout::STRIDED, DType::F32);
        let first = why.candidates.into_iter().next().unwrap();
        assert!(first.what.contains(SECOND), "{first:?}");
        (first.chosen, first.reason)
    };
    serves();
    assert_eq!(first(twin()), (true, "the exact key".to_string()));
    // The same device of another plugin is not open to it, under whichever name.
    let closed = |device| {
        assert!(matches!(one("test_nothing", &numbers(device)), Err(Error::MissingKernel(_))));
        let (chosen, reason) = first(device);
        let why = "`keyway.test/faulty`, with which its plugin does not declare itself compatible";
        assert!(!chosen && reason.contains(why), "{reason}");
    };
    closed(worse());
    assert!(retire(BETTER));
    closed(twin());
    assert!(restore(BETTER));
    serves();
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

#[test]
fn control_characters_in_the_facts_of_a_device_are_escaped() {
    let _one = load(PLUGINS);
    let entry = |name: &str| server(Device::new(name, 0).unwrap().kind).unwrap();
    let facts = report::facts(entry("test.keyway/remote")).unwrap();
    let facts: Vec<(&str, &str)> = facts.iter().map(|fact| (&*fact.name, &*fact.text)).collect();
    assert_eq!(facts, [("link", "none is needed"), ("colour", "\u{fffd}[31mred")]);
    assert_eq!(report::facts(entry("test.keyway/farther")).unwrap(), []);
    for name in ["test.keyway/remote", "test.keyway/farther"] {
        assert_eq!(report::memory(Device::new(name, 0).unwrap()).unwrap(), None, "{name}");
    }
}

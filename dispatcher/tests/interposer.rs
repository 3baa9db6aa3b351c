//! An interposer of a plugin: sees every call of every thread, may fail them, and may not lose them. Also two
//! plugins that serve one device.

mod table_support;

use keyway_dispatcher::call::call;
use keyway_dispatcher::device::properties;
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::key::{KeyGuard, KeySet};
use keyway_dispatcher::memory::read_bytes;
use keyway_dispatcher::op::{Arg, Args, Out};
use keyway_dispatcher::registry::{find_functional, restore, retire};
use keyway_dispatcher::tensor::TensorImpl;
use keyway_dispatcher::{DType, Device, Layout};
use table_support::*;

const PLUGINS: &[&str] = &["keyway_test_minimal", "keyway_test_faulty", "keyway_test_interposer"];

fn count(name: &str) -> i64 {
    let t = zeros(&[], DType::F32);
    let values = [Arg::Tensor(&t), Arg::Str(name)];
    let made = call(Args { op: op("interposer_count"), values: &values }, Out::New).unwrap();
    let mut bytes = [0; 8];
    read_bytes(made[0].storage().unwrap(), 0, &mut bytes).unwrap();
    i64::from_ne_bytes(bytes)
}

fn set_mode(name: &str, mode: i64) {
    let t = zeros(&[], DType::F32);
    let values = [Arg::Tensor(&t), Arg::Str(name), Arg::Int(mode)];
    call(Args { op: op("interposer_break"), values: &values }, Out::New).unwrap();
}

#[test]
fn it_sees_every_call_and_may_fail_it() {
    let _one = load(PLUGINS);
    let t = zeros(&[2], DType::F32);
    let before = count("test_nothing");
    one("test_nothing", &t).unwrap();
    std::thread::scope(|s| drop(s.spawn(|| one("test_nothing", &zeros(&[2], DType::F32)).unwrap())));
    assert_eq!(count("test_nothing"), before + 2);
    let key = find_functional("watch").unwrap();
    {
        let _off = KeyGuard::exclude(KeySet::of(key));
        one("test_nothing", &t).unwrap();
    }
    assert_eq!(count("test_nothing"), before + 2);

    for (mode, part) in [
        (1, "told to fail before test_nothing"),
        (2, "told to fail after test_nothing"),
        (3, "without running the call"),
    ] {
        set_mode("test_nothing", mode);
        let text = one("test_nothing", &t).unwrap_err().to_string();
        assert!(text.contains(part) && text.contains("keyway.test/interposer"), "{text}");
    }
    set_mode("test_nothing", 0);
    one("test_nothing", &t).unwrap();
    // An error of the call itself comes through as it is.
    let text = one("test_fail", &t).unwrap_err().to_string();
    assert!(text.contains("keyway.test/faulty") && text.contains("told to fail in a kernel"), "{text}");
    assert!(retire("keyway.test/interposer"));
    one("test_nothing", &t).unwrap();
    assert!(find_functional("watch").is_none());
    assert!(restore("keyway.test/interposer"));
    assert_eq!(count("test_nothing"), before + 6);
}

#[test]
fn a_kernel_of_another_signature_is_left_out_with_the_reason() {
    let _one = load(PLUGINS);
    let why = explain(op("test_two"), Device::CPU, Layout::STRIDED, DType::F32);
    assert_eq!(why.candidates.len(), 1);
    assert!(!why.candidates[0].chosen);
    assert_eq!(why.candidates[0].reason, "it was written against `T>T`, but the op is `TT>T`");
    assert_eq!(why.verdict, "nothing serves this key");
}

#[test]
fn two_plugins_for_one_device() {
    let _one = load(PLUGINS);
    let twin = Device::new("test.keyway/twin", 0).unwrap();
    let second = Device { index: 1, ..twin };
    assert_eq!(properties(twin).unwrap().name, "the better twin");
    let kept = TensorImpl::empty(&[4], DType::F32, second).unwrap();
    assert!(retire("keyway.test/interposer"));
    assert_eq!(properties(twin).unwrap().name, "the worse twin");
    let text = TensorImpl::empty(&[4], DType::F32, second).unwrap_err().to_string();
    // The other owner's own allocator is asked, and knows one device only.
    assert!(text.contains("test.keyway/twin:1 does not exist: 1 device(s)"), "{text}");
    // Memory goes back to whoever gave it.
    drop(kept);
    assert!(restore("keyway.test/interposer"));
    assert_eq!(properties(twin).unwrap().name, "the better twin");
}

//! An interposer of a plugin: sees every call of every thread, may fail them, and may not lose them. Also two
//! plugins that serve one device.

mod table_support;

use keyway_dispatcher::call::call;
use keyway_dispatcher::device::properties;
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::key::{KeyGuard, KeySet};
use keyway_dispatcher::memory::read_bytes;
use keyway_dispatcher::op::{Arg, Args, Out};
use keyway_dispatcher::registry::{find_key, interposers, interposers_of, restore, retire};
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
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
    let key = find_key("watch").unwrap();
    {
        let _off = KeyGuard::exclude(KeySet::of(key));
        one("test_nothing", &t).unwrap();
    }
    assert_eq!(count("test_nothing"), before + 2);

    for (mode, part) in [
        (1, "told to fail before test_nothing"),
        (2, "told to fail after test_nothing"),
        (3, "interposer `watch` answered without running the call, and set 0 of its 1 outputs"),
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
    assert!(find_key("watch").is_none());
    assert!(restore("keyway.test/interposer"));
    assert_eq!(count("test_nothing"), before + 6);
}

/// The text of the error of a call that the second interposer acts on.
fn meddled(mode: i64) -> String {
    set_mode("meddler", mode);
    let _on = KeyGuard::include(KeySet::of(find_key("meddler").unwrap()));
    let text = one("test_nothing", &zeros(&[2], DType::F32)).unwrap_err().to_string();
    assert!(text.contains("keyway.test/interposer") && text.contains("test_nothing"), "{text}");
    text
}

fn floats(t: &TensorRef) -> Vec<f32> {
    let mut bytes = vec![0; 4 * t.numel()];
    read_bytes(t.storage().unwrap(), 0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn one_that_is_off_acts_where_a_thread_switches_it_on_and_inside_those_of_higher_order() {
    let _one = load(PLUGINS);
    set_mode("meddler", 0);
    let t = zeros(&[2], DType::F32);
    let (plain, inside) = (count("meddler"), count("meddler inside watch"));
    one("test_nothing", &t).unwrap();
    let key = KeySet::of(find_key("meddler").unwrap());
    {
        let _on = KeyGuard::include(key);
        one("test_nothing", &t).unwrap();
        // It does not name this op.
        assert!(one("test_fail", &t).is_err());
        let _off = KeyGuard::exclude(key);
        one("test_nothing", &t).unwrap();
    }
    assert_eq!((count("meddler"), count("meddler inside watch")), (plain, inside + 1));
    let listed = interposers();
    let names: Vec<&str> = listed.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["watch", "meddler"]);
    assert_eq!(
        (listed[1].order, listed[1].default_on, listed[1].plugin),
        (-1, false, "keyway.test/interposer")
    );
    assert_eq!(interposers_of(op("test_fail")).len(), 1);
}

#[test]
fn an_op_pays_only_for_the_interposers_that_name_it() {
    let _one = load(PLUGINS);
    let key = find_key("meddler").unwrap().number();
    let mask = |name: &str| keyway_dispatcher::table::current().op(op(name)).unwrap().functional;
    assert_eq!(mask("test_nothing") >> key & 1, 1);
    assert_eq!(mask("test_fail") >> key & 1, 0);
}

#[test]
fn outputs_and_arguments_may_be_replaced() {
    let _one = load(PLUGINS);
    let t = zeros(&[2], DType::F32);
    let _on = KeyGuard::include(KeySet::of(find_key("meddler").unwrap()));
    for mode in [1, 6] {
        set_mode("meddler", mode);
        assert_eq!(floats(&one("test_nothing", &t).unwrap()), [1.0, 1.0], "{mode}");
    }
    // The decomposition gives its argument back: the one that the interposer put there.
    set_mode("meddler", 8);
    assert_eq!(floats(&one("test_composed", &t).unwrap()), [1.0, 1.0]);
    // The interposer can do what the rest of the call could not.
    set_mode("meddler", 14);
    assert_eq!(floats(&one("test_missing", &t).unwrap()), [1.0, 1.0]);
    set_mode("meddler", 15);
    let before = count("test_nothing");
    one("test_nothing", &t).unwrap();
    assert_eq!(count("test_nothing"), before + 2);
    assert_eq!(count("test_nothing at depth 1"), 1);
    set_mode("meddler", 0);
}

#[test]
fn a_misuse_fails_the_call_with_its_reason() {
    let _one = load(PLUGINS);
    for (mode, part) in [
        (2, "output 0 was replaced by a tensor of another shape: expected [2], got [7]"),
        (3, "output 0 was replaced by a tensor of another dtype: expected f32, got f64"),
        (4, "output 1 was set, but there are 1: expected an index below that"),
        (5, "it ran the call twice"),
        (7, "output 0 was replaced by a tensor of another shape: expected [2], got [7]"),
        (9, "argument 0 (`self`) must be of the kind `Tensor`, but the text `no tensor` came"),
        (10, "argument 3 was set, but the call has 1"),
        (11, "argument 0 (`self`) was set after `next`"),
        (12, "it ran the call twice"),
        (13, "the index of an output, after `run_next`, got 0, before `run_next`"),
    ] {
        let text = meddled(mode);
        assert!(text.contains(part), "{mode}: {text}");
    }
    set_mode("meddler", 0);
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
    // Memory is returned to its allocator.
    drop(kept);
    assert!(restore("keyway.test/interposer"));
    assert_eq!(properties(twin).unwrap().name, "the better twin");
}

//! The table with real plugins in it: who serves a key, who is passed over, and what is said about it.

mod table_support;

use keyway_dispatcher::call::{choose_backend, redispatch};
use keyway_dispatcher::explain::explain;
use keyway_dispatcher::key::{DispatchKey, KeyGuard, KeySet};
use keyway_dispatcher::ledger::last_served;
use keyway_dispatcher::registry::{self, KeyHandler, register_key_handler, restore, retire, set_priority};
use keyway_dispatcher::tensor::TensorImpl;
use keyway_dispatcher::{DType, Device, Error, Layout};
use keyway_sdk::abi::codes::status;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use table_support::*;

const BOTH: &[&str] = &["keyway_test_minimal", "keyway_test_faulty"];
const THREE: &[&str] = &["keyway_test_minimal", "keyway_test_faulty", "keyway_test_second"];
const MINIMAL: &str = "keyway.test/minimal";
const FAULTY: &str = "keyway.test/faulty";
const SECOND: &str = "keyway.test/second";

fn server() -> &'static str {
    one("test_nothing", &zeros(&[2], DType::F32)).unwrap();
    last_served().name()
}

fn candidates() -> Vec<(String, bool, String)> {
    let all = explain(op("test_nothing"), Device::CPU, Layout::STRIDED, DType::F32).candidates;
    all.into_iter().map(|c| (c.what, c.chosen, c.reason)).collect()
}

#[test]
fn several_plugins_for_one_key() {
    let _one = load(BOTH);
    assert_eq!(server(), MINIMAL, "the first of equal priority");
    assert!(set_priority(FAULTY, 5));
    assert_eq!(server(), FAULTY);
    let all = candidates();
    assert!(all[0].0.contains(FAULTY) && all[0].1 && all[0].2 == "the exact key", "{all:?}");
    assert!(all[1].0.contains(MINIMAL) && !all[1].1 && all[1].2.contains("higher priority"), "{all:?}");
    assert!(retire(FAULTY));
    assert_eq!(server(), MINIMAL);
    assert!(candidates().iter().any(|c| c.0.contains(FAULTY) && c.2 == "its plugin is retired"));
    assert!(retire(MINIMAL));
    assert!(matches!(one("test_nothing", &zeros(&[2], DType::F32)), Err(Error::MissingKernel(_))));
    assert!(restore(MINIMAL) && restore(FAULTY));
    assert_eq!(server(), FAULTY);
    assert!(set_priority(FAULTY, 0));
    assert_eq!(server(), MINIMAL);
    assert!(!set_priority("keyway.test/none", 1) && !retire("keyway.test/none"));
}

#[test]
fn a_layout_falls_to_its_parent() {
    let _one = load(BOTH);
    let sizes = [1, 2, 3, 4];
    let strides = keyway_dispatcher::dims::channels_last_strides(&sizes);
    let t = TensorImpl::empty_strided(sizes.as_slice().into(), strides, DType::F32, Device::CPU).unwrap();
    assert_eq!(t.dispatch_layout(), Layout::CHANNELS_LAST);
    one("test_nothing", &t).unwrap();
    assert_eq!(last_served().name(), MINIMAL);
    let why = explain(op("test_nothing"), Device::CPU, Layout::CHANNELS_LAST, DType::F32);
    assert!(why.candidates[0].reason.contains("`strided` is the parent of `channels_last`"), "{why:?}");
}

#[test]
fn what_has_no_kernel_is_composed_or_missing() {
    let _one = load(BOTH);
    let t = zeros(&[3], DType::F32);
    for (name, by) in [("test_composed", "(decomposition)"), ("test_always", "(host)")] {
        one(name, &t).unwrap();
        assert_eq!(last_served().name(), by);
    }
    let why = explain(op("test_composed"), Device::CPU, Layout::STRIDED, DType::F32);
    assert_eq!((why.candidates.len(), why.candidates[0].chosen), (1, true));
    let error = one("test_nothing", &zeros(&[2, 3], DType::I64)).unwrap_err().to_string();
    for part in [
        "test_nothing: no kernel for (cpu, strided, i64)",
        "self i64[2, 3] on cpu (strided)",
        "`keyway.test/minimal` for (cpu, strided): f32",
        "`keyway.test/faulty` for (cpu, strided): f32, f64",
        "nearest: kernel of",
        "keyway explain test_nothing --device cpu --layout strided --dtype i64",
    ] {
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
    let error = one("test_missing", &t).unwrap_err().to_string();
    assert!(error.contains("registered for this op: nothing"), "{error}");
    let taken =
        registry::register_ops(&[spec("test_missing(Tensor self) -> Tensor")]).unwrap_err().to_string();
    assert!(taken.contains("`tests` has defined an op of this name"), "{taken}");
}

#[test]
fn ops_that_are_refused_leave_nothing_behind() {
    let _one = load(&[]);
    let (first, second) = ("test_retried(Tensor self) -> Tensor", "test_missing(Tensor self) -> Tensor");
    for _ in 0..2 {
        let taken = registry::register_ops(&[spec(first), spec(second)]).unwrap_err().to_string();
        assert!(taken.contains("test_missing"), "the one that is at fault, each time: {taken}");
        assert!(registry::find_op("test_retried").is_none());
    }
    let entries = registry::register_ops(&[spec(first)]).unwrap();
    assert!(std::ptr::eq(registry::find_op("test_retried").unwrap(), entries[0]));
    let rows = registry::table::current().op(entries[0]).expect("a row of its own");
    assert_eq!(rows.op.name, "test_retried");
}

static SEEN: AtomicUsize = AtomicUsize::new(0);
const KEY: DispatchKey = DispatchKey::AUTOCAST;

fn install_key() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        register_key_handler(KeyHandler {
            key: KEY,
            name: "counter".to_string(),
            applies: |op| op.name != "test_composed",
            handler: Box::new(|call, below| {
                SEEN.fetch_add(1, Ordering::Relaxed);
                redispatch(call, below)
            }),
            plugin: None,
            interposer: None,
        })
        .unwrap();
    });
}

#[test]
fn keys_come_from_tensors_and_from_the_thread() {
    let _one = load(BOTH);
    install_key();
    let seen = |work: &dyn Fn()| {
        let before = SEEN.load(Ordering::Relaxed);
        work();
        SEEN.load(Ordering::Relaxed) - before
    };
    let t = zeros(&[2], DType::F32);
    let run = |name: &'static str| {
        let t = t.clone();
        move || drop(one(name, &t).unwrap())
    };
    assert_eq!(seen(&run("test_nothing")), 0);
    t.set_key(KEY, true);
    assert_eq!(seen(&run("test_nothing")), 1);
    assert_eq!(seen(&run("test_composed")), 0, "it falls through where it does not apply");
    {
        let _off = KeyGuard::exclude(KeySet::of(KEY));
        assert_eq!(seen(&run("test_nothing")), 0);
        let _on = KeyGuard::clear(KeySet::of(KEY));
        assert_eq!(seen(&run("test_nothing")), 1);
    }
    t.set_key(KEY, false);
    let _on = KeyGuard::include(KeySet::of(KEY));
    assert_eq!(seen(&run("test_nothing")), 1);
    assert_eq!(registry::find_key("counter"), Some(KEY));
    let again = KeyHandler {
        key: KEY,
        name: "second".into(),
        applies: |_| true,
        handler: Box::new(redispatch),
        plugin: None,
        interposer: None,
    };
    assert!(register_key_handler(again).unwrap_err().to_string().contains("belongs to `counter`"));
}

#[test]
fn a_kernel_that_refuses_hands_on_to_the_next() {
    let _one = load(THREE);
    assert!(set_priority(FAULTY, 5));
    let serves = |count| {
        one("test_partial", &zeros(&[count], DType::F32)).unwrap();
        last_served().name()
    };
    assert_eq!((serves(2), serves(3)), (FAULTY, SECOND));
    let error = one("test_partial", &zeros(&[3], DType::F64)).unwrap_err().to_string();
    for part in
        ["no kernel for (cpu, strided, f64)", "`keyway.test/faulty`: a tensor of more than two elements"]
    {
        assert!(error.contains(part), "{error}");
    }
    let why = explain(op("test_partial"), Device::CPU, Layout::STRIDED, DType::F32);
    let order: Vec<_> = why.candidates.iter().map(|c| (c.what.contains(FAULTY), c.chosen)).collect();
    assert_eq!(order, [(true, true), (false, false)], "{why:?}");
    assert_eq!(why.signature, "T>T");
    assert!(set_priority(FAULTY, 0));
    assert_eq!(serves(3), SECOND);
}

#[test]
fn a_refusal_from_within_a_kernel_is_a_failure_of_that_kernel() {
    let _one = load(THREE);
    assert!(set_priority(FAULTY, 5));
    let error = one("test_nested", &zeros(&[3], DType::F32)).unwrap_err();
    assert!(set_priority(FAULTY, 0));
    assert!(matches!(error, Error::Backend { plugin: FAULTY, status: status::FAILED, .. }), "{error}");
    assert!(error.to_string().contains("test_refuse: no kernel"), "{error}");
}

#[test]
fn a_kernel_that_calls_its_own_op_without_end_fails() {
    let _one = load(THREE);
    let error = one("test_endless", &zeros(&[3], DType::F32)).unwrap_err();
    let expected = "test_endless: `name` must be an op whose kernel does not lead back to it; calls within calls end 64 \
                    deep, but got `test_endless` once more (found by backend `keyway.test/faulty`)";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_chosen_backend_goes_first_on_its_thread() {
    let _one = load(THREE);
    assert_eq!(server(), MINIMAL);
    {
        let _chosen = choose_backend(FAULTY).unwrap();
        assert_eq!(server(), FAULTY);
        std::thread::scope(|s| s.spawn(|| assert_eq!(server(), MINIMAL)).join().unwrap());
        {
            let _inner = choose_backend(MINIMAL).unwrap();
            assert_eq!(server(), MINIMAL);
        }
        assert_eq!(server(), FAULTY);
        one("test_partial", &zeros(&[3], DType::F32)).unwrap();
        assert_eq!(last_served().name(), SECOND, "what the chosen one refuses goes to the usual candidates");
    }
    assert_eq!(server(), MINIMAL);
    let error = choose_backend("nothing.example/none").unwrap_err().to_string();
    assert!(error.contains(MINIMAL) && error.contains("loaded backend"), "{error}");
}

#[test]
fn memory_of_a_device_is_open_to_its_owner_alone() {
    let _one = load(THREE);
    let twin = Device::new("test.keyway/twin", 0).unwrap();
    let t = TensorImpl::empty(&[2], DType::F32, twin).unwrap();
    assert!(matches!(one("test_nothing", &t), Err(Error::MissingKernel(_))));
    let why = explain(op("test_nothing"), twin, Layout::STRIDED, DType::F32);
    assert!(why.candidates[0].reason.contains("does not declare itself compatible"), "{why:?}");
}

#[test]
fn a_name_that_came_after_the_table_has_no_kernel() {
    let _one = load(BOTH);
    let generation = keyway_dispatcher::table::current();
    let rows = generation.op(op("test_nothing")).unwrap();
    let late = Layout::intern("test.keyway/late").unwrap();
    for kind in 0..4 {
        let device = Device { kind, index: 0 };
        assert!(generation.cell(rows, device, late, DType::F32).kernel.is_none(), "{device}");
    }
    let late = Device::new("test.keyway/late", 0).unwrap();
    assert!(generation.cell(rows, late, Layout::STRIDED, DType::F32).kernel.is_none());
}

#[test]
fn the_table_changes_while_threads_call() {
    let _one = load(BOTH);
    let stop = AtomicBool::new(false);
    let called = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let t = zeros(&[4], DType::F32);
                    let mut first = true;
                    while !stop.load(Ordering::Relaxed) {
                        one("test_nothing", &t).unwrap();
                        assert!([MINIMAL, FAULTY].contains(&last_served().name()));
                        called.fetch_add(usize::from(std::mem::take(&mut first)), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let mut round = 0;
        while round < 200 || called.load(Ordering::Relaxed) < 4 {
            round += 1;
            // One of both always serves.
            assert!(retire(if round % 2 == 0 { FAULTY } else { MINIMAL }));
            assert!(restore(if round % 2 == 0 { FAULTY } else { MINIMAL }));
            assert!(set_priority(FAULTY, round % 3));
        }
        set_priority(FAULTY, 0);
        stop.store(true, Ordering::Relaxed);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}

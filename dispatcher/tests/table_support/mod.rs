//! Ops of the tests' own, and plugins loaded into the real table.
#![allow(dead_code, reason = "each test program uses a part of it")]

use keyway_dispatcher::call::call;
use keyway_dispatcher::loader::{Config, Loader, Probe, Quarantine};
use keyway_dispatcher::op::{Arg, Args, Decomposition, OpEntry, OpSpec, Out, Outputs, Plan, Rule, Strides};
use keyway_dispatcher::tensor::{TensorImpl, TensorRef};
use keyway_dispatcher::{DType, Device, Dims, Result, host, install, registry};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock};

fn built(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    program.parent().unwrap().join(format!("{prefix}{name}{suffix}"))
}

fn like_first(args: &Args<'_>) -> Result<Plan> {
    let t = args.tensor(0)?;
    Ok(Plan::one(t.dtype(), Dims::from_slice(t.sizes()), t.dtype(), Strides::Contiguous))
}

/// The spec of an op whose output is like its first argument.
pub fn spec(schema: &'static str) -> OpSpec {
    OpSpec {
        schema,
        rule: Rule::Structured(like_first),
        decomposition: None,
        extra: None,
        foreign: None,
        owner: "tests",
        library: None,
    }
}

/// Gives the argument back: a decomposition.
pub fn same(args: &Args<'_>) -> Result<Outputs> {
    Ok(Outputs::from_iter([args.tensor(0)?.clone()]))
}

/// Registers the ops that the test plugins have kernels for, and loads those plugins. The tests of one
/// program share the table, so they run one at a time while they hold the guard.
pub fn load(names: &[&str]) -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    static OPS: OnceLock<()> = OnceLock::new();
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    OPS.get_or_init(|| {
        let composed = OpSpec {
            decomposition: Some(Decomposition { run: same, parts: &[] }),
            ..spec("test_composed(Tensor self) -> Tensor")
        };
        let always = OpSpec {
            rule: Rule::Host(same),
            ..OpSpec { schema: "test_always(Tensor self) -> Tensor", ..composed }
        };
        registry::register_ops(&[
            spec("test_nothing(Tensor self) -> Tensor"),
            spec("test_panic(Tensor self) -> Tensor"),
            spec("test_fail(Tensor self) -> Tensor"),
            spec("test_two(Tensor self, Tensor other) -> Tensor"),
            spec("test_missing(Tensor self) -> Tensor"),
            spec("test_partial(Tensor self) -> Tensor"),
            spec("test_refuse(Tensor self) -> Tensor"),
            spec("test_nested(Tensor self) -> Tensor"),
            spec("test_endless(Tensor self) -> Tensor"),
            spec("test_twin(Tensor self) -> Tensor"),
            composed,
            always,
        ])
        .unwrap();
    });
    let config = Config {
        quarantine: Quarantine::default(),
        probe: Probe::off(),
        ..Config::only(names.iter().map(|n| built(n)).collect())
    };
    let loaded = Loader::new(config).load_all(host::table(), host::take_message);
    assert!(loaded.rejected.is_empty(), "{:?}", loaded.rejected);
    let present = registry::plugins();
    let refused =
        install::install_all(loaded.plugins.iter().filter(|new| present.iter().all(|p| p.path != new.path)));
    assert!(refused.is_empty(), "{refused:?}");
    guard
}

/// An op by name.
pub fn op(name: &str) -> &'static OpEntry {
    registry::find_op(name).unwrap()
}

/// A tensor of zeros in host memory.
pub fn zeros(sizes: &[usize], dtype: DType) -> TensorRef {
    let t = TensorImpl::empty(sizes, dtype, Device::CPU).unwrap();
    let storage = t.storage().unwrap();
    keyway_dispatcher::memory::write_bytes(storage, 0, &vec![0; storage.bytes()]).unwrap();
    t
}

/// Calls an op of one tensor.
pub fn one(name: &str, t: &TensorRef) -> Result<TensorRef> {
    call(Args { op: op(name), values: &[Arg::Tensor(t)] }, Out::New).map(|made| made[0].clone())
}

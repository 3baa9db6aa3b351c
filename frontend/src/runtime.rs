//! The runtime: ops registered, autograd on, backends found. Started by the first call that needs it.

use crate::error::{Error, Result};
use keyway_dispatcher::conversions::{Conversions, set_conversions};
use keyway_dispatcher::loader::{Config, Discovery, Loader, Rejected};
use keyway_dispatcher::op::{Arg, Args, OpEntry, Out, Outputs};
use keyway_dispatcher::tensor::TensorRef;
use keyway_dispatcher::{abi, install, registry};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

/// What came of loading the backends.
#[derive(Debug)]
pub struct Backends {
    /// Libraries that cannot be used, with the reason.
    pub rejected: Vec<Rejected>,
    /// Where it was looked, and what was found there.
    pub discovery: Discovery,
}

static OPS: OnceLock<Result<Vec<&'static OpEntry>, String>> = OnceLock::new();
static BACKENDS: OnceLock<Backends> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

/// Starts the runtime with the backends of the usual places, if it is not started yet.
///
/// # Errors
/// Two definitions of one op, which is a defect of the program.
#[inline]
pub fn start() -> Result<()> {
    if BACKENDS.get().is_some() {
        return Ok(());
    }
    start_with(&[])
}

/// Starts the runtime, looking for backends in `paths` (folders or libraries) before the usual places.
///
/// # Errors
/// As [`start`].
#[cold]
pub fn start_with(paths: &[PathBuf]) -> Result<()> {
    let entries = register_ops()?;
    let _one = LOADING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if BACKENDS.get().is_none() {
        let backends = load(&Loader::new(Config::of_process(paths.to_vec())));
        // A definition is bound only now, so that no thread calls an op while the backends are loading.
        crate::ops::all().zip(entries).for_each(|(definition, entry)| definition.bind(entry));
        let _ = BACKENDS.set(backends);
    }
    Ok(())
}

/// Loads more backends from these paths only. A library that is loaded already is not loaded again.
///
/// # Errors
/// As [`start`].
pub fn load_backends(paths: &[PathBuf]) -> Result<Backends> {
    start()?;
    let _one = LOADING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(load(&Loader::new(Config::only(paths.to_vec()))))
}

fn load(loader: &Loader) -> Backends {
    let loaded = loader.load_all(abi::host::table(), abi::take_message);
    let present = registry::plugins();
    for plugin in &loaded.plugins {
        if present.iter().any(|p| p.path == plugin.path) {
            continue;
        }
        if let Err(error) = install::install(plugin) {
            keyway_dispatcher::log::warn(&format!("{}: {error}", plugin.path.display()));
        }
    }
    Backends { rejected: loaded.rejected, discovery: loaded.discovery }
}

/// What came of loading the backends of the usual places; `None` before the runtime is started.
pub fn backends() -> Option<&'static Backends> {
    BACKENDS.get()
}

/// Registers the ops and autograd; needs no backend.
///
/// # Errors
/// As [`start`].
pub fn register_ops() -> Result<&'static [&'static OpEntry]> {
    let done = OPS.get_or_init(|| {
        let specs: Vec<_> = crate::ops::all().map(|d| d.spec()).collect();
        let entries = registry::register_ops(&specs).map_err(|e| e.to_string())?;
        set_conversions(Conversions { cast, contiguous, to_device, copy_into });
        crate::autograd::install().map_err(|e| e.to_string())?;
        crate::profiler::install().map_err(|e| e.to_string())?;
        Ok(entries)
    });
    match done {
        Ok(entries) => Ok(entries),
        Err(reason) => Err(Error::Dispatch(keyway_dispatcher::Error::Registration {
            what: "ops",
            name: "keyway".into(),
            reason: reason.clone(),
        })),
    }
}

type DispatchResult<T> = keyway_dispatcher::Result<T>;

fn one(def: &'static crate::ops::def::OpDef, values: &[Arg<'_>], out: Out<'_>) -> DispatchResult<TensorRef> {
    let op = def.entry()?;
    let made: Outputs = keyway_dispatcher::call::call(Args { op, values }, out)?;
    made.into_iter()
        .next()
        .ok_or_else(|| keyway_dispatcher::Error::UnknownOp { name: def.name().to_string() })
}

fn cast(t: &TensorRef, dtype: crate::DType) -> DispatchResult<TensorRef> {
    one(&crate::ops::memory::to_dtype::DEF, &[t.into(), Arg::DType(dtype)], Out::New)
}

fn contiguous(t: &TensorRef) -> DispatchResult<TensorRef> {
    one(&crate::ops::memory::clone::DEF, &[t.into(), Arg::Str("contiguous")], Out::New)
}

fn to_device(t: &TensorRef, device: crate::Device) -> DispatchResult<TensorRef> {
    if t.device() == device {
        return Ok(t.clone());
    }
    one(&crate::ops::memory::to_device::DEF, &[t.into(), Arg::Str(&device.to_string())], Out::New)
}

fn copy_into(target: &TensorRef, source: &TensorRef) -> DispatchResult<()> {
    crate::Tensor::from_ref(target.clone()).copy_(&crate::Tensor::from_ref(source.clone()))?;
    Ok(())
}

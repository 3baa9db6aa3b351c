//! The runtime: registers ops and autograd, and discovers backends. Started by the first call that needs it.
//!
//! A forked child may continue to use tensors in host memory: it gets threads of its own when it needs them, and its random
//! numbers continue the parent's stream. Devices in a child are up to their plugins; drivers of GPUs refuse.
//! [`Error::Forked`](crate::Error::Forked) reports that the parent was still loading.

use crate::error::Result;
use keyway_dispatcher::fork::Held;
use keyway_dispatcher::loader::{Config, Discovery, Loader, Rejected, judged, probe, relative_entries};
use keyway_dispatcher::op::{OpEntry, OpSpec};
use keyway_dispatcher::plugin::PluginEntry;
use keyway_dispatcher::{host, install, registry};
use once_cell::sync::OnceCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

/// The parts of a start that belong to modules above this one, which therefore imports none of them: `startup` implements the
/// trait for [`Program`], and the compiler binds the calls.
pub(crate) trait Parts {
    /// The ops of the crate, in a fixed order.
    fn specs() -> Vec<OpSpec>;
    /// Registers what acts on registered ops: conversions, autograd, the profiler. Repeated after a failure.
    fn install(entries: &'static [&'static OpEntry]) -> keyway_dispatcher::Result<()>;
    /// Binds the definitions to their registered ops, in the order of [`Parts::specs`].
    fn bind(entries: &'static [&'static OpEntry]);
    /// Applies the settings of the user for every run: preferred backends, and fallbacks from the environment.
    fn apply_policies(preferred: &[String]);
    /// Takes the locks that a fork must not find taken.
    fn lock_for_fork() -> Held;
}

/// The implementor of [`Parts`].
pub(crate) struct Program;

/// The result of loading the backends.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// keyway::runtime::start()?;
/// let found = keyway::runtime::backends().unwrap();
/// assert!(found.rejected.is_empty(), "{:?}", found.rejected);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Backends {
    /// Libraries that cannot be used, with the reason.
    pub rejected: Vec<Rejected>,
    /// The searched paths, and the libraries found there.
    pub discovery: Discovery,
}

static OPS: OnceCell<Vec<&'static OpEntry>> = OnceCell::new();
static BACKENDS: OnceLock<Backends> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());
/// The process that holds `LOADING`, as its number of forks plus one; 0 if it is not held.
static HOLDER: AtomicU32 = AtomicU32::new(0);

/// Starts the runtime with the backends of the default search path, if it is not started yet.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{dispatcher::registry, runtime};
/// runtime::start()?;
/// assert!(registry::plugins().iter().any(|plugin| plugin.name == "keyway-cpu"));
/// # Ok(()) }
/// ```
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

/// Starts the runtime, searching `paths` (folders or libraries) for backends before the default search path.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::runtime;
/// runtime::start_with(&["no-such-folder".into()])?;
/// assert!(runtime::backends().is_some());
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`start`].
#[cold]
pub fn start_with(paths: &[PathBuf]) -> Result<()> {
    let _one = Loading::enter()?;
    let entries = register_all_ops()?;
    if BACKENDS.get().is_none() {
        let config = Config::of_process(paths.to_vec());
        let preferred = config.preferences.preferred();
        let problem = config.preferences.problem();
        let backends = load(&Loader::new(config));
        keyway_dispatcher::lacking::set(backends.discovery.lacking().unwrap_or_default());
        if let Some(ignored) = relative_entries(&backends.discovery.searched) {
            keyway_dispatcher::log::warn(&ignored);
        }
        for problem in [problem, probe::problem(), judged::problem()].into_iter().flatten() {
            keyway_dispatcher::log::warn(&problem);
        }
        Program::apply_policies(&preferred);
        // A definition is bound only now, so that no thread calls an op while the backends are loading.
        Program::bind(entries);
        let _ = BACKENDS.set(backends);
    }
    Ok(())
}

/// The right to load, one thread's at a time.
struct Loading(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Loading {
    fn enter() -> Result<Loading> {
        let own = keyway_dispatcher::fork::generation() + 1;
        let lock = match LOADING.try_lock() {
            Ok(lock) => lock,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The thread that holds it is not of this process.
            Err(TryLockError::WouldBlock) if ![0, own].contains(&HOLDER.load(Ordering::Relaxed)) => {
                return Err(crate::Error::Forked);
            }
            Err(TryLockError::WouldBlock) => LOADING.lock().unwrap_or_else(|poisoned| poisoned.into_inner()),
        };
        HOLDER.store(own, Ordering::Relaxed);
        Ok(Loading(lock))
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        HOLDER.store(0, Ordering::Relaxed);
    }
}

/// Loads more backends from these paths only. A library that is loaded already is not loaded again.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("libbroken.so");
/// std::fs::write(&path, "no library").unwrap();
/// let made = keyway::runtime::load_backends(&[path])?;
/// assert_eq!(made.rejected.len(), 1);
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`start`].
pub fn load_backends(paths: &[PathBuf]) -> Result<Backends> {
    start()?;
    let _one = Loading::enter()?;
    Ok(load(&Loader::new(Config::only(paths.to_vec()))))
}

fn load(loader: &Loader) -> Backends {
    let table = host::table();
    keyway_dispatcher::fork::protect(Program::lock_for_fork);
    let mut loaded = loader.load_all(table, host::take_message);
    let present = registry::plugins();
    let new = loaded.plugins.iter().filter(|plugin| present.iter().all(|p| p.path != plugin.path));
    install::install_all(new).into_iter().for_each(|rejected| loaded.refuse(rejected));
    warn_of_left_out(&present);
    warn_of_unreached(&present);
    Backends { rejected: loaded.rejected, discovery: loaded.discovery }
}

/// Warns of kernels of new plugins that are unused, because the signatures of their ops differ here.
fn warn_of_left_out(before: &[&'static PluginEntry]) {
    let mut by_plugin: Vec<(&'static str, Vec<String>)> = Vec::new();
    for left in registry::left_out() {
        let Some(expected) = left.expected else { continue };
        let plugin = left.kernel.plugin;
        if before.iter().any(|p| std::ptr::eq(*p, plugin)) {
            continue;
        }
        let text = format!("{} ({}, here {expected})", left.kernel.op, left.kernel.signature);
        match by_plugin.iter_mut().find(|(name, _)| *name == plugin.name) {
            Some((_, kernels)) if !kernels.contains(&text) => kernels.push(text),
            Some(_) => {}
            None => by_plugin.push((plugin.name, vec![text])),
        }
    }
    for (plugin, kernels) in by_plugin {
        keyway_dispatcher::log::warn(&format!(
            "`{plugin}`: kernels written against other signatures are left out: {}; \
             a build against this version would bring them back",
            kernels.join(", ")
        ));
    }
}

/// Warns of unreachable parts of new plugins, now that all plugins are loaded that might provide the missing parts.
fn warn_of_unreached(before: &[&'static PluginEntry]) {
    for (plugin, found) in registry::unreached(|new| !before.iter().any(|p| std::ptr::eq(*p, new))) {
        let clauses: Vec<String> = found.iter().map(ToString::to_string).collect();
        keyway_dispatcher::log::warn(&format!("`{}`: without effect: {}", plugin.name, clauses.join("; ")));
    }
}

/// The result of loading the backends of the default search path; `None` before the runtime is started.
///
/// ```standalone_crate
/// # fn main() -> keyway::Result<()> {
/// use keyway::runtime;
/// assert!(runtime::backends().is_none());
/// runtime::start()?;
/// assert!(runtime::backends().is_some());
/// # Ok(()) }
/// ```
pub fn backends() -> Option<&'static Backends> {
    BACKENDS.get()
}

/// Registers the ops and autograd; needs no backend. A failed registration is repeated by the next call.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// let ops = keyway::runtime::register_ops()?;
/// assert!(ops.iter().any(|op| op.name == "softmax"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`start`].
pub fn register_ops() -> Result<&'static [&'static OpEntry]> {
    let _one = Loading::enter()?;
    register_all_ops()
}

fn register_all_ops() -> Result<&'static [&'static OpEntry]> {
    let entries = OPS.get_or_try_init(|| registry::register_ops(&Program::specs()))?;
    Program::install(entries)?;
    Ok(entries)
}

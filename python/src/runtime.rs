//! The start of the runtime: where backends are looked for.

use crate::error::OrRaise;
use keyway::Device;
use keyway::dispatcher::registry;
use keyway::runtime;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

static STARTED: AtomicBool = AtomicBool::new(false);

/// Starts the runtime at the first call: with the backends of the installed packages, which `keyway._backends` finds, before the
/// usual paths.
///
/// # Errors
/// Those of `keyway._backends.search_path`. A backend that cannot be loaded is no error.
pub fn start(py: Python<'_>) -> PyResult<()> {
    if STARTED.load(Ordering::Acquire) {
        return Ok(());
    }
    let paths: Vec<PathBuf> = py.import("keyway._backends")?.getattr("search_path")?.call0()?.extract()?;
    py.detach(|| runtime::start_with(&paths)).or_raise()?;
    STARTED.store(true, Ordering::Release);
    Ok(())
}

/// The loaded backends, and the libraries that were found and refused: dicts with `name`, `version`, `path`, and `error` of a
/// refused one.
#[pyfunction]
pub fn backends(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    start(py)?;
    let mut all = Vec::new();
    for plugin in registry::plugins() {
        let entry = PyDict::new(py);
        entry.set_item("name", plugin.name)?;
        entry.set_item("version", plugin.version.to_string())?;
        entry.set_item("path", plugin.path.display().to_string())?;
        entry.set_item("error", py.None())?;
        all.push(entry);
    }
    for rejected in runtime::backends().map_or(&[][..], |found| &found.rejected) {
        let entry = PyDict::new(py);
        entry.set_item("name", py.None())?;
        entry.set_item("version", py.None())?;
        entry.set_item("path", rejected.path.display().to_string())?;
        entry.set_item("error", rejected.error.to_string())?;
        all.push(entry);
    }
    Ok(all)
}

/// The devices that the loaded backends serve: `cpu`, `cuda:0`.
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<Vec<String>> {
    start(py)?;
    let mut all = vec![Device::CPU.to_string()];
    for entry in registry::devices().into_iter().filter(|entry| entry.kind != Device::CPU.kind) {
        let name = Device { kind: entry.kind, index: 0 }.name();
        let served = (0..keyway::device::count(name)).filter_map(|index| u16::try_from(index).ok());
        all.extend(served.map(|index| Device { kind: entry.kind, index }.to_string()));
    }
    Ok(all)
}

/// The number of threads that one call may use.
#[pyfunction]
pub fn get_num_threads() -> usize {
    keyway::num_threads()
}

/// Sets the number of threads that one call may use.
///
/// # Errors
/// `ValueError` for 0.
#[pyfunction]
pub fn set_num_threads(count: usize) -> PyResult<()> {
    if count == 0 {
        return Err(PyValueError::new_err("set_num_threads: expected at least 1 thread, got 0"));
    }
    keyway::set_num_threads(count);
    Ok(())
}

/// The number of devices of a kind, such as `cuda`; 0 without a backend of it.
#[pyfunction]
pub fn _count_devices(py: Python<'_>, kind: &str) -> PyResult<usize> {
    start(py)?;
    Ok(py.detach(|| keyway::device::count(kind)))
}

//! Profiles of a thread.

use crate::modes::{enter, with_guard};
use crate::runtime;
use keyway::profiler::{MemoryProfile, MemorySnapshot, Profile, Trace, memory, trace_at_most};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Begins a profile with at most this many events.
#[pyfunction]
pub fn _enter_profile(py: Python<'_>, events: usize) -> PyResult<u64> {
    runtime::start(py)?;
    Ok(enter(trace_at_most(events)))
}

/// Begins a profile of memory.
#[pyfunction]
pub fn _enter_memory_profile(py: Python<'_>) -> PyResult<u64> {
    runtime::start(py)?;
    Ok(enter(memory()))
}

/// The recorded calls of a profile.
#[pyclass(name = "_Trace", module = "keyway._keyway", frozen)]
pub struct PyTrace(Trace);

#[pymethods]
impl PyTrace {
    /// The report as text.
    fn table(&self) -> String {
        self.0.report.to_string()
    }

    /// The seconds that the profile lasted.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.report.seconds
    }

    /// The number of events, and of those beyond the most that are kept.
    #[getter]
    fn events(&self) -> (usize, u64) {
        (self.0.events.len(), self.0.dropped)
    }

    /// The rows: dicts with the op's name, its backend, calls, nanoseconds without and with the ops inside, and bytes.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |row: &keyway::profiler::OpStats| {
            let dict = PyDict::new(py);
            dict.set_item("op", &row.op)?;
            dict.set_item("served_by", &row.served_by)?;
            dict.set_item("calls", row.calls)?;
            dict.set_item("self_ns", row.self_ns)?;
            dict.set_item("total_ns", row.total_ns)?;
            dict.set_item("bytes", row.bytes)?;
            Ok(dict)
        };
        self.0.report.rows.iter().map(row).collect()
    }

    /// Writes the events for chrome://tracing or Perfetto.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        write(&path, |out| self.0.write_json(out))
    }
}

/// The recorded calls of a profile so far.
#[pyfunction]
pub fn _profile_trace(number: u64) -> PyResult<PyTrace> {
    with_guard(number, |profile: &Profile| PyTrace(profile.trace()))
}

/// The memory that storages have by the op that allocated them.
#[pyclass(name = "_Memory", module = "keyway._keyway", frozen)]
pub struct PyMemory(MemorySnapshot);

#[pymethods]
impl PyMemory {
    /// The present and the largest number of bytes by device.
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let device = |usage: &keyway::profiler::DeviceUsage| {
            let dict = PyDict::new(py);
            dict.set_item("device", &usage.device)?;
            dict.set_item("current", usage.usage.bytes)?;
            dict.set_item("peak", usage.usage.peak_bytes)?;
            Ok(dict)
        };
        self.0.devices.iter().map(device).collect()
    }

    /// Writes a page if the path ends in `.html`, else JSON.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        let page = path.extension().is_some_and(|extension| extension == "html");
        write(&path, |out| if page { self.0.write_html(out) } else { self.0.write_json(out) })
    }
}

/// The memory of a profile of memory.
#[pyfunction]
pub fn _memory_snapshot(number: u64) -> PyResult<PyMemory> {
    with_guard(number, |profile: &MemoryProfile| PyMemory(profile.snapshot()))
}

fn write(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> PyResult<()> {
    let file = File::create(path).map(BufWriter::new);
    let done = file.and_then(|mut file| write(&mut file).and_then(|()| file.flush()));
    done.map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
}

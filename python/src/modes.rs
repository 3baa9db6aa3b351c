//! Modes of a thread that last as long as a block of Python: mixed precision, inference, anomaly detection, profiles and named
//! parts of them.
//!
//! The Rust side ends a mode when its guard is dropped. The guards are stored here by number, on the thread that they belong to.

use crate::dtype::{self, PyDType};
use crate::error::OrRaise;
use crate::runtime;
use keyway::autograd;
use keyway::profiler;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A mode that a thread has entered.
struct Entered {
    number: u64,
    guard: Box<dyn Any>,
    /// Whether no object of Python ends the mode any more; it lasts until an outer one ends.
    lasting: bool,
}

thread_local! {
    static GUARDS: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// Stores a guard, and returns its number.
pub fn enter(guard: impl Any) -> u64 {
    let number = NEXT.get();
    NEXT.set(number + 1);
    GUARDS.with_borrow_mut(|guards| guards.push(Entered { number, guard: Box::new(guard), lasting: false }));
    number
}

/// Drops guards, the last one first, outside the borrow: the end of a mode may run other code.
fn end(guards: Vec<Entered>) {
    guards.into_iter().rev().for_each(drop);
}

/// Calls Python code in the middle of the Rust side's own modes, and ends those that the code left on.
pub fn scoped<R>(run: impl FnOnce() -> R) -> R {
    let before = GUARDS.with_borrow(Vec::len);
    let result = run();
    end(GUARDS.with_borrow_mut(|guards| guards.split_off(before.min(guards.len()))));
    result
}

/// Reads the guard of a number.
///
/// # Errors
/// `RuntimeError` on another thread than the one that entered the mode, or after its end.
pub fn with_guard<G: Any, R>(number: u64, read: impl FnOnce(&G) -> R) -> PyResult<R> {
    GUARDS.with_borrow(|guards| {
        let found = guards.iter().find(|one| one.number == number).and_then(|one| one.guard.downcast_ref());
        found.map(read).ok_or_else(elsewhere)
    })
}

fn elsewhere() -> PyErr {
    PyRuntimeError::new_err("the block ended, or began on another thread; enter and leave it on one thread")
}

/// Ends the mode of a number, and those inside it that no object ends.
#[pyfunction]
pub fn _leave(number: u64) -> PyResult<()> {
    let taken = GUARDS.with_borrow_mut(|guards| {
        let at = guards.iter().position(|one| one.number == number)?;
        let (mut ended, mut rest) = (Vec::new(), Vec::new());
        for one in guards.split_off(at) {
            if one.number == number || one.lasting { ended.push(one) } else { rest.push(one) }
        }
        guards.append(&mut rest);
        Some(ended)
    });
    end(taken.ok_or_else(elsewhere)?);
    Ok(())
}

/// Lets the mode of a number last, since its object is gone.
#[pyfunction]
pub fn _let_last(number: u64) {
    let replaced = GUARDS.with_borrow_mut(|guards| {
        let at = guards.iter().position(|one| one.number == number)?;
        guards[at].lasting = true;
        let below = at.checked_sub(1).filter(|&below| guards[below].lasting)?;
        Some(guards.remove(below))
    });
    drop(replaced);
}

/// Begins to record calls on this thread, or ends that.
#[pyfunction]
pub fn _enter_grad(on: bool) -> u64 {
    enter(autograd::set_grad_enabled(on))
}

/// Begins inference mode.
#[pyfunction]
pub fn _enter_inference() -> u64 {
    enter(autograd::inference_mode())
}

/// Whether this thread is in inference mode.
#[pyfunction]
pub fn is_inference_mode_enabled() -> bool {
    autograd::is_inference_mode()
}

/// Begins mixed precision with a dtype, or ends it for a block if there is none.
#[pyfunction]
pub fn _enter_autocast(py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    runtime::start(py)?;
    match dtype {
        Some(dtype) => Ok(enter(keyway::autocast(dtype::convert(dtype)?).or_raise()?)),
        None => Ok(enter(keyway::autocast::autocast_off())),
    }
}

/// The dtype of mixed precision on this thread, or `None`.
#[pyfunction]
pub fn autocast_dtype() -> Option<PyDType> {
    keyway::autocast::autocast_dtype().map(PyDType)
}

/// Blocks of anomaly detection.
static ANOMALIES: AtomicUsize = AtomicUsize::new(0);

/// Whether calls keep the interpreter's lock, since recorded ones read the stack of Python.
pub fn keeps_lock() -> bool {
    ANOMALIES.load(Ordering::Acquire) > 0
}

/// A block of anomaly detection.
struct Anomaly(#[allow(dead_code)] autograd::AnomalyGuard);

impl Drop for Anomaly {
    fn drop(&mut self) {
        ANOMALIES.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The stack of Python, for errors of anomaly detection.
fn python_stack() -> Option<String> {
    Python::attach(|py| {
        let lines = py.import("traceback").ok()?.call_method0("format_stack").ok()?;
        let lines: Vec<String> = lines.extract().ok()?;
        (!lines.is_empty()).then(|| lines.concat())
    })
}

/// Begins anomaly detection.
#[pyfunction]
pub fn _enter_anomaly() -> u64 {
    autograd::set_trace_source(python_stack);
    ANOMALIES.fetch_add(1, Ordering::AcqRel);
    enter(Anomaly(autograd::detect_anomaly()))
}

/// Begins a part of a profile.
#[pyfunction]
pub fn _enter_scope(name: &str) -> u64 {
    enter(profiler::scope(name))
}

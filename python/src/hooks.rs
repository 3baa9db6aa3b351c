//! Hooks on gradients.

use crate::error::OrRaise;
use crate::function::is_backward_running;
use crate::handle::PyTensor;
use crate::modes;
use keyway::Tensor;
use keyway::autograd::{HookHandle, owns_hooks};
use keyway::dispatcher::memory::{Shared, Weak};
use keyway::dispatcher::tensor::TensorImpl;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{self, Arc, Mutex, PoisonError};

/// A Python function that a hook calls; empty once garbage was collected.
pub struct Callback(Mutex<Option<Py<PyAny>>>);

impl Callback {
    fn call(&self, py: Python<'_>, tensor: &Tensor) -> PyResult<Option<Tensor>> {
        let function = {
            let function = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            function.as_ref().map(|function| function.clone_ref(py))
        };
        let Some(function) = function else { return Ok(None) };
        let made = function.call1(py, (PyTensor(tensor.clone()),))?;
        if made.is_none(py) {
            return Ok(None);
        }
        let made = made.bind(py);
        let tensor = made.cast::<PyTensor>().map_err(|_| {
            let got = made.get_type().name().map_or_else(|_| "another type".into(), |name| name.to_string());
            pyo3::exceptions::PyTypeError::new_err(format!("a hook returns a tensor or None, got {got}"))
        })?;
        Ok(Some(tensor.get().0.clone()))
    }
}

/// The key of the hooks in an object's `__dict__`.
pub const KEY: &str = "_hooks";

/// The hooks that were registered with one object, which holds this in its `__dict__`: the collector of garbage finds their
/// functions here, while the graph owns them.
#[pyclass(module = "keyway", frozen)]
pub struct PyHooks {
    tensor: Weak<TensorImpl>,
    callbacks: Mutex<Vec<sync::Weak<Callback>>>,
}

#[pymethods]
impl PyHooks {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(all) = self.callbacks.try_lock() else { return Ok(()) };
        if is_backward_running() {
            return Ok(());
        }
        // The object's handle, and this one.
        let Some(tensor) = self.tensor.upgrade().map(Tensor::from_ref) else { return Ok(()) };
        if !owns_hooks(&tensor, 2) {
            return Ok(());
        }
        for callback in all.iter().filter(|one| one.strong_count() == 1).filter_map(sync::Weak::upgrade) {
            if let Ok(function) = callback.0.try_lock()
                && let Some(function) = &*function
            {
                visit.call(function)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let all = std::mem::take(&mut *self.callbacks.lock().unwrap_or_else(PoisonError::into_inner));
        for callback in all.iter().filter_map(sync::Weak::upgrade) {
            let function = callback.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(function);
        }
    }
}

/// A callback of a Python function, which the collector of garbage finds by the tensor's object.
fn callback(of: &Bound<'_, PyTensor>, hook: Py<PyAny>) -> PyResult<Arc<Callback>> {
    let callback = Arc::new(Callback(Mutex::new(Some(hook))));
    let attributes = of.getattr("__dict__")?;
    let hooks = match attributes.call_method1("get", (KEY,))?.cast_into::<PyHooks>() {
        Ok(hooks) => hooks,
        Err(_) => {
            let tensor = Shared::downgrade(of.get().0.as_ref());
            let hooks = Bound::new(of.py(), PyHooks { tensor, callbacks: Mutex::default() })?;
            attributes.set_item(KEY, &hooks)?;
            hooks
        }
    };
    let mut all = hooks.get().callbacks.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(&callback));
    Ok(callback)
}

/// A registered hook. It lasts until `remove()`, also when this object is gone.
#[pyclass(name = "RemovableHandle", module = "keyway", frozen)]
pub struct PyHook(Mutex<Option<HookHandle>>);

#[pymethods]
impl PyHook {
    /// Ends the calls of the hook.
    fn remove(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) {
        self.remove();
    }
}

impl Drop for PyHook {
    fn drop(&mut self) {
        if let Some(handle) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            handle.keep();
        }
    }
}

#[pymethods]
impl PyTensor {
    /// Calls a function with each gradient of this tensor that a backward pass computes; a tensor that it returns replaces the
    /// gradient. The result's `remove()` ends that.
    fn register_hook(slf: &Bound<'_, Self>, hook: Py<PyAny>) -> PyResult<PyHook> {
        let callback = callback(slf, hook)?;
        let called = move |gradient: &Tensor| {
            Python::attach(|py| modes::scoped(|| callback.call(py, gradient))).map_err(keyway::Error::other)
        };
        let handle = slf.get().0.register_hook(called).or_raise()?;
        Ok(PyHook(Mutex::new(Some(handle))))
    }

    /// Calls a function with this leaf after each accumulation of its gradient. The result's `remove()` ends that.
    fn register_post_accumulate_grad_hook(slf: &Bound<'_, Self>, hook: Py<PyAny>) -> PyResult<PyHook> {
        let callback = callback(slf, hook)?;
        let called = move |leaf: &Tensor| {
            Python::attach(|py| modes::scoped(|| callback.call(py, leaf)))
                .map(drop)
                .map_err(keyway::Error::other)
        };
        let handle = slf.get().0.register_post_accumulate_grad_hook(called).or_raise()?;
        Ok(PyHook(Mutex::new(Some(handle))))
    }
}

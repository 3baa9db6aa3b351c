//! Gradients.

use crate::error::OrRaise;
use crate::handle::PyTensor;
use keyway::Tensor;
use keyway::autograd::BackwardOptions;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Tensors of one object or a sequence.
pub fn tensors(object: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(vec![tensor.get().0.clone()]);
    }
    let each = object.try_iter()?.map(|tensor| {
        let tensor = tensor?;
        let tensor = tensor.cast::<PyTensor>().map_err(|_| PyTypeError::new_err("expected tensors"))?;
        Ok(tensor.get().0.clone())
    });
    each.collect()
}

/// Runs a backward pass from outputs.
pub fn backward(
    py: Python<'_>,
    outputs: &[Tensor],
    gradients: Option<Vec<Tensor>>,
    retain_graph: Option<bool>,
    create_graph: bool,
) -> PyResult<()> {
    let options = BackwardOptions {
        gradients,
        retain_graph: retain_graph.unwrap_or(create_graph),
        create_graph,
        ..BackwardOptions::default()
    };
    py.detach(|| keyway::autograd::backward(outputs, options)).or_raise()
}

/// The gradients of outputs with respect to inputs, `None` for an input that they do not depend on if `allow_unused`.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=false, allow_unused=false))]
pub fn grad(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    grad_outputs: Option<&Bound<'_, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
) -> PyResult<Vec<Option<PyTensor>>> {
    let (outputs, inputs) = (tensors(outputs)?, tensors(inputs)?);
    let options = BackwardOptions {
        gradients: grad_outputs.map(tensors).transpose()?,
        retain_graph: retain_graph.unwrap_or(create_graph),
        create_graph,
        allow_unused,
        ..BackwardOptions::default()
    };
    let made = py.detach(|| keyway::autograd::grad(&outputs, &inputs, options)).or_raise()?;
    Ok(made.into_iter().map(|gradient| gradient.map(PyTensor)).collect())
}

/// Whether calls are recorded on this thread.
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    keyway::is_grad_enabled()
}

/// Sets whether calls are recorded on this thread, and returns what was set before.
#[pyfunction]
pub fn _set_grad_enabled(on: bool) -> bool {
    let before = keyway::is_grad_enabled();
    // The guard would undo it at the end of this function; the caller does, by another call.
    std::mem::forget(keyway::set_grad_enabled(on));
    before
}

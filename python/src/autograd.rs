//! Gradients.

use crate::error::OrRaise;
use crate::function::detached;
use crate::handle::PyTensor;
use keyway::Tensor;
use keyway::autograd::BackwardOptions;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

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
    detached(py, || keyway::autograd::backward(outputs, options)).or_raise()
}

/// Adds the gradients of outputs to `grad` of the leaves that they depend on.
#[pyfunction]
#[pyo3(signature = (outputs, gradients=None, retain_graph=None, create_graph=false))]
pub fn _backward(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    gradients: Option<&Bound<'_, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
) -> PyResult<()> {
    backward(py, &tensors(outputs)?, gradients.map(tensors).transpose()?, retain_graph, create_graph)
}

/// The gradients of outputs with respect to inputs, `None` for an input that they do not depend on if `allow_unused`.
#[pyfunction]
#[pyo3(signature = (
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=false, allow_unused=None, only_inputs=true,
    materialize_grads=false
))]
#[allow(clippy::too_many_arguments)]
pub fn grad<'py>(
    py: Python<'py>,
    outputs: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    grad_outputs: Option<&Bound<'py, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: Option<bool>,
    only_inputs: bool,
    materialize_grads: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    if !only_inputs {
        return Err(PyTypeError::new_err(
            "grad: `only_inputs=False` is not supported; call `backward` for all leaves",
        ));
    }
    let (outputs, inputs) = (tensors(outputs)?, tensors(inputs)?);
    let options = BackwardOptions {
        gradients: grad_outputs.map(tensors).transpose()?,
        retain_graph: retain_graph.unwrap_or(create_graph),
        create_graph,
        allow_unused: allow_unused.unwrap_or(materialize_grads),
        ..BackwardOptions::default()
    };
    let made = detached(py, || keyway::autograd::grad(&outputs, &inputs, options)).or_raise()?;
    let each = made.into_iter().zip(&inputs).map(|(gradient, input)| {
        let gradient = match gradient {
            None if materialize_grads => Some(input.detach().zeros_like().or_raise()?),
            gradient => gradient,
        };
        gradient.map(PyTensor).into_pyobject(py)
    });
    PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
}

/// Whether calls are recorded on this thread.
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    keyway::is_grad_enabled()
}

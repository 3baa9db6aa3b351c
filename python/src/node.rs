//! The graph as Python sees it.

use crate::handle::PyTensor;
use keyway::autograd::GradFn;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A recorded call in the graph. `name()` is the op's name.
#[pyclass(name = "Node", module = "keyway.autograd", frozen, weakref)]
pub struct PyNode(pub GradFn);

#[pymethods]
impl PyNode {
    /// The name of the op or function.
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The nodes that gradients flow to, each with the index of its result: one for each tensor argument, `(None, 0)` for an
    /// argument without a gradient.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let each = self.0.next_functions().into_iter().map(|next| match next {
            Some((node, output)) => (Some(PyNode(node)), output).into_pyobject(py),
            None => (None::<PyNode>, 0).into_pyobject(py),
        });
        PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
    }

    /// The leaf whose gradient the node accumulates, or `None`.
    #[getter]
    fn variable(&self) -> Option<PyTensor> {
        self.0.variable().map(PyTensor)
    }

    /// The shapes of the results.
    #[getter]
    fn output_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let each = self.0.output_shapes().into_iter().map(|shape| PyTuple::new(py, shape));
        PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
    }

    /// The tensors that the node saved for its derivative.
    #[getter]
    fn saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let each = self.0.saved_tensors().into_iter().map(|saved| Bound::new(py, PyTensor(saved.tensor)));
        PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
    }

    /// The number of the call; later calls have larger ones.
    fn _sequence_nr(&self) -> u64 {
        self.0.number()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyNode>().is_ok_and(|other| self.0.ptr_eq(&other.get().0))
    }

    fn __hash__(&self) -> u64 {
        self.0.number()
    }

    fn __repr__(&self) -> String {
        format!("<{}>", self.0.name())
    }
}

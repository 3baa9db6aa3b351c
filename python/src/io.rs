//! Files: safetensors, npy, npz.

use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::runtime;
use keyway::io::{npy, npz, safetensors};
use keyway::nn::StateDict;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// The extension of a path, which selects the format.
fn extension(path: &std::path::Path) -> PyResult<&str> {
    let found = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    match found {
        "safetensors" | "npy" | "npz" => Ok(found),
        _ => Err(PyValueError::new_err(format!(
            "expected a file named .safetensors, .npy or .npz, got `{}`",
            path.display()
        ))),
    }
}

/// Writes a tensor to a `.npy` file, or a dict of tensors to a `.safetensors` or `.npz` file, replacing the file when all is written.
#[pyfunction]
pub fn save(py: Python<'_>, obj: &Bound<'_, PyAny>, path: PathBuf) -> PyResult<()> {
    let format = extension(&path)?;
    if let Ok(tensor) = obj.cast::<PyTensor>() {
        if format != "npy" {
            return Err(PyValueError::new_err(format!(
                "save: a .{format} file takes a dict of tensors, got one tensor"
            )));
        }
        let tensor = tensor.get().0.clone();
        return py.detach(|| npy::save(&path, &tensor)).or_raise();
    }
    let dict = obj
        .cast::<PyDict>()
        .map_err(|_| PyValueError::new_err("save: expected a tensor or a dict of tensors"))?;
    let mut tensors = StateDict::new();
    for (name, tensor) in dict.iter() {
        let tensor = tensor
            .cast::<PyTensor>()
            .map_err(|_| PyValueError::new_err(format!("save: expected a tensor under {name}")))?;
        tensors.insert(name.extract()?, tensor.get().0.clone());
    }
    match format {
        "safetensors" => py.detach(|| safetensors::save(&path, &tensors)).or_raise(),
        "npz" => py.detach(|| npz::save(&path, &tensors)).or_raise(),
        _ => Err(PyValueError::new_err("save: a .npy file takes one tensor, got a dict; name the file .npz")),
    }
}

/// Reads a `.npy` file as a tensor, a `.safetensors` or `.npz` file as a dict of tensors.
#[pyfunction]
pub fn load<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
    runtime::start(py)?;
    let tensors = match extension(&path)? {
        "npy" => {
            let tensor = py.detach(|| npy::load(&path)).or_raise()?;
            return Ok(Bound::new(py, PyTensor(tensor))?.into_any());
        }
        "npz" => py.detach(|| npz::load(&path)).or_raise()?,
        _ => py.detach(|| safetensors::load(&path)).or_raise()?,
    };
    let dict = PyDict::new(py);
    for (name, tensor) in tensors {
        dict.set_item(name, Bound::new(py, PyTensor(tensor))?)?;
    }
    Ok(dict.into_any())
}

/// A safetensors file whose tensors are loaded one at a time.
#[pyclass(name = "_MappedFile", module = "keyway._keyway", frozen)]
pub struct PyMappedFile(safetensors::MappedFile);

#[pymethods]
impl PyMappedFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        runtime::start(py)?;
        py.detach(|| safetensors::open(&path)).or_raise().map(PyMappedFile)
    }

    /// The names of the tensors, sorted.
    fn keys(&self) -> Vec<String> {
        self.0.list().into_iter().map(|entry| entry.name).collect()
    }

    /// The dtype's name in the file and the shape of a tensor, which is not read.
    fn describe(&self, name: &str) -> PyResult<(String, Vec<usize>)> {
        let found = self.0.list().into_iter().find(|entry| entry.name == name);
        let entry = found.ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
        Ok((entry.dtype, entry.shape))
    }

    /// The metadata that the file's writer added.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.0.metadata() {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// The tensor of a name.
    fn tensor(&self, py: Python<'_>, name: &str) -> PyResult<PyTensor> {
        py.detach(|| self.0.tensor(name)).or_raise().map(PyTensor)
    }
}

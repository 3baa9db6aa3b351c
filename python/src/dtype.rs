//! Element types.

use keyway::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};

/// The dtypes with their names in NumPy and PyTorch, and their formats in the buffer protocol (PEP 3118); bfloat16 has none.
pub const DTYPES: [(DType, &str, Option<&str>); 15] = [
    (DType::BOOL, "bool", Some("?")),
    (DType::U8, "uint8", Some("B")),
    (DType::U16, "uint16", Some("H")),
    (DType::U32, "uint32", Some("I")),
    (DType::U64, "uint64", Some("Q")),
    (DType::I8, "int8", Some("b")),
    (DType::I16, "int16", Some("h")),
    (DType::I32, "int32", Some("i")),
    (DType::I64, "int64", Some("q")),
    (DType::F16, "float16", Some("e")),
    (DType::BF16, "bfloat16", None),
    (DType::F32, "float32", Some("f")),
    (DType::F64, "float64", Some("d")),
    (DType::C64, "complex64", Some("Zf")),
    (DType::C128, "complex128", Some("Zd")),
];

/// The name of a dtype in NumPy and PyTorch; that of a plugin's dtype is its own.
pub fn name(dtype: DType) -> &'static str {
    DTYPES.iter().find(|(known, ..)| *known == dtype).map_or(dtype.name(), |(_, name, _)| name)
}

/// The format of a dtype's elements in the buffer protocol.
pub fn format(dtype: DType) -> Option<&'static str> {
    DTYPES.iter().find(|(known, ..)| *known == dtype).and_then(|(.., format)| *format)
}

/// An element type: `keyway.float32`, `keyway.int64`. Equal to `numpy.dtype` objects of the same name.
#[pyclass(name = "dtype", module = "keyway", frozen)]
#[derive(Clone, Copy)]
pub struct PyDType(pub DType);

#[pymethods]
impl PyDType {
    /// The name in NumPy and PyTorch: `float32`.
    #[getter]
    fn name(&self) -> &'static str {
        name(self.0)
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Whether it is a real floating-point type.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// Whether it is a complex type.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }

    fn __repr__(&self) -> String {
        format!("keyway.{}", name(self.0))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        convert(other).is_ok_and(|other| other == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.0.code().into()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("keyway")?.getattr("_dtype")?, (name(self.0),)))
    }
}

/// The dtype of this name: NumPy's, PyTorch's, or Keyway's own short one.
///
/// # Errors
/// `TypeError` for an unknown name.
fn by_name(text: &str) -> PyResult<DType> {
    let text = text.strip_prefix("torch.").or_else(|| text.strip_prefix("keyway.")).unwrap_or(text);
    let known = DTYPES.iter().find(|(_, name, _)| *name == text).map(|(dtype, ..)| *dtype);
    known.or_else(|| DType::from_name(text)).or_else(|| DType::from_other_name(text)).ok_or_else(|| {
        let names: Vec<&str> = DTYPES.iter().map(|(_, name, _)| *name).collect();
        PyTypeError::new_err(format!("expected a dtype, got `{text}`; there are {}", names.join(", ")))
    })
}

/// The dtype that a Python object stands for: a `keyway.dtype`, a name, a `numpy.dtype`, or `bool`, `int`, `float`, `complex`.
///
/// # Errors
/// `TypeError` for any other object.
pub fn convert(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(dtype) = object.cast::<PyDType>() {
        return Ok(dtype.get().0);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return by_name(&text.to_string_lossy());
    }
    let py = object.py();
    if let Ok(class) = object.cast::<PyType>() {
        if class.is(py.get_type::<PyBool>()) {
            return Ok(DType::BOOL);
        } else if class.is(py.get_type::<PyInt>()) {
            return Ok(DType::I64);
        } else if class.is(py.get_type::<PyFloat>()) {
            return Ok(DType::F64);
        } else if class.is(py.get_type::<PyComplex>()) {
            return Ok(DType::C128);
        }
        return by_name(&class.name()?.to_string_lossy());
    }
    match object.getattr("name").and_then(|name| name.extract::<String>()) {
        Ok(text) => by_name(&text),
        // The dtypes of PyTorch have no name, but `torch.float32` as text.
        Err(_) => by_name(&object.str()?.to_string_lossy()),
    }
}

/// The dtype under a name, for unpickling.
#[pyfunction]
pub fn _dtype(text: &str) -> PyResult<PyDType> {
    by_name(text).map(PyDType)
}

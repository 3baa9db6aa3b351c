//! Promotion of dtypes.

use crate::dtype::{PyDType, convert, name};
use crate::error::raise;
use crate::handle::PyTensor;
use keyway::DType;
use keyway::dispatcher::dtype::Promotion;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyTuple};

/// The dtype to which both promote.
///
/// # Errors
/// `DTypeError` if there is none, as for uint64 with a signed integer.
#[pyfunction]
pub fn promote_types(type1: &Bound<'_, PyAny>, type2: &Bound<'_, PyAny>) -> PyResult<PyDType> {
    let (left, right) = (convert(type1)?, convert(type2)?);
    left.promote(right).map(PyDType).ok_or_else(|| no_common(left, right))
}

/// Whether a conversion keeps the category or raises it, in the order bool, integers, floats, complex numbers.
#[pyfunction]
pub fn can_cast(from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(convert(from_)?.can_cast(convert(to)?))
}

/// The dtype of an op on tensors, dtypes and numbers: tensors and dtypes promote by their dtypes alone; a number raises the
/// category at most.
///
/// # Errors
/// `TypeError` without arguments; `DTypeError` if there is no common dtype.
#[pyfunction]
#[pyo3(signature = (*arrays_and_dtypes))]
pub fn result_type(arrays_and_dtypes: &Bound<'_, PyTuple>) -> PyResult<PyDType> {
    let mut promotion = Promotion::default();
    for object in arrays_and_dtypes {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            promotion.tensor(tensor.get().0.dtype(), 1);
        } else if object.is_instance_of::<PyBool>() {
            promotion.number(DType::BOOL);
        } else if object.is_instance_of::<PyInt>() {
            promotion.number(DType::I64);
        } else if object.is_instance_of::<PyFloat>() {
            promotion.number(DType::F64);
        } else if object.is_instance_of::<PyComplex>() {
            promotion.tensor(keyway::default_dtype().to_complex().unwrap_or(DType::C64), 0);
        } else {
            promotion.tensor(convert(&object)?, 1);
        }
    }
    if arrays_and_dtypes.is_empty() {
        return Err(PyTypeError::new_err("result_type: expected at least one tensor, dtype or number"));
    }
    promotion.result().map(PyDType).map_err(|(left, right)| no_common(left, right))
}

fn no_common(left: DType, right: DType) -> PyErr {
    let (left, right) = (name(left), name(right));
    raise("DTypeError", format!("{left} and {right} have no common dtype; convert one with `to(dtype=...)`"))
}

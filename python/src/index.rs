//! Indexing as in NumPy: ints, slices, `...`, `None`, masks, integer arrays and lists.

use crate::arg::{self, Value};
use crate::data;
use crate::error::{OrRaise, exception, raise};
use crate::handle;
use keyway::dispatcher::Error as DispatchError;
use keyway::dispatcher::schema::{Kind, Param};
use keyway::tensor::Index;
use keyway::{DType, Tensor};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PySlice, PyTuple};

/// One bound of a slice.
fn bound(slice: &Bound<'_, PySlice>, name: &str) -> PyResult<Option<i64>> {
    let value = slice.getattr(name)?;
    if value.is_none() {
        return Ok(None);
    }
    value
        .extract()
        .map(Some)
        .map_err(|_| PyTypeError::new_err(format!("slice bounds are ints or None, got {value}")))
}

/// One element of a key.
fn convert(object: &Bound<'_, PyAny>) -> PyResult<Index> {
    if let Ok(slice) = object.cast::<PySlice>() {
        let step = bound(slice, "step")?.unwrap_or(1);
        if step < 1 {
            return Err(PyIndexError::new_err(format!(
                "slice steps are at least 1, got {step}; reverse a dimension with `flip`"
            )));
        }
        return Ok(Index::Range { start: bound(slice, "start")?, end: bound(slice, "stop")?, step });
    }
    if object.is_none() {
        return Ok(Index::NewAxis);
    }
    if object.is(object.py().Ellipsis()) {
        return Ok(Index::Ellipsis);
    }
    if object.is_instance_of::<PyBool>() {
        return Err(PyIndexError::new_err(
            "expected an int, a slice, `...`, None or a tensor as index, got a bool",
        ));
    }
    match object.extract::<i64>() {
        Ok(at) => return Ok(Index::At(at)),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            return Err(PyIndexError::new_err(format!("the index {object} is out of range")));
        }
        Err(_) => {}
    }
    let tensor = match handle::tensor(object)? {
        Some(tensor) => tensor,
        None if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() => {
            let made = data::from_nested(object, None)?;
            if made.elem_count() == 0 { made.to_dtype(DType::I64).or_raise()? } else { made }
        }
        None => {
            let got = object.get_type().name()?;
            return Err(PyIndexError::new_err(format!(
                "expected an int, a slice, `...`, None, a list or a tensor as index, got {got}"
            )));
        }
    };
    if !(tensor.dtype().is_integer() || tensor.dtype() == DType::BOOL) {
        let got = crate::dtype::name(tensor.dtype());
        return Err(PyIndexError::new_err(format!("expected indices of integers or bool, got {got}")));
    }
    Ok(Index::Tensor(tensor))
}

/// The elements of a key, one or a tuple.
fn indices(key: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|object| convert(&object)).collect(),
        Err(_) => Ok(vec![convert(key)?]),
    }
}

/// The exception of an index that does not fit: of a mask of another shape, of a second ellipsis.
fn as_index_error(error: keyway::Error) -> PyErr {
    match &error {
        keyway::Error::Dispatch(
            DispatchError::Value { .. } | DispatchError::Shape { .. } | DispatchError::Broadcast { .. },
        ) => raise("IndexError", error.to_string()),
        _ => exception(error),
    }
}

/// The number of dimensions of the indexed tensor that an index is for.
fn width(index: &Index) -> usize {
    match index {
        Index::Tensor(mask) if mask.dtype() == DType::BOOL => mask.rank(),
        Index::NewAxis | Index::Ellipsis => 0,
        _ => 1,
    }
}

/// The indices of a key that fit the tensor's number of dimensions.
fn fitting(tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    let indices = indices(key)?;
    let (used, rank) = (indices.iter().map(width).sum::<usize>(), tensor.rank());
    if used > rank {
        return Err(PyIndexError::new_err(format!(
            "expected at most {rank} indices for a tensor of {rank} dimensions, got {used}"
        )));
    }
    Ok(indices)
}

/// `tensor[key]`: a view for ints and slices, a copy with arrays and masks.
///
/// # Errors
/// `IndexError` for an index out of range or of another type, and for too many indices.
pub fn get(tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    tensor.i(&fitting(tensor, key)?[..]).map_err(as_index_error)
}

/// `tensor[key] = value`, with `value` broadcast and converted to the tensor's dtype.
///
/// # Errors
/// Those of [`get`]; a value that does not broadcast to the selected shape.
pub fn set(tensor: &Tensor, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    const VALUE: Param = Param { name: "value", kind: Kind::Tensor, optional: false, default: None };
    let value = match arg::convert("index_put", &VALUE, value) {
        Ok(value) => value,
        Err(_) if value.is_instance_of::<PyList>() => Value::Tensor(data::from_nested(value, None)?),
        Err(wrong) => return Err(wrong),
    };
    let value = match value {
        Value::Tensor(value) if value.dtype() != tensor.dtype() => {
            Value::Tensor(value.to_dtype(tensor.dtype()).or_raise()?)
        }
        value => value,
    };
    let indices = fitting(tensor, key)?;
    let has_arrays = indices.iter().any(|index| matches!(index, Index::Tensor(_)));
    if !has_arrays {
        let selected = tensor.i(&indices[..]).map_err(as_index_error)?;
        let filled = match &value {
            Value::Tensor(value) => selected.copy_(value),
            number => selected.fill_(number.arg(&[])),
        };
        return filled.or_raise().map(drop);
    }
    // The view by all but the arrays, and for each of its dimensions the array or none; one entry for all dimensions of a mask.
    let used: usize = indices.iter().map(width).sum();
    let (mut views, mut arrays): (Vec<Index>, Vec<Option<Tensor>>) = (Vec::new(), Vec::new());
    for index in indices {
        match index {
            Index::Tensor(array) => {
                let whole = Index::Range { start: None, end: None, step: 1 };
                views.extend(std::iter::repeat_n(whole, width(&Index::Tensor(array.clone()))));
                arrays.push(Some(array));
            }
            Index::At(at) => views.push(Index::At(at)),
            Index::Ellipsis => {
                arrays.extend(std::iter::repeat_n(None, tensor.rank().saturating_sub(used)));
                views.push(Index::Ellipsis);
            }
            other => {
                arrays.push(None);
                views.push(other);
            }
        }
    }
    let view = tensor.i(&views[..]).map_err(as_index_error)?;
    let arrays: Vec<Option<&Tensor>> = arrays.iter().map(Option::as_ref).collect();
    view.index_put_(&arrays, value.arg(&[])).or_raise().map(drop)
}

//! Indexing as in NumPy: ints, slices, also of negative steps, `...`, `None`, masks, integer arrays and lists.

use crate::arg::{self, Parts, Value};
use crate::data;
use crate::error::{OrRaise, exception, raise};
use crate::handle::{self, PyTensor};
use keyway::dispatcher::Error as DispatchError;
use keyway::dispatcher::schema::{Kind, Param};
use keyway::tensor::Index;
use keyway::{DType, Tensor};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyRange, PySlice, PyTuple};

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

/// Whether an object is a list, a tuple or a range.
fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyRange>()
}

/// One element of a key.
fn convert(object: &Bound<'_, PyAny>) -> PyResult<Index> {
    if let Ok(slice) = object.cast::<PySlice>() {
        let step = bound(slice, "step")?.unwrap_or(1);
        if step == 0 {
            return Err(PyValueError::new_err("expected a slice step other than 0"));
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
    if let Ok(mask) = object.cast::<PyTensor>()
        && mask.get().0.dtype() == DType::BOOL
    {
        return Ok(Index::Tensor(mask.get().0.clone()));
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
        None if is_sequence(object) => {
            let made = match object.cast::<PyRange>() {
                Ok(range) => {
                    let ints = range.try_iter()?.collect::<PyResult<Vec<_>>>()?;
                    data::from_nested(PyList::new(object.py(), ints)?.as_any(), None)?
                }
                Err(_) => data::from_nested(object, None)?,
            };
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

/// A key in three steps: a view by everything but the arrays, its dimensions that are reversed, and the arrays.
struct Selection {
    view: Tensor,
    /// The dimensions of the view whose slices have negative steps.
    reversed: Vec<i64>,
    /// For each dimension of the view the array or none; one entry for all dimensions of a mask.
    arrays: Vec<Option<Tensor>>,
}

/// The ascending range of the elements of a slice with a negative step in a dimension of `size` elements.
fn ascending(start: Option<i64>, end: Option<i64>, step: i64, size: usize) -> Index {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let within = |at: i64| if at < 0 { at.saturating_add(size).max(-1) } else { at.min(size - 1) };
    let (first, last) = (start.map_or(size - 1, within), end.map_or(-1, within));
    if first <= last {
        return Index::Range { start: Some(0), end: Some(0), step: 1 };
    }
    let distance = step.saturating_neg();
    let steps = (first - last - 1) / distance;
    Index::Range { start: Some(first - steps * distance), end: Some(first + 1), step: distance }
}

impl Selection {
    /// # Errors
    /// `IndexError` for an index out of range or of another type, and for too many indices.
    fn new(tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Selection> {
        let indices = fitting(tensor, key)?;
        let used: usize = indices.iter().map(width).sum();
        let mut views: Vec<Index> = Vec::with_capacity(indices.len());
        let (mut reversed, mut arrays) = (Vec::new(), Vec::new());
        // `source` counts the dimensions of the tensor, `dim` those of the view.
        let (mut source, mut dim) = (0usize, 0usize);
        for index in indices {
            let takes = width(&index);
            match index {
                Index::Range { start, end, step } => {
                    views.push(if step < 0 {
                        reversed.push(dim as i64);
                        ascending(start, end, step, tensor.shape().get(source).copied().unwrap_or(0))
                    } else {
                        Index::Range { start, end, step }
                    });
                    arrays.push(None);
                    dim += 1;
                }
                Index::Tensor(mask) if mask.dtype() == DType::BOOL && mask.rank() == 0 => {
                    views.push(Index::NewAxis);
                    arrays.push(Some(mask.reshape([1]).or_raise()?));
                    dim += 1;
                }
                Index::Tensor(array) => {
                    for at in 0..takes {
                        // A dimension of size 0 of a mask selects nothing of a dimension of any size.
                        let empty = array.dtype() == DType::BOOL && array.shape().get(at) == Some(&0);
                        views.push(Index::Range { start: None, end: empty.then_some(0), step: 1 });
                    }
                    arrays.push(Some(array));
                    dim += takes;
                }
                Index::Ellipsis => {
                    let whole = tensor.rank().saturating_sub(used);
                    arrays.extend(std::iter::repeat_n(None, whole));
                    (source, dim) = (source + whole, dim + whole);
                    views.push(Index::Ellipsis);
                }
                Index::NewAxis => {
                    views.push(Index::NewAxis);
                    arrays.push(None);
                    dim += 1;
                }
                // An int removes its dimension.
                other => views.push(other),
            }
            source += takes;
        }
        let view = tensor.i(&views[..]).map_err(as_index_error)?;
        Ok(Selection { view, reversed, arrays })
    }

    fn has_arrays(&self) -> bool {
        self.arrays.iter().any(Option::is_some)
    }

    /// The arrays as references.
    fn arrays(&self) -> Vec<Option<&Tensor>> {
        self.arrays.iter().map(Option::as_ref).collect()
    }

    /// A tensor of the view's shape with the dimensions of negative steps reversed.
    fn flipped(&self, tensor: &Tensor) -> PyResult<Tensor> {
        if self.reversed.is_empty() {
            return Ok(tensor.clone());
        }
        tensor.flip(&self.reversed[..]).or_raise()
    }
}

/// `tensor[key]`: a view for ints and slices of positive steps, a copy with arrays, masks and negative steps.
///
/// # Errors
/// `IndexError` for an index out of range or of another type, and for too many indices.
pub fn get(tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let selection = Selection::new(tensor, key)?;
    let made = selection.flipped(&selection.view)?;
    if !selection.has_arrays() {
        return Ok(made);
    }
    made.index(&selection.arrays()).map_err(as_index_error)
}

/// `tensor[key] = value`, with `value` broadcast and converted to the tensor's dtype.
///
/// # Errors
/// Those of [`get`]; a value that does not broadcast to the selected shape.
pub fn set(tensor: &Tensor, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    const VALUE: Param = Param { name: "value", kind: Kind::Tensor, optional: false, default: None };
    let value = match arg::convert("index_put", &VALUE, value, Parts::beside(tensor.dtype())) {
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
    let selection = Selection::new(tensor, key)?;
    let view = &selection.view;
    if !selection.has_arrays() {
        let filled = match &value {
            Value::Tensor(value) if selection.reversed.is_empty() => view.copy_(value),
            Value::Tensor(value) => view.copy_(&selection.flipped(&value.expand(view.shape()).or_raise()?)?),
            number => view.fill_(number.arg(&[])),
        };
        return filled.or_raise().map(drop);
    }
    if selection.reversed.is_empty() {
        return view.index_put_(&selection.arrays(), value.arg(&[])).or_raise().map(drop);
    }
    let changed = selection.flipped(view)?.index_put(&selection.arrays(), value.arg(&[])).or_raise()?;
    view.copy_(&selection.flipped(&changed)?).or_raise().map(drop)
}

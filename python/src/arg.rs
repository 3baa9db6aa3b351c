//! Python objects as arguments of ops.

use crate::handle::{PyTensor, tensor};
use crate::{data, dtype};
use keyway::dispatcher::schema::{Kind, Param};
use keyway::dispatcher::tensor::TensorRef;
use keyway::{Arg, DType, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyString, PyTuple};

/// An argument that owns its contents.
pub enum Value {
    None,
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Str(String),
    DType(DType),
}

impl Value {
    /// References to the tensors of a list, which an [`Arg`] borrows.
    pub fn list(&self) -> Vec<&TensorRef> {
        match self {
            Value::Tensors(tensors) => tensors.iter().map(AsRef::as_ref).collect(),
            _ => Vec::new(),
        }
    }

    /// The argument, with the list of [`Value::list`].
    pub fn arg<'a>(&'a self, list: &'a [&'a TensorRef]) -> Arg<'a> {
        match self {
            Value::None => Arg::None,
            Value::Tensor(tensor) => tensor.into(),
            Value::Tensors(_) => Arg::Tensors(list),
            Value::Int(value) => Arg::Int(*value),
            Value::Float(value) => Arg::Float(*value),
            Value::Bool(value) => Arg::Bool(*value),
            Value::Ints(values) => Arg::Ints(values),
            Value::Floats(values) => Arg::Floats(values),
            Value::Str(text) => Arg::Str(text),
            Value::DType(dtype) => Arg::DType(*dtype),
        }
    }
}

/// The exception for an argument of another type.
fn mismatch(op: &str, param: &Param, object: &Bound<'_, PyAny>) -> PyErr {
    let got = object.get_type().name().map_or_else(|_| "another type".into(), |name| name.to_string());
    let or_none = if param.optional { " or None" } else { "" };
    let expected = match param.kind {
        Kind::Tensor | Kind::OptionalTensor => "a tensor or a number",
        Kind::Tensors => "a sequence of tensors",
        Kind::Scalar | Kind::Float => "a number",
        Kind::Int => "an int",
        Kind::Bool => "a bool",
        Kind::Ints => "an int or a sequence of ints",
        Kind::Floats => "a sequence of numbers",
        Kind::Str => "a str",
        Kind::DType => "a dtype",
    };
    PyTypeError::new_err(format!("{op}: expected `{}` to be {expected}{or_none}, got {got}", param.name))
}

/// A Python number as an integer, a float or a bool; a complex one, and an int above i64, as a tensor without dimensions.
///
/// # Errors
/// `OverflowError` for an int beyond 64 bits. `None` for an object of another type.
fn number(object: &Bound<'_, PyAny>, parts: Parts) -> PyResult<Option<Value>> {
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Ok(Some(Value::Float(value.value())));
    }
    if let Ok(value) = object.cast_exact::<PyBool>() {
        return Ok(Some(Value::Bool(value.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        if let Ok(value) = int(object) {
            return Ok(Some(Value::Int(value)));
        }
        // Beyond i64, a tensor without dimensions of u64 holds it.
        let made = data::from_nested(object, Some(DType::U64))
            .map_err(|_| PyOverflowError::new_err(format!("expected an int of 64 bits, got {object}")))?;
        return Ok(Some(Value::Tensor(made)));
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Some(Value::Float(object.extract()?)));
    }
    if object.is_instance_of::<PyComplex>() {
        let dtype = if parts == Parts::Double { Some(DType::C128) } else { None };
        return data::from_nested(object, dtype).map(|tensor| Some(Value::Tensor(tensor)));
    }
    Ok(None)
}

/// The width of the parts of a Python complex number beside tensors: that of the default dtype, or double beside one of f64 or
/// c128, so that no digit is lost.
#[derive(Clone, Copy, PartialEq)]
pub enum Parts {
    Default,
    Double,
}

impl Parts {
    /// The width beside a tensor of this dtype.
    pub fn beside(dtype: DType) -> Parts {
        if matches!(dtype, DType::F64 | DType::C128) { Parts::Double } else { Parts::Default }
    }

    /// The width beside these objects.
    pub fn among<'a, 'py: 'a>(objects: impl IntoIterator<Item = &'a Bound<'py, PyAny>>) -> Parts {
        let double = |object: &Bound<'_, PyAny>| {
            object.cast::<PyTensor>().is_ok_and(|x| Parts::beside(x.get().0.dtype()) == Parts::Double)
        };
        if objects.into_iter().any(double) { Parts::Double } else { Parts::Default }
    }
}

/// A tensor, a number, or an array whose memory is shared; `None` for an object of another type.
///
/// # Errors
/// `OverflowError` for an int beyond 64 bits; those of [`tensor`] for an array.
pub fn operand(object: &Bound<'_, PyAny>, parts: Parts) -> PyResult<Option<Value>> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(Some(Value::Tensor(tensor.get().0.clone())));
    }
    match number(object, parts)? {
        Some(value) => Ok(Some(value)),
        None => Ok(tensor(object)?.map(Value::Tensor)),
    }
}

/// An int, or an object with `__index__`.
fn int(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    object.extract::<i64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(object.py()) {
            PyOverflowError::new_err(format!("expected an int of 64 bits, got {object}"))
        } else {
            error
        }
    })
}

/// The elements of a list or tuple, or of another sequence that is no text.
fn elements<'py>(object: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return Some(tuple.iter().collect());
    }
    if let Ok(list) = object.cast::<PyList>() {
        return Some(list.iter().collect());
    }
    if object.is_instance_of::<PyString>() || object.cast::<PyTensor>().is_ok() {
        return None;
    }
    object.try_iter().ok()?.collect::<PyResult<Vec<_>>>().ok()
}

/// Converts an object to the kind of a parameter.
///
/// # Errors
/// `TypeError` naming the parameter; `OverflowError` for an int beyond 64 bits.
pub fn convert(op: &str, param: &Param, object: &Bound<'_, PyAny>, parts: Parts) -> PyResult<Value> {
    let wrong = || mismatch(op, param, object);
    if object.is_none() {
        return if param.optional || param.kind == Kind::OptionalTensor {
            Ok(Value::None)
        } else {
            Err(wrong())
        };
    }
    Ok(match param.kind {
        Kind::Tensor | Kind::OptionalTensor => operand(object, parts)?.ok_or_else(wrong)?,
        Kind::Tensors => {
            let tensors = elements(object).ok_or_else(wrong)?;
            let each = tensors.iter().map(|element| tensor(element)?.ok_or_else(wrong));
            Value::Tensors(each.collect::<PyResult<_>>()?)
        }
        Kind::Scalar => match number(object, parts)? {
            Some(value) => value,
            None if object.hasattr("__float__")? => Value::Float(object.extract().map_err(|_| wrong())?),
            None => return Err(wrong()),
        },
        Kind::Int => Value::Int(int(object).map_err(|error| overflow_or(error, object.py(), wrong))?),
        Kind::Float => Value::Float(object.extract().map_err(|_| wrong())?),
        Kind::Bool => Value::Bool(object.extract().map_err(|_| wrong())?),
        Kind::Ints => match int(object) {
            Ok(value) => Value::Ints(vec![value]),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => return Err(error),
            Err(_) => {
                let values = elements(object).ok_or_else(wrong)?;
                let each = values.iter().map(int).collect::<PyResult<_>>();
                Value::Ints(each.map_err(|error| overflow_or(error, object.py(), wrong))?)
            }
        },
        Kind::Floats => {
            let values = elements(object).ok_or_else(wrong)?;
            Value::Floats(
                values.iter().map(|value| value.extract().map_err(|_| wrong())).collect::<PyResult<_>>()?,
            )
        }
        Kind::Str => Value::Str(object.cast::<PyString>().map_err(|_| wrong())?.to_string()),
        Kind::DType => Value::DType(dtype::convert(object)?),
    })
}

/// The exception of an int beyond 64 bits, or else `wrong`.
fn overflow_or(error: PyErr, py: Python<'_>, wrong: impl Fn() -> PyErr) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(py) { error } else { wrong() }
}

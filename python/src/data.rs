//! Tensors of Python data: numbers, nested sequences, arrays, and files.

use crate::arrow;
use crate::buffer;
use crate::dlpack;
use crate::dtype::{self, PyDType};
use crate::error::OrRaise;
use crate::handle::{self, PyTensor, has_buffer};
use crate::runtime;
use keyway::{Complex, DType, Device, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// The deepest nesting of lists: the largest rank of a NumPy array.
const DEEPEST: usize = 64;

/// The numbers of a nested sequence in row-major order.
#[derive(Default)]
struct Numbers {
    values: Vec<Number>,
    shape: Vec<usize>,
    /// Tensors or arrays among the elements, in which case there are no numbers.
    tensors: Vec<Tensor>,
}

#[derive(Clone, Copy)]
enum Number {
    Bool(bool),
    Int(i128),
    Float(f64),
    Complex(f64, f64),
}

impl Numbers {
    /// Appends the elements of `object`, which is nested `depth` sequences deep.
    fn collect(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let sequence = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        if !sequence {
            return match self.shape.get(depth) {
                Some(expected) => Err(ragged("a number", &format!("a sequence of {expected}"))),
                None => self.push(object),
            };
        }
        if depth == DEEPEST {
            return Err(PyValueError::new_err(format!(
                "tensor: expected at most {DEEPEST} dimensions, got more"
            )));
        }
        let count = object.len()?;
        let first = self.values.is_empty() && self.tensors.is_empty();
        match self.shape.get(depth) {
            None if first => self.shape.push(count),
            None => return Err(ragged(&format!("a sequence of {count}"), "a number")),
            Some(&expected) if expected != count => {
                return Err(ragged(&format!("a sequence of {count}"), &format!("one of {expected}")));
            }
            Some(_) => {}
        }
        for element in object.try_iter()? {
            self.collect(&element?, depth + 1)?;
        }
        Ok(())
    }

    fn push(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = if let Ok(value) = object.cast::<PyBool>() {
            Number::Bool(value.is_true())
        } else if object.is_instance_of::<PyFloat>() {
            Number::Float(object.extract()?)
        } else if object.is_instance_of::<PyInt>() {
            Number::Int(object.extract().map_err(|_| too_large(object))?)
        } else if let Ok(value) = object.cast::<PyComplex>() {
            Number::Complex(value.real(), value.imag())
        } else if let Some(tensor) = handle::tensor(object)? {
            self.tensors.push(tensor);
            return Ok(());
        } else {
            let got = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "tensor: expected numbers, nested sequences of them, or arrays, got an element of type {got}"
            )));
        };
        self.values.push(number);
        Ok(())
    }

    /// The dtype of PyTorch for such elements: the default dtype for floats, i64 for ints.
    fn dtype(&self) -> DType {
        let default = keyway::default_dtype();
        let any = |is: fn(&Number) -> bool| self.values.iter().any(is);
        if any(|n| matches!(n, Number::Complex(..))) {
            default.to_complex().unwrap_or(DType::C64)
        } else if any(|n| matches!(n, Number::Float(_))) || self.values.is_empty() {
            default
        } else if any(|n| matches!(n, Number::Int(_))) {
            DType::I64
        } else {
            DType::BOOL
        }
    }
}

fn ragged(got: &str, expected: &str) -> PyErr {
    PyValueError::new_err(format!(
        "tensor: expected sequences of equal lengths, got {got} beside {expected} at the same depth"
    ))
}

fn too_large(value: &Bound<'_, PyAny>) -> PyErr {
    PyOverflowError::new_err(format!("tensor: expected ints of 64 bits, got {value}"))
}

/// A tensor of a number, or of a nested list or tuple of numbers, tensors or arrays.
///
/// # Errors
/// `ValueError` for sequences of unequal lengths, `TypeError` for other elements, `OverflowError` for an int that the dtype cannot
/// hold.
pub fn from_nested(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let mut numbers = Numbers::default();
    numbers.collect(object, 0)?;
    if !numbers.tensors.is_empty() {
        if !numbers.values.is_empty() {
            return Err(ragged("a number", "an array"));
        }
        let stacked = Tensor::stack(&numbers.tensors, 0).or_raise()?;
        let sizes: Vec<usize> = numbers.shape.iter().chain(&stacked.shape()[1..]).copied().collect();
        let made = stacked.reshape(&sizes[..]).or_raise()?;
        return dtype.map_or(Ok(made.clone()), |dtype| made.to_dtype(dtype).or_raise());
    }
    let dtype = dtype.unwrap_or_else(|| numbers.dtype());
    numbers.into_tensor(dtype)
}

impl Numbers {
    fn into_tensor(self, dtype: DType) -> PyResult<Tensor> {
        let shape = &self.shape[..];
        if dtype.is_complex() {
            let parts = self.values.iter().map(|number| match *number {
                Number::Complex(re, im) => Complex::new(re, im),
                other => Complex::new(other.real(), 0.0),
            });
            let made = Tensor::from_vec(parts.collect::<Vec<_>>(), shape).or_raise()?;
            return made.to_dtype(dtype).or_raise();
        }
        if self.values.iter().any(|number| matches!(number, Number::Complex(..))) {
            let name = dtype::name(dtype);
            return Err(PyTypeError::new_err(format!(
                "tensor: expected real numbers for {name}, got complex ones"
            )));
        }
        if dtype == DType::U64 {
            let ints = self.values.iter().map(|number| number.integer(dtype).map(|value| value as u64));
            return Tensor::from_vec(ints.collect::<PyResult<Vec<_>>>()?, shape).or_raise();
        }
        if dtype.is_integer() {
            let ints = self.values.iter().map(|number| number.integer(dtype).map(|value| value as i64));
            let made = Tensor::from_vec(ints.collect::<PyResult<Vec<_>>>()?, shape).or_raise()?;
            return made.to_dtype(dtype).or_raise();
        }
        if dtype == DType::BOOL {
            let truths: Vec<bool> = self.values.iter().map(|number| number.real() != 0.0).collect();
            return Tensor::from_vec(truths, shape).or_raise();
        }
        let floats: Vec<f64> = self.values.iter().map(|number| number.real()).collect();
        if dtype == DType::F32 {
            return Tensor::from_vec(floats.into_iter().map(|v| v as f32).collect::<Vec<_>>(), shape)
                .or_raise();
        }
        Tensor::from_vec(floats, shape).or_raise()?.to_dtype(dtype).or_raise()
    }
}

impl Number {
    fn real(self) -> f64 {
        match self {
            Number::Bool(value) => f64::from(u8::from(value)),
            Number::Int(value) => value as f64,
            Number::Float(value) | Number::Complex(value, _) => value,
        }
    }

    /// The number as an integer of `dtype`, rounded towards zero.
    fn integer(self, dtype: DType) -> PyResult<i128> {
        let value = match self {
            Number::Int(value) => value,
            Number::Float(value) if value.is_finite() => value as i128,
            Number::Float(value) => {
                let name = dtype::name(dtype);
                return Err(PyValueError::new_err(format!(
                    "tensor: expected finite numbers for {name}, got {value}"
                )));
            }
            other => other.real() as i128,
        };
        let (least, most) = dtype.integer_range().unwrap_or((i64::MIN.into(), i64::MAX.into()));
        if value < least || value > most {
            let name = dtype::name(dtype);
            return Err(PyOverflowError::new_err(format!(
                "tensor: expected ints from {least} to {most} for {name}, got {value}"
            )));
        }
        Ok(value)
    }
}

/// The device of a name, or that of a tensor or device object.
pub fn device(object: &Bound<'_, PyAny>) -> PyResult<Device> {
    let text = object.cast::<PyString>().map_err(|_| {
        PyTypeError::new_err(format!(
            "expected a device as a str, such as \"cpu\" or \"cuda:0\", got {object}"
        ))
    })?;
    Device::parse(&text.to_string_lossy()).map_err(keyway::Error::from).or_raise()
}

/// The tensor over the memory of an array of another library, or over a copy where it cannot be shared; `None` for other objects.
fn of_array(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Option<Tensor>> {
    if has_buffer(object) {
        return buffer::import(object, copy).map(Some);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    if object.hasattr("__arrow_c_array__")? {
        return arrow::import(object, copy).map(Some);
    }
    if object.hasattr("__dlpack__")? {
        // Producers before DLPack 1.0 cannot copy.
        let made = dlpack::import(object, copy.filter(|copy| !copy))?;
        return if copy == Some(true) { made.copy().or_raise().map(Some) } else { Ok(Some(made)) };
    }
    if object.hasattr("__array__")? {
        check_nulls(object)?;
        let keywords = PyDict::new(object.py());
        if copy == Some(false) {
            // NumPy refuses a copy of what cannot be shared.
            keywords.set_item("copy", false)?;
        }
        let array = object.py().import("numpy")?.call_method("asarray", (object,), Some(&keywords))?;
        return buffer::import(&array, copy).map(Some);
    }
    Ok(None)
}

/// Refuses nulls of chunked arrays of pyarrow and of series of polars, which NumPy turns into NaN.
fn check_nulls(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(count) = object.getattr("null_count") else { return Ok(()) };
    let count = if count.is_callable() { count.call0()? } else { count };
    match count.extract::<u64>() {
        Ok(count) if count > 0 => Err(PyValueError::new_err(format!(
            "expected an array of numbers, got one with {count} nulls; a tensor has none: fill or drop them first"
        ))),
        _ => Ok(()),
    }
}

/// A tensor of `data`, copied: numbers, nested sequences, arrays, tensors.
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false))]
pub fn tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let dtype = dtype.map(dtype::convert).transpose()?;
    let made = if let Ok(other) = data.cast::<PyTensor>() {
        other.get().0.detach().copy().or_raise()?
    } else if let Some(made) = of_array(data, Some(true))? {
        made
    } else {
        from_nested(data, dtype)?
    };
    finish(made, dtype, device, requires_grad)
}

/// A tensor over the memory of `data` where it can be shared, as [`buffer::import`] states; a copy of sequences. A tensor is
/// returned as it is.
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, copy=None))]
pub fn asarray(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let dtype = dtype.map(dtype::convert).transpose()?;
    let made = if let Ok(other) = data.cast::<PyTensor>() {
        let other = other.get().0.clone();
        if copy == Some(true) { other.copy().or_raise()? } else { other }
    } else if let Some(made) = of_array(data, copy)? {
        made
    } else if copy == Some(false) {
        return Err(PyValueError::new_err(
            "asarray: the memory of Python numbers cannot be shared; leave `copy` out",
        ));
    } else {
        from_nested(data, dtype)?
    };
    shared(finish(made.clone(), dtype, device, false)?, &made, copy, "asarray")
}

/// The result of a conversion, which is an error if it had to copy and `copy` is false.
fn shared(result: PyTensor, source: &Tensor, copy: Option<bool>, name: &str) -> PyResult<PyTensor> {
    let (made, from) = (&result.0, source);
    if copy != Some(false) || (made.dtype() == from.dtype() && made.device() == from.device()) {
        return Ok(result);
    }
    let (got, expected) = (dtype::name(from.dtype()), dtype::name(made.dtype()));
    Err(PyValueError::new_err(format!(
        "{name}: the memory of {got} on {} cannot be shared as {expected} on {}; leave `copy` out",
        from.device(),
        made.device()
    )))
}

/// A tensor over the memory of an object with `__dlpack__`: of NumPy, PyTorch, JAX.
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
pub fn from_dlpack(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let made = dlpack::import(x, copy)?;
    shared(finish(made.clone(), None, device, false)?, &made, copy, "from_dlpack")
}

/// A read-only tensor over the memory of an Arrow array of numbers: of pyarrow, polars, nanoarrow. Lists of a fixed size are a second
/// dimension. Booleans are copied.
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
pub fn from_arrow(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let converted = match x.hasattr("__arrow_c_array__")? {
        // A series of polars.
        false if x.hasattr("to_arrow")? => x.call_method0("to_arrow")?,
        _ => x.clone(),
    };
    let x = &converted;
    if !x.hasattr("__arrow_c_array__")? {
        return Err(PyTypeError::new_err(format!(
            "from_arrow: expected an object with `__arrow_c_array__`, got {}; combine the chunks of a chunked array first",
            x.get_type().name()?
        )));
    }
    let made = arrow::import(x, copy)?;
    shared(finish(made.clone(), None, device, false)?, &made, copy, "from_arrow")
}

/// Applies the options that all constructors have.
pub fn finish(
    made: Tensor,
    dtype: Option<DType>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let made = match dtype {
        Some(dtype) if dtype != made.dtype() => made.to_dtype(dtype).or_raise()?,
        _ => made,
    };
    let made = match device.filter(|device| !device.is_none()).map(self::device).transpose()? {
        Some(device) if device != made.device() => made.to_device(device).or_raise()?,
        _ => made,
    };
    if requires_grad {
        return made.requires_grad_(true).or_raise().map(PyTensor);
    }
    Ok(PyTensor(made))
}

/// The dtype of new tensors of floats.
#[pyfunction]
pub fn get_default_dtype() -> PyDType {
    PyDType(keyway::default_dtype())
}

/// Sets the dtype of new tensors of floats.
#[pyfunction]
pub fn set_default_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    keyway::set_default_dtype(dtype::convert(dtype)?).or_raise()
}

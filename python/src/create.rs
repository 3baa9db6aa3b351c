//! Tensors without data: filled, ranges, random numbers.

use crate::arg::{self, Parts, Value};
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::{data, dtype, runtime};
use keyway::dispatcher::schema::{Kind, Param};
use keyway::tensor::TensorOptions;
use keyway::{Arg, DType, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

const SHAPE: Param = Param { name: "size", kind: Kind::Ints, optional: false, default: None };
const FILL: Param = Param { name: "fill_value", kind: Kind::Scalar, optional: false, default: None };

/// The shape of `zeros(2, 3)` or `zeros((2, 3))`.
fn shape(op: &str, sizes: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    let sizes = if sizes.len() == 1 { sizes.get_item(0)? } else { sizes.clone().into_any() };
    match arg::convert(op, &SHAPE, &sizes, Parts::Default)? {
        Value::Ints(sizes) => Ok(sizes),
        _ => Err(PyTypeError::new_err(format!("{op}: expected a shape"))),
    }
}

pub fn options(
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<TensorOptions> {
    Ok(TensorOptions {
        dtype: dtype.map(dtype::convert).transpose()?,
        device: device.map(data::device).transpose()?,
        ..TensorOptions::default()
    })
}

/// A constructor of a shape and the usual options.
macro_rules! of_shape {
    ($($(#[$doc:meta])* $name:ident => $call:path;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (*size, dtype=None, device=None, requires_grad=false))]
        pub fn $name(
            py: Python<'_>,
            size: &Bound<'_, PyTuple>,
            dtype: Option<&Bound<'_, PyAny>>,
            device: Option<&Bound<'_, PyAny>>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            runtime::start(py)?;
            let (shape, options) = (shape(stringify!($name), size)?, options(dtype, device)?);
            data::finish($call(&shape[..], options).or_raise()?, None, None, requires_grad)
        }
    )*};
}

of_shape! {
    /// A tensor of zeros.
    zeros => Tensor::zeros_with;
    /// A tensor of ones.
    ones => Tensor::ones_with;
    /// A tensor whose elements are unspecified.
    empty => Tensor::empty_with;
    /// Uniformly distributed numbers from 0 to 1, 1 excluded.
    rand => Tensor::rand_with;
    /// Normally distributed numbers of mean 0 and standard deviation 1.
    randn => Tensor::randn_with;
}

/// A constructor of the shape, dtype, device and memory format of another tensor.
macro_rules! like {
    ($($(#[$doc:meta])* $name:ident => $call:path;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (input, *, dtype=None, device=None, requires_grad=false))]
        pub fn $name(
            input: &Bound<'_, PyTensor>,
            dtype: Option<&Bound<'_, PyAny>>,
            device: Option<&Bound<'_, PyAny>>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            let made = $call(&input.get().0, options(dtype, device)?).or_raise()?;
            data::finish(made, None, None, requires_grad)
        }
    )*};
}

like! {
    /// Zeros of the shape, dtype and device of a tensor.
    zeros_like => Tensor::zeros_like_with;
    /// Ones of the shape, dtype and device of a tensor.
    ones_like => Tensor::ones_like_with;
    /// Unspecified elements of the shape, dtype and device of a tensor.
    empty_like => Tensor::empty_like_with;
    /// Uniformly distributed numbers from 0 to 1 of the shape, dtype and device of a tensor.
    rand_like => Tensor::rand_like_with;
    /// Normally distributed numbers of the shape, dtype and device of a tensor.
    randn_like => Tensor::randn_like_with;
}

/// Elements of one value of the shape, dtype and device of a tensor.
#[pyfunction]
#[pyo3(signature = (input, fill_value, *, dtype=None, device=None, requires_grad=false))]
pub fn full_like(
    input: &Bound<'_, PyTensor>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (input, options) = (&input.get().0, options(dtype, device)?);
    let parts = Parts::beside(options.dtype.unwrap_or(input.dtype()));
    let value = arg::convert("full_like", &FILL, fill_value, parts)?;
    let made = match &value {
        Value::Tensor(value) => input.empty_like_with(options).and_then(|made| made.copy_(value)),
        number => input.full_like_with(number.arg(&[]), options),
    };
    data::finish(made.or_raise()?, None, None, requires_grad)
}

/// A tensor whose elements are all `fill_value`; its dtype is that of the value if none is given.
#[pyfunction]
#[pyo3(signature = (size, fill_value, *, dtype=None, device=None, requires_grad=false))]
pub fn full(
    py: Python<'_>,
    size: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let shape = shape("full", &PyTuple::new(py, [size])?)?;
    let mut options = options(dtype, device)?;
    let parts = options.dtype.map_or(Parts::Default, Parts::beside);
    let value = arg::convert("full", &FILL, fill_value, parts)?;
    options.dtype = options.dtype.or(match value {
        Value::Bool(_) => Some(DType::BOOL),
        Value::Int(_) => Some(DType::I64),
        Value::Tensor(ref value) => Some(value.dtype()),
        _ => None,
    });
    let made = match &value {
        // A complex number, or an int above i64.
        Value::Tensor(value) => Tensor::empty_with(&shape[..], options).and_then(|made| made.copy_(value)),
        number => Tensor::full_with(&shape[..], number.arg(&[]), options),
    };
    data::finish(made.or_raise()?, None, None, requires_grad)
}

/// Numbers from `start` (0) to `end`, which is excluded, in steps: `arange(5)`, `arange(1, 5, 2)`. Integers give int64, others the
/// default dtype.
#[pyfunction]
#[pyo3(signature = (start, end=None, step=None, *, dtype=None, device=None, requires_grad=false))]
pub fn arange(
    py: Python<'_>,
    start: &Bound<'_, PyAny>,
    end: Option<&Bound<'_, PyAny>>,
    step: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let scalar = |object: &Bound<'_, PyAny>| arg::convert("arange", &FILL, object, Parts::Default);
    let (first, last) = match end {
        Some(end) => (scalar(start)?, scalar(end)?),
        None => (Value::Int(0), scalar(start)?),
    };
    let step = step.map_or(Ok(Value::Int(1)), scalar)?;
    let whole =
        [&first, &last, &step].iter().all(|value| matches!(value.arg(&[]), Arg::Int(_) | Arg::Bool(_)));
    let mut options = options(dtype, device)?;
    if whole {
        options.dtype = options.dtype.or(Some(DType::I64));
    }
    let made = Tensor::arange_with(first.arg(&[]), last.arg(&[]), step.arg(&[]), options).or_raise()?;
    data::finish(made, None, None, requires_grad)
}

/// `steps` numbers from `start` to `end`, both included, at equal distances.
#[pyfunction]
#[pyo3(signature = (start, end, steps, *, dtype=None, device=None, requires_grad=false))]
pub fn linspace(
    py: Python<'_>,
    start: f64,
    end: f64,
    steps: usize,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let made = Tensor::linspace_with(start, end, steps, options(dtype, device)?).or_raise()?;
    data::finish(made, None, None, requires_grad)
}

/// A matrix with ones on the diagonal and zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, *, dtype=None, device=None, requires_grad=false))]
pub fn eye(
    py: Python<'_>,
    n: usize,
    m: Option<usize>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let made = Tensor::eye_with(n, m.unwrap_or(n), options(dtype, device)?).or_raise()?;
    data::finish(made, None, None, requires_grad)
}

/// Uniformly distributed integers from `low` to `high`, which is excluded: `randint(10, (2, 3))`, `randint(5, 10, (2, 3))`.
#[pyfunction]
#[pyo3(signature = (low, high, size=None, *, dtype=None, device=None))]
pub fn randint(
    py: Python<'_>,
    low: i64,
    high: &Bound<'_, PyAny>,
    size: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    runtime::start(py)?;
    let (low, high, size) = match size {
        Some(size) => (low, high.extract()?, size),
        None => (0, low, high),
    };
    let shape = shape("randint", &PyTuple::new(py, [size])?)?;
    let mut options = options(dtype, device)?;
    options.dtype = options.dtype.or(Some(DType::I64));
    Tensor::randint_with(low, high, &shape[..], options).or_raise().map(PyTensor)
}

/// A random permutation of the integers from 0 to `n`, which is excluded.
#[pyfunction]
pub fn randperm(py: Python<'_>, n: usize) -> PyResult<PyTensor> {
    runtime::start(py)?;
    Tensor::randperm(n).or_raise().map(PyTensor)
}

/// Sets the seed of random numbers.
#[pyfunction]
pub fn manual_seed(seed: u64) {
    keyway::manual_seed(seed);
}

/// Powers of `base` whose exponents are evenly spaced from `start` to `end`.
#[pyfunction]
#[pyo3(signature = (start, end, steps, base=10.0, *, dtype=None, device=None, requires_grad=false))]
#[allow(clippy::too_many_arguments)]
pub fn logspace(
    py: Python<'_>,
    start: f64,
    end: f64,
    steps: usize,
    base: f64,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    crate::runtime::start(py)?;
    let dtype = dtype.map(crate::dtype::convert).transpose()?;
    let made = match dtype {
        Some(dtype) => Tensor::logspace_with(start, end, steps, base, dtype),
        None => Tensor::logspace_with(start, end, steps, base, ()),
    };
    crate::data::finish(made.or_raise()?, None, device, requires_grad)
}

/// Normally distributed numbers: `mean` and `std` are numbers with a `size`, or tensors.
#[pyfunction]
#[pyo3(signature = (mean, std=None, size=None))]
pub fn normal(
    py: Python<'_>,
    mean: &Bound<'_, PyAny>,
    std: Option<&Bound<'_, PyAny>>,
    size: Option<Vec<usize>>,
) -> PyResult<PyTensor> {
    crate::runtime::start(py)?;
    let value = |object: Option<&Bound<'_, PyAny>>| {
        object.map(|object| crate::arg::operand(object, Parts::Default)).transpose().map(Option::flatten)
    };
    let (mean, std) = (value(Some(mean))?, value(std)?);
    let of_tensor = [&mean, &std].into_iter().find_map(|value| match value {
        Some(crate::arg::Value::Tensor(tensor)) => Some(tensor.shape().to_vec()),
        _ => None,
    });
    let Some(size) = size.or(of_tensor) else {
        return Err(pyo3::exceptions::PyTypeError::new_err(
            "normal: expected a `size` where mean and std are numbers",
        ));
    };
    let drawn = Tensor::randn(size).or_raise()?;
    let scaled = match &std {
        Some(std) => drawn.mul(std.arg(&[])).or_raise()?,
        None => drawn,
    };
    match &mean {
        Some(mean) => scaled.add(mean.arg(&[])).or_raise().map(PyTensor),
        None => Ok(PyTensor(scaled)),
    }
}

/// The coordinates of a triangle of a matrix, `[2, elements]`.
macro_rules! triangles {
    ($($(#[$doc:meta])* $name:ident $with:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (row, col, offset=0))]
        pub fn $name(py: Python<'_>, row: usize, col: usize, offset: i64) -> PyResult<PyTensor> {
            crate::runtime::start(py)?;
            Tensor::$with(row, col, offset, ()).or_raise().map(PyTensor)
        }
    )*};
}

triangles! {
    /// The coordinates of the lower triangle, `[2, elements]`.
    tril_indices tril_indices_with;
    /// The coordinates of the upper triangle, `[2, elements]`.
    triu_indices triu_indices_with;
}

/// A matrix with matrices along its diagonal.
#[pyfunction]
#[pyo3(signature = (*tensors))]
pub fn block_diag(tensors: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
    Tensor::block_diag(&crate::autograd::tensors(tensors)?).or_raise().map(PyTensor)
}

/// Tensors one after another along the third dimension.
#[pyfunction]
pub fn dstack(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    Tensor::dstack(&crate::autograd::tensors(tensors)?).or_raise().map(PyTensor)
}

//! The class `Tensor`.

use crate::dtype::{self, PyDType};
use crate::error::OrRaise;
use crate::handle::{Operand, PyTensor};
use crate::node::PyNode;
use crate::{arrow, autograd, buffer, data, dlpack, exchange, function, hooks, index, ops};
use keyway::ops::pointwise;
use keyway::{DType, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The value of a tensor of one element as a Python number.
fn number(py: Python<'_>, tensor: &Tensor) -> PyResult<Py<PyAny>> {
    let dtype = tensor.dtype();
    if dtype == DType::BOOL {
        let truth: bool = tensor.item().or_raise()?;
        return Ok(truth.into_pyobject(py)?.to_owned().into_any().unbind());
    }
    if dtype.is_complex() {
        let value: keyway::Complex<f64> = tensor.to_dtype(DType::C128).or_raise()?.item().or_raise()?;
        return Ok(pyo3::types::PyComplex::from_doubles(py, value.re, value.im).into_any().unbind());
    }
    if dtype == DType::U64 {
        return Ok(tensor.item::<u64>().or_raise()?.into_pyobject(py)?.into_any().unbind());
    }
    if dtype.is_integer() {
        let value: i64 = tensor.to_dtype(DType::I64).or_raise()?.item().or_raise()?;
        return Ok(value.into_pyobject(py)?.into_any().unbind());
    }
    let value: f64 = tensor.to_dtype(DType::F64).or_raise()?.item().or_raise()?;
    Ok(value.into_pyobject(py)?.into_any().unbind())
}

/// The elements of a tensor as Python numbers in row-major order.
fn numbers<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let dtype = tensor.dtype();
    fn objects<'py, T: IntoPyObject<'py>>(
        py: Python<'py>,
        values: Vec<T>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let each = values.into_iter().map(|value| value.into_bound_py_any(py));
        each.collect()
    }
    if dtype == DType::BOOL {
        objects(py, tensor.to_vec::<bool>().or_raise()?)
    } else if dtype == DType::U64 {
        objects(py, tensor.to_vec::<u64>().or_raise()?)
    } else if dtype.is_integer() {
        objects(py, tensor.to_dtype(DType::I64).or_raise()?.to_vec::<i64>().or_raise()?)
    } else if dtype.is_complex() {
        let values = tensor.to_dtype(DType::C128).or_raise()?.to_vec::<keyway::Complex<f64>>().or_raise()?;
        let each =
            values.into_iter().map(|z| pyo3::types::PyComplex::from_doubles(py, z.re, z.im).into_any());
        Ok(each.collect())
    } else {
        objects(py, tensor.to_dtype(DType::F64).or_raise()?.to_vec::<f64>().or_raise()?)
    }
}

/// Nested lists of these shape, from elements in row-major order.
fn nested<'py>(
    py: Python<'py>,
    shape: &[usize],
    elements: &mut std::vec::IntoIter<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((&count, rest)) = shape.split_first() else {
        return elements
            .next()
            .ok_or_else(|| PyValueError::new_err("the tensor has fewer elements than its shape"));
    };
    let list = PyList::empty(py);
    for _ in 0..count {
        list.append(nested(py, rest, elements)?)?;
    }
    Ok(list.into_any())
}

#[pymethods]
impl PyTensor {
    /// The sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// The number of dimensions.
    fn dim(&self) -> usize {
        self.0.rank()
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.0.dtype())
    }

    /// The device, such as `cpu` or `cuda:0`.
    #[getter]
    fn device(&self) -> String {
        self.0.device().to_string()
    }

    /// The layout: `strided`, or a composite one such as `keyway/coo`.
    #[getter]
    fn layout(&self) -> String {
        self.0.layout().to_string()
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.0.elem_count()
    }

    /// Bytes of one element.
    fn element_size(&self) -> usize {
        self.0.dtype().size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.elem_count() * self.0.dtype().size()
    }

    /// Steps between the elements of each dimension, in elements.
    #[pyo3(signature = (dim=None))]
    fn stride<'py>(&self, py: Python<'py>, dim: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        of_dimension(py, self.0.strides(), dim)
    }

    /// The shape, or the size of one dimension. The package's property `size` calls it.
    #[pyo3(signature = (dim=None))]
    fn _size<'py>(&self, py: Python<'py>, dim: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
        of_dimension(py, self.0.shape(), dim)
    }

    /// The distance of the first element from the start of the storage, in elements.
    fn storage_offset(&self) -> usize {
        self.0.storage_offset()
    }

    /// The address of the first element.
    fn data_ptr(&self) -> usize {
        self.0.data_ptr().addr()
    }

    /// Whether the elements are in row-major order without gaps.
    fn is_contiguous(&self) -> bool {
        self.0.is_contiguous()
    }

    /// The tensor, or a copy in row-major order.
    fn contiguous(&self) -> PyResult<PyTensor> {
        self.0.contiguous().or_raise().map(PyTensor)
    }

    /// Whether in-place changes are errors, as over memory that its owner exports read-only.
    #[getter]
    fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }

    /// The transpose of a tensor of at most two dimensions.
    #[getter(T)]
    fn transposed(&self) -> PyResult<PyTensor> {
        self.0.t().or_raise().map(PyTensor)
    }

    /// The tensor with its last two dimensions exchanged.
    #[getter(mT)]
    fn matrix_transposed(&self) -> PyResult<PyTensor> {
        self.0.transpose(-2, -1).or_raise().map(PyTensor)
    }

    /// The value of a tensor of one element.
    fn item(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        number(py, &self.0)
    }

    /// The elements as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dense = self.0.detach();
        nested(py, dense.shape(), &mut numbers(py, &dense)?.into_iter())
    }

    /// A tensor with another dtype or device: `x.to("cuda")`, `x.to(keyway.float64)`, `x.to(device=..., dtype=...)`.
    /// `copy` copies in any case; the host waits for copies whether they may be `non_blocking` or not.
    #[pyo3(signature = (*args, dtype=None, device=None, non_blocking=false, copy=false))]
    fn to(
        &self,
        args: &Bound<'_, PyTuple>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        non_blocking: bool,
        copy: bool,
    ) -> PyResult<PyTensor> {
        let _ = non_blocking;
        let (mut to_dtype, mut to_device) = (dtype.map(dtype::convert).transpose()?, device.cloned());
        for object in args {
            if let Ok(other) = object.cast::<PyTensor>() {
                let other = &other.get().0;
                to_dtype = Some(other.dtype());
                to_device = Some(other.device().to_string().into_pyobject(object.py())?.into_any());
            } else if let Ok(dtype) = dtype::convert(&object) {
                to_dtype = Some(dtype);
            } else {
                to_device = Some(object);
            }
        }
        let made = data::finish(self.0.clone(), to_dtype, to_device.as_ref(), false)?;
        if copy && made.0.ptr_eq(&self.0) { self.0.copy().or_raise().map(PyTensor) } else { Ok(made) }
    }

    /// Whether gradients of this tensor are computed.
    #[getter(requires_grad)]
    fn get_requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    #[setter(requires_grad)]
    fn set_requires_grad(&self, on: bool) -> PyResult<()> {
        self.0.requires_grad_(on).or_raise().map(drop)
    }

    /// Sets whether gradients of this tensor are computed, and returns it.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(slf: Bound<'py, Self>, requires_grad: bool) -> PyResult<Bound<'py, Self>> {
        slf.get().0.requires_grad_(requires_grad).or_raise()?;
        Ok(slf)
    }

    /// The gradient of the last backward passes, summed, or `None`.
    #[getter(grad)]
    fn get_grad(&self) -> Option<PyTensor> {
        self.0.grad().map(PyTensor)
    }

    #[setter(grad)]
    fn set_grad(&self, grad: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        match grad {
            Some(grad) => self.0.set_grad(grad.get().0.clone()).or_raise(),
            None => {
                self.0.zero_grad();
                Ok(())
            }
        }
    }

    /// Whether the tensor is no result of a recorded call.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    /// The recorded call whose result this is, or `None`.
    #[getter]
    fn grad_fn(&self) -> Option<PyNode> {
        self.0.grad_fn().map(PyNode)
    }

    /// Keeps the gradient of a tensor that is no leaf.
    fn retain_grad(&self) -> PyResult<()> {
        self.0.retain_grad().or_raise()
    }

    /// The tensor without its history; the memory is shared.
    fn detach(&self) -> PyTensor {
        PyTensor(self.0.detach())
    }

    /// Adds the gradients of this tensor to `grad` of the leaves that it depends on, or of `inputs` alone.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        slf: &Bound<'_, Self>,
        gradient: Option<&Bound<'_, PyTensor>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, own) = (slf.py(), &slf.get().0);
        if let Some(inputs) = inputs {
            let of_several = py.import("keyway.autograd")?.getattr("backward")?;
            return of_several.call1((slf, gradient, retain_graph, create_graph, inputs)).map(drop);
        }
        let gradients = gradient.map(|gradient| vec![gradient.get().0.clone()]);
        autograd::backward(py, std::slice::from_ref(own), gradients, retain_graph, create_graph)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        ops::unary(py, &pointwise::neg::DEF, &self.0)
    }

    fn __pos__<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        slf
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        ops::unary(py, &pointwise::abs::DEF, &self.0)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        ops::unary(py, &pointwise::bitwise_not::DEF, &self.0)
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: &Bound<'py, PyAny>,
    ) -> Operand<'py> {
        if !modulo.is_none() {
            return Err(PyTypeError::new_err("pow: a modulus is not supported; use `%` on the result"));
        }
        ops::operator(slf.py(), &pointwise::pow::DEF, None, slf, other)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        _modulo: &Bound<'py, PyAny>,
    ) -> Operand<'py> {
        ops::operator(slf.py(), &pointwise::pow::DEF, None, other, slf)
    }

    fn __ipow__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, _modulo: &Bound<'_, PyAny>) -> PyResult<()> {
        ops::in_place(slf.py(), &pointwise::pow::DEF, None, slf, other)
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, order: CompareOp) -> Operand<'py> {
        let op = match order {
            CompareOp::Lt => &pointwise::lt::DEF,
            CompareOp::Le => &pointwise::le::DEF,
            CompareOp::Eq => &pointwise::eq::DEF,
            CompareOp::Ne => &pointwise::ne::DEF,
            CompareOp::Gt => &pointwise::gt::DEF,
            CompareOp::Ge => &pointwise::ge::DEF,
        };
        ops::operator(slf.py(), op, None, slf, other)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // Objects are told apart by identity: `==` compares elements.
        (slf.as_ptr().addr() >> 4) as isize
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        index::get(&self.0, key).map(PyTensor)
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        index::set(&self.0, key, value)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.0
            .shape()
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("a tensor without dimensions has no length"))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.rank() == 0 {
            return Err(PyTypeError::new_err("a tensor without dimensions cannot be iterated over"));
        }
        let rows = self.0.unbind(0).or_raise()?.into_iter().map(|row| Bound::new(py, PyTensor(row)));
        Ok(PyTuple::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.try_iter()?.into_any())
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.0.elem_count() != 1 {
            let shape = self.0.shape();
            return Err(PyValueError::new_err(format!(
                "the truth of a tensor of shape {shape:?} is ambiguous; use `any()` or `all()`"
            )));
        }
        number(py, &self.0)?.bind(py).is_truthy()
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        number(py, &self.0)?.extract(py)
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let value = number(py, &self.0)?;
        Ok(py.import("builtins")?.getattr("int")?.call1((value,))?.unbind())
    }

    fn __complex__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let value = number(py, &self.0)?;
        Ok(py.import("builtins")?.getattr("complex")?.call1((value,))?.unbind())
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if !(self.0.dtype().is_integer() || self.0.dtype() == DType::BOOL) || self.0.rank() != 0 {
            return Err(PyTypeError::new_err(
                "only integer tensors without dimensions can be used as an index",
            ));
        }
        self.__int__(py)
    }

    fn __repr__(&self) -> String {
        // The names of this language.
        let digits = PRECISION.load(Ordering::Relaxed);
        let text = format!("{:.digits$}", *self.0).replace("requires_grad=true", "requires_grad=True");
        let dtype = self.0.dtype();
        text.replace(&format!("dtype={}", dtype.name()), &format!("dtype={}", dtype::name(dtype)))
    }

    /// The attributes that Python set, such as the mark of a parameter, go along.
    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>, Bound<'py, PyAny>)> {
        let (py, this) = (slf.py(), slf.get());
        let dense = this.0.detach().contiguous().or_raise()?;
        let bytes = dense.to_device(keyway::Device::CPU).or_raise()?.storage().or_raise()?.to_bytes();
        let bytes = bytes.map_err(keyway::Error::from).or_raise()?;
        let (start, size) = (dense.storage_offset() * dense.dtype().size(), this.nbytes());
        let rest = (
            PyBytes::new(py, bytes.get(start..start + size).unwrap_or_default()),
            this.shape(py)?,
            this.dtype(),
            this.device(),
            this.0.requires_grad(),
        );
        Ok((
            py.import("keyway._keyway")?.getattr("_rebuild")?,
            rest.into_pyobject(py)?,
            attributes(slf)?.into_any(),
        ))
    }

    #[pyo3(signature = (_memo=None))]
    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        _memo: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let this = &slf.get().0;
        let copy = this.detach().copy().or_raise()?;
        if this.requires_grad() {
            copy.requires_grad_(true).or_raise()?;
            if let Some(gradient) = this.grad() {
                copy.set_grad(gradient.copy().or_raise()?).or_raise()?;
            }
        }
        let copy = Bound::new(slf.py(), PyTensor(copy))?;
        copy.getattr("__dict__")?.call_method1("update", (attributes(slf)?,))?;
        Ok(copy)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.0.is_initialised() || function::is_backward_running() {
            return Ok(());
        }
        function::traverse(&self.0, &visit)
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: the interpreter passes a buffer to fill, or null, which is checked.
        unsafe { buffer::export(slf.get().0.clone(), slf.into_any(), view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the interpreter releases each buffer that `__getbuffer__` filled once.
        unsafe { buffer::release(view) }
    }

    /// A capsule of DLPack over the tensor's memory.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        // The host has no streams.
        let _ = stream;
        if dl_device.is_some_and(|device| device != (1, 0)) {
            return Err(pyo3::exceptions::PyBufferError::new_err(
                "the tensor can be exported as memory of the host only",
            ));
        }
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if copy == Some(true) {
            return dlpack::export(py, &self.0.copy().or_raise()?, versioned, true);
        }
        dlpack::export(py, &self.0, versioned, false)
    }

    /// The capsules of Arrow's C data interface over the tensor's memory.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        // A producer may ignore the request.
        let _ = requested_schema;
        arrow::export(py, &self.0)
    }

    /// DLPack's C functions.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        exchange::capsule(py)
    }

    /// DLPack's type and number of the device.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        if self.0.device() != keyway::Device::CPU {
            let device = self.0.device();
            return Err(pyo3::exceptions::PyBufferError::new_err(format!(
                "expected a tensor in host memory, got one on {device}; call `cpu()` first"
            )));
        }
        Ok((1, 0))
    }
}

/// The attributes that Python set, without those of this module.
fn attributes<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyDict>> {
    let copy = tensor.getattr("__dict__")?.cast_into::<PyDict>()?.copy()?;
    if copy.contains(hooks::KEY)? {
        copy.del_item(hooks::KEY)?;
    }
    Ok(copy)
}

/// A tuple of values by dimension, or the value of one dimension, negative from the end.
fn of_dimension<'py>(py: Python<'py>, values: &[usize], dim: Option<isize>) -> PyResult<Bound<'py, PyAny>> {
    let Some(dim) = dim else { return Ok(PyTuple::new(py, values)?.into_any()) };
    let at = if dim < 0 { dim + values.len() as isize } else { dim };
    let value = usize::try_from(at).ok().and_then(|at| values.get(at)).ok_or_else(|| {
        let rank = values.len();
        pyo3::exceptions::PyIndexError::new_err(format!("expected a dimension of {rank}, got {dim}"))
    })?;
    Ok(value.into_pyobject(py)?.into_any())
}

/// Digits behind the point of printed elements.
static PRECISION: AtomicUsize = AtomicUsize::new(4);

/// Sets the number of digits behind the point of printed elements, 4 at the start.
#[pyfunction]
#[pyo3(signature = (precision=None))]
pub fn set_printoptions(precision: Option<usize>) -> PyResult<()> {
    let digits = precision.unwrap_or(4);
    if digits > 17 {
        return Err(PyValueError::new_err(format!(
            "set_printoptions: expected at most 17 digits, got {digits}"
        )));
    }
    PRECISION.store(digits, Ordering::Relaxed);
    Ok(())
}

/// The tensor of pickled bytes.
#[pyfunction]
pub fn _rebuild(
    py: Python<'_>,
    bytes: &[u8],
    shape: Vec<usize>,
    dtype: &Bound<'_, PyAny>,
    device: &Bound<'_, PyAny>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    crate::runtime::start(py)?;
    let made = buffer::from_bytes(bytes, &shape, dtype::convert(dtype)?)?;
    data::finish(made, None, Some(device), requires_grad)
}

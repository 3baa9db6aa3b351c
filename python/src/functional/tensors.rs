//! Functions of tensors that are combinations of ops: orders, quantiles, histograms, changes of shape. Each is a method of `Tensor`
//! and a function of the package.

use super::{called, indexed};
use crate::arg::{self, Parts};
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::{ops, runtime};
use keyway::tensor::Interpolation;
use keyway::{Arg, DType, Result, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

type Input<'a, 'py> = &'a Bound<'py, PyTensor>;
type Object<'a, 'py> = &'a Bound<'py, PyAny>;

/// Functions of one tensor.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        pub fn $name(input: Input) -> PyResult<PyTensor> {
            called(input, Tensor::$name)
        }
    )*};
}

unary! {
    /// 2 to the power of each element.
    exp2;
    /// The fraction of each element, with its sign.
    frac;
    /// `sin(pi x) / (pi x)`, and 1 at 0.
    sinc;
    /// Whether the sign bit of each element is set, also of -0.
    signbit;
    /// Whether each element is plus infinity.
    isposinf;
    /// Whether each element is minus infinity.
    isneginf;
    /// Degrees as radians.
    deg2rad;
    /// Radians as degrees.
    rad2deg;
    /// The tensor with its second dimension reversed.
    fliplr;
    /// The tensor with its first dimension reversed.
    flipud;
    /// The covariances of the rows.
    cov;
    /// The correlation coefficients of the rows.
    corrcoef;
    /// The logarithm of each determinant.
    logdet;
    /// A view of at least one dimension.
    atleast_1d;
    /// A view of at least two dimensions.
    atleast_2d;
    /// A view of at least three dimensions.
    atleast_3d;
}

/// Functions of two tensors.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        pub fn $name(input: Input, other: Input) -> PyResult<PyTensor> {
            let other = &other.get().0;
            called(input, |x| x.$name(other))
        }
    )*};
}

binary! {
    /// The larger of two elements; a number if the other is NaN.
    fmax;
    /// The smaller of two elements; a number if the other is NaN.
    fmin;
    /// 0 below 0, 1 above, and the other tensor's element at 0.
    heaviside;
    /// The dot product, with the first tensor conjugated.
    vdot;
    /// The Kronecker product.
    kron;
}

/// Two tensors of a call as a tuple.
fn pair<'py>(
    input: Input<'_, 'py>,
    run: impl FnOnce(&Tensor) -> Result<(Tensor, Tensor)> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let py = input.py();
    runtime::start(py)?;
    let input = &input.get().0;
    let (first, second) = ops::released(py, input.elem_count(), || run(input))?;
    Ok(PyTuple::new(py, [Bound::new(py, PyTensor(first))?, Bound::new(py, PyTensor(second))?])?.into_any())
}

fn one<'py>(
    input: Input<'_, 'py>,
    run: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(input.py(), called(input, run)?)?.into_any())
}

/// Values and indices along a dimension, or a value of all elements.
macro_rules! medians {
    ($($(#[$doc:meta])* $name:ident $keepdim:ident $all:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (input, dim=None, keepdim=false))]
        pub fn $name<'py>(input: Input<'_, 'py>, dim: Option<i64>, keepdim: bool) -> PyResult<Bound<'py, PyAny>> {
            match dim {
                None => one(input, Tensor::$all),
                Some(dim) if keepdim => pair(input, |x| x.$keepdim(dim)),
                Some(dim) => pair(input, |x| x.$name(dim)),
            }
        }
    )*};
}

medians! {
    /// The median, the lower of two in the middle; with its index along a dimension.
    median median_keepdim median_all;
    /// `median` without NaNs.
    nanmedian nanmedian_keepdim nanmedian_all;
}

/// The most frequent value of each row, the smallest of several, and its last index.
#[pyfunction]
#[pyo3(signature = (input, dim=-1, keepdim=false))]
pub fn mode<'py>(input: Input<'_, 'py>, dim: i64, keepdim: bool) -> PyResult<Bound<'py, PyAny>> {
    pair(input, |x| if keepdim { x.mode_keepdim(dim) } else { x.mode(dim) })
}

/// The `k`th smallest element of each row, from 1, and its index.
#[pyfunction]
#[pyo3(signature = (input, k, dim=-1, keepdim=false))]
pub fn kthvalue<'py>(
    input: Input<'_, 'py>,
    k: usize,
    dim: i64,
    keepdim: bool,
) -> PyResult<Bound<'py, PyAny>> {
    pair(input, |x| {
        let (values, indices) = x.kthvalue(k, dim)?;
        if keepdim { Ok((values.unsqueeze(dim)?, indices.unsqueeze(dim)?)) } else { Ok((values, indices)) }
    })
}

/// The smallest and the largest element, of all or along a dimension.
#[pyfunction]
#[pyo3(signature = (input, dim=None, keepdim=false))]
pub fn aminmax<'py>(input: Input<'_, 'py>, dim: Option<i64>, keepdim: bool) -> PyResult<Bound<'py, PyAny>> {
    pair(input, |x| match dim {
        None if keepdim => x.aminmax_keepdim(..),
        None => x.aminmax(..),
        Some(dim) if keepdim => x.aminmax_keepdim(dim),
        Some(dim) => x.aminmax(dim),
    })
}

fn interpolation(name: &str) -> PyResult<Interpolation> {
    Ok(match name {
        "linear" => Interpolation::Linear,
        "lower" => Interpolation::Lower,
        "higher" => Interpolation::Higher,
        "nearest" => Interpolation::Nearest,
        "midpoint" => Interpolation::Midpoint,
        _ => {
            return Err(PyValueError::new_err(format!(
                "expected `interpolation` to be linear, lower, higher, nearest or midpoint, got {name}"
            )));
        }
    })
}

/// Quantiles.
macro_rules! quantiles {
    ($($(#[$doc:meta])* $name:ident $with:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (input, q, dim=None, keepdim=false, *, interpolation="linear"))]
        pub fn $name(
            input: Input,
            q: Object,
            dim: Option<i64>,
            keepdim: bool,
            interpolation: &str,
        ) -> PyResult<PyTensor> {
            let interpolation = self::interpolation(interpolation)?;
            let q = number_or_tensor(q)?;
            called(input, |x| match &q {
                Ok(tensor) => x.$with(tensor, dim, keepdim, interpolation),
                Err(number) => x.$with(*number, dim, keepdim, interpolation),
            })
        }
    )*};
}

quantiles! {
    /// Quantiles of all elements, or of each row; `q` is a number or a tensor from 0 to 1.
    quantile quantile_with;
    /// `quantile` without NaNs.
    nanquantile nanquantile_with;
}

/// A tensor, or a number as an error.
fn number_or_tensor(object: Object) -> PyResult<std::result::Result<Tensor, f64>> {
    match object.extract::<f64>() {
        Ok(number) if object.cast::<PyTensor>().is_err() => Ok(Err(number)),
        _ => match object.cast::<PyTensor>() {
            Ok(tensor) => Ok(Ok(tensor.get().0.clone())),
            Err(_) => crate::data::from_nested(object, None).map(Ok),
        },
    }
}

/// The logarithm of the odds; `eps` clamps the input before.
#[pyfunction]
#[pyo3(signature = (input, eps=None))]
pub fn logit(input: Input, eps: Option<f64>) -> PyResult<PyTensor> {
    called(input, |x| eps.map_or_else(|| x.logit(), |eps| x.logit_with(eps)))
}

/// The number of elements in each of `bins` equal parts from `min` to `max`, of the data's own range if both are 0.
#[pyfunction]
#[pyo3(signature = (input, bins=100, min=0.0, max=0.0))]
pub fn histc(input: Input, bins: usize, min: f64, max: f64) -> PyResult<PyTensor> {
    called(input, |x| if min == 0.0 && max == 0.0 { x.histc(bins) } else { x.histc_with(bins, min, max) })
}

/// The number, or the sum of weights, of each integer.
#[pyfunction]
#[pyo3(signature = (input, weights=None, minlength=0))]
pub fn bincount(input: Input, weights: Option<Input>, minlength: usize) -> PyResult<PyTensor> {
    let weights = weights.map(|weights| &*weights.get().0);
    called(input, |x| x.bincount_with(weights, minlength))
}

/// The distances of rows of order `p`.
#[pyfunction]
#[pyo3(signature = (x1, x2, p=2.0))]
pub fn cdist(x1: Input, x2: Input, p: f64) -> PyResult<PyTensor> {
    let other = &x2.get().0;
    called(x1, |x| x.cdist_with(other, p))
}

/// The norm of order `p` of the differences of vectors.
#[pyfunction]
#[pyo3(signature = (x1, x2, p=2.0, eps=1e-6, keepdim=false))]
pub fn pairwise_distance(x1: Input, x2: Input, p: f64, eps: f64, keepdim: bool) -> PyResult<PyTensor> {
    let other = &x2.get().0;
    called(x1, |x| x.pairwise_distance_with(other, p, eps, keepdim))
}

/// The distances of all pairs of rows, each pair once.
#[pyfunction]
#[pyo3(signature = (input, p=2.0))]
pub fn pdist(input: Input, p: f64) -> PyResult<PyTensor> {
    called(input, |x| x.pdist_with(p))
}

/// The tensor rotated by `k` right angles in the plane of two dimensions.
#[pyfunction]
#[pyo3(signature = (input, k=1, dims=(0, 1)))]
pub fn rot90(input: Input, k: i64, dims: (i64, i64)) -> PyResult<PyTensor> {
    called(input, |x| x.rot90_with(k, dims))
}

/// Matrices with the last dimension as their diagonal.
#[pyfunction]
#[pyo3(signature = (input, offset=0))]
pub fn diag_embed(input: Input, offset: i64) -> PyResult<PyTensor> {
    called(input, |x| x.diag_embed_with(offset))
}

/// The tensor with the norms along a dimension held to `maxnorm`.
#[pyfunction]
pub fn renorm(input: Input, p: f64, dim: i64, maxnorm: f64) -> PyResult<PyTensor> {
    called(input, |x| x.renorm(p, dim, maxnorm))
}

/// The tensor with the rows of indices set to a value.
#[pyfunction]
pub fn index_fill(input: Input, dim: i64, index: Input, value: Object) -> PyResult<PyTensor> {
    let (index, value) = (&index.get().0, filler(value, input.get().0.dtype())?);
    called(input, |x| x.index_fill(dim, index, value.arg(&[])))
}

/// `index_fill` in place.
#[pyfunction]
pub fn index_fill_<'py>(
    input: Bound<'py, PyTensor>,
    dim: i64,
    index: Input,
    value: Object,
) -> PyResult<Bound<'py, PyTensor>> {
    input
        .get()
        .0
        .index_fill_(dim, &index.get().0, filler(value, input.get().0.dtype())?.arg(&[]))
        .or_raise()?;
    Ok(input)
}

/// A number, or a tensor of one element, beside elements of this dtype.
fn filler(value: Object, dtype: DType) -> PyResult<arg::Value> {
    arg::operand(value, Parts::beside(dtype))?
        .ok_or_else(|| PyTypeError::new_err("index_fill: expected `value` to be a number"))
}

/// The elements to the power of a number or tensor, in float64.
#[pyfunction]
pub fn float_power(input: Input, exponent: Object) -> PyResult<PyTensor> {
    let exponent = filler(exponent, input.get().0.dtype())?;
    called(input, |x| x.float_power(Into::<Arg<'_>>::into(exponent.arg(&[]))))
}

/// Views of parts: `sections` of nearly equal sizes, or those between indices.
#[pyfunction]
#[pyo3(signature = (input, indices_or_sections, dim=0))]
pub fn tensor_split<'py>(
    input: Input<'_, 'py>,
    indices_or_sections: Object<'_, 'py>,
    dim: i64,
) -> PyResult<Bound<'py, PyTuple>> {
    let x = &input.get().0;
    let parts = match indices_or_sections.extract::<usize>() {
        Ok(sections) => x.tensor_split(sections, dim),
        Err(_) => x.tensor_split_at(&indices_or_sections.extract::<Vec<i64>>()?, dim),
    };
    let each = parts.or_raise()?.into_iter().map(|part| Bound::new(input.py(), PyTensor(part)));
    PyTuple::new(input.py(), each.collect::<PyResult<Vec<_>>>()?)
}

/// Detaches the tensor itself from the graph, so that it is a leaf.
#[pyfunction]
pub fn detach_(input: Bound<'_, PyTensor>) -> PyResult<Bound<'_, PyTensor>> {
    input.get().0.detach_().or_raise()?;
    Ok(input)
}

/// Whether the tensor was made in inference mode.
#[pyfunction]
pub fn is_inference(input: Input) -> bool {
    input.get().0.as_ref().is_inference()
}

/// The functions of this file.
#[pymodule]
pub fn tensors(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($function:ident),* $(,)?) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)* };
    }
    add!(
        aminmax,
        atleast_1d,
        atleast_2d,
        atleast_3d,
        bincount,
        cdist,
        corrcoef,
        cov,
        deg2rad,
        detach_,
        diag_embed,
        exp2,
        fliplr,
        flipud,
        float_power,
        fmax,
        fmin,
        frac,
        heaviside,
        histc,
        index_fill,
        index_fill_,
        is_inference,
        isneginf,
        isposinf,
        kron,
        kthvalue,
        logdet,
        logit,
        median,
        mode,
        nanmedian,
        nanquantile,
        pairwise_distance,
        pdist,
        quantile,
        rad2deg,
        renorm,
        rot90,
        signbit,
        sinc,
        tensor_split,
        vdot,
    );
    macro_rules! add_indexed {
        ($($function:ident),* $(,)?) => { $(module.add_function(wrap_pyfunction!(indexed::$function, module)?)?;)* };
    }
    add_indexed!(
        bucketize,
        cumulative_trapezoid,
        diagonal_scatter,
        histogram,
        polar,
        put,
        put_,
        select_scatter,
        slice_scatter,
        trapezoid,
        unique_consecutive,
    );
    Ok(())
}

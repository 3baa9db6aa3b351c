//! Functions of tensors by index: parts that are replaced, intervals, runs of equal elements, areas. Each is a method of `Tensor` and a
//! function of the package.

use super::called;
use crate::error::OrRaise;
use crate::handle::PyTensor;
use crate::{ops, runtime};
use keyway::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

type Input<'a, 'py> = &'a Bound<'py, PyTensor>;

/// Complex numbers of absolute values and angles.
#[pyfunction]
pub fn polar(abs: Input, angle: Input) -> PyResult<PyTensor> {
    let angle = &angle.get().0;
    called(abs, |abs| Tensor::polar(abs, angle))
}

/// The index of the interval between sorted boundaries that contains each element: `boundaries[i - 1] < x <= boundaries[i]`, with
/// `right` `boundaries[i - 1] <= x < boundaries[i]`.
#[pyfunction]
#[pyo3(signature = (input, boundaries, *, right=false))]
pub fn bucketize(input: Input, boundaries: Input, right: bool) -> PyResult<PyTensor> {
    let boundaries = &boundaries.get().0;
    called(input, |x| boundaries.searchsorted_with(x, right))
}

/// The first element of each run of equal neighbours, of all elements or of the slices along a dimension; on request with the run
/// of each element, and the lengths of the runs.
#[pyfunction]
#[pyo3(signature = (input, return_inverse=false, return_counts=false, dim=None))]
pub fn unique_consecutive<'py>(
    input: Input<'_, 'py>,
    return_inverse: bool,
    return_counts: bool,
    dim: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = input.py();
    runtime::start(py)?;
    let x = &input.get().0;
    let found = ops::released(py, x.elem_count(), || match dim {
        Some(dim) => x.unique_consecutive_dim(dim),
        None => x.unique_consecutive_all(),
    })?;
    let all = [(true, found.values), (return_inverse, found.inverse), (return_counts, found.counts)];
    let wanted = all.into_iter().filter(|(wanted, _)| *wanted).map(|(_, tensor)| PyTensor(tensor));
    let mut made = wanted.map(|tensor| Bound::new(py, tensor)).collect::<PyResult<Vec<_>>>()?;
    if made.len() == 1 { Ok(made.remove(0).into_any()) } else { Ok(PyTuple::new(py, made)?.into_any()) }
}

/// Areas by the trapezoidal rule along a dimension, of points at `x` or `dx` apart.
macro_rules! areas {
    ($($(#[$doc:meta])* $name:ident $with:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (y, x=None, *, dx=None, dim=-1))]
        pub fn $name(y: Input, x: Option<Input>, dx: Option<f64>, dim: i64) -> PyResult<PyTensor> {
            let x = x.map(|x| &*x.get().0);
            match (x, dx) {
                (Some(_), Some(_)) => {
                    Err(PyTypeError::new_err(concat!(stringify!($name), ": expected `x` or `dx`, got both")))
                }
                (Some(x), None) => called(y, |y| y.$with(x, dim)),
                (None, dx) => called(y, |y| y.$with(dx.unwrap_or(1.0), dim)),
            }
        }
    )*};
}

areas! {
    /// The area by the trapezoidal rule along a dimension; the points are at `x`, or `dx` apart.
    trapezoid trapezoid_with;
    /// The areas up to each point by the trapezoidal rule.
    cumulative_trapezoid cumulative_trapezoid_with;
}

/// The number of elements, or the sum of weights, in each bin, and the edges of the bins: `bins` equal ones over `range` or that of the
/// elements, or those between the edges of a tensor. `density` divides by the total and the width.
#[pyfunction]
#[pyo3(signature = (input, bins, *, range=None, weight=None, density=false))]
pub fn histogram<'py>(
    input: Input<'_, 'py>,
    bins: &Bound<'py, PyAny>,
    range: Option<(f64, f64)>,
    weight: Option<Input>,
    density: bool,
) -> PyResult<(PyTensor, PyTensor)> {
    let py = input.py();
    runtime::start(py)?;
    let (x, weight): (&Tensor, Option<&Tensor>) = (&input.get().0, weight.map(|weight| &*weight.get().0));
    if let Ok(edges) = bins.cast::<PyTensor>() {
        let edges: &Tensor = &edges.get().0;
        if range.is_some() {
            return Err(PyTypeError::new_err(
                "histogram: expected `range` beside a number of bins, got it beside edges",
            ));
        }
        let made = ops::released(py, x.elem_count(), || x.histogram_between(edges, weight, density))?;
        return Ok((PyTensor(made), PyTensor(edges.clone())));
    }
    let bins: usize = bins.extract()?;
    let (made, edges) = ops::released(py, x.elem_count(), || x.histogram_with(bins, range, weight, density))?;
    Ok((PyTensor(made), PyTensor(edges)))
}

/// The tensor with the slice at an index of a dimension replaced.
#[pyfunction]
pub fn select_scatter(input: Input, src: Input, dim: i64, index: i64) -> PyResult<PyTensor> {
    let src = &src.get().0;
    called(input, |x| x.select_scatter(src, dim, index))
}

/// The tensor with every `step`th slice of a dimension from `start` to `end` replaced.
#[pyfunction]
#[pyo3(signature = (input, src, dim=0, start=None, end=None, step=1))]
pub fn slice_scatter(
    input: Input,
    src: Input,
    dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> PyResult<PyTensor> {
    let src = &src.get().0;
    called(input, |x| x.slice_scatter(src, dim, start, end, step))
}

/// The tensor with a diagonal of two dimensions replaced.
#[pyfunction]
#[pyo3(signature = (input, src, offset=0, dim1=0, dim2=1))]
pub fn diagonal_scatter(input: Input, src: Input, offset: i64, dim1: i64, dim2: i64) -> PyResult<PyTensor> {
    let src = &src.get().0;
    called(input, |x| x.diagonal_scatter_with(src, offset, dim1, dim2))
}

/// The tensor with the elements at indices of the flattened tensor replaced, or increased.
#[pyfunction]
#[pyo3(signature = (input, index, source, accumulate=false))]
pub fn put(input: Input, index: Input, source: Input, accumulate: bool) -> PyResult<PyTensor> {
    let (index, source) = (&index.get().0, &source.get().0);
    called(input, |x| x.put(index, source, accumulate))
}

/// `put` in place.
#[pyfunction]
#[pyo3(signature = (input, index, source, accumulate=false))]
pub fn put_<'py>(
    input: Bound<'py, PyTensor>,
    index: Input,
    source: Input,
    accumulate: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    input.get().0.put_(&index.get().0, &source.get().0, accumulate).or_raise()?;
    Ok(input)
}

//! Convolutions, pooling and resampling in one to three dimensions. A size, stride or padding is an int, or a sequence of one for
//! each dimension.

use super::called;
use crate::handle::PyTensor;
use crate::{ops, runtime};
use keyway::nn::{
    AvgPoolOptions, ConvOptions, ConvTransposeOptions, InterpolateMode, InterpolateOptions, LpPoolOptions,
    MaxPoolOptions, MaxUnpoolOptions, OutputSize, Padding, PerDim, Resize, UnfoldOptions,
};
use keyway::{Result, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

type Input<'a, 'py> = &'a Bound<'py, PyTensor>;
type Object<'a, 'py> = &'a Bound<'py, PyAny>;

/// One value for each of N dimensions, of an int or a sequence.
fn each<const N: usize>(name: &str, object: Object) -> PyResult<PerDim<N>> {
    if let Ok(all) = object.extract::<usize>() {
        return Ok(PerDim([all; N]));
    }
    let wrong = || {
        PyTypeError::new_err(format!(
            "expected `{name}` to be an int of 0 or more, or {N} of them, got {object}"
        ))
    };
    let values: Vec<usize> = object.extract().map_err(|_| wrong())?;
    match <[usize; N]>::try_from(values) {
        Ok(values) => Ok(PerDim(values)),
        Err(values) if values.len() == 1 => Ok(PerDim([values[0]; N])),
        Err(_) => Err(wrong()),
    }
}

/// [`each`], or a default.
fn each_or<const N: usize>(name: &str, object: Option<Object>, other: PerDim<N>) -> PyResult<PerDim<N>> {
    object.filter(|object| !object.is_none()).map_or(Ok(other), |object| each(name, object))
}

fn padding<const N: usize>(object: Option<Object>) -> PyResult<Padding<N>> {
    let Some(object) = object else { return Ok(Padding::Each(PerDim([0; N]))) };
    match object.cast::<PyString>().map(|text| text.to_string_lossy().into_owned()) {
        Ok(text) if text == "same" => Ok(Padding::Same),
        Ok(text) if text == "valid" => Ok(Padding::Valid),
        Ok(text) => {
            Err(PyValueError::new_err(format!("expected `padding` to be same, valid or ints, got {text}")))
        }
        Err(_) => each("padding", object).map(Padding::Each),
    }
}

fn output<const N: usize>(object: Object) -> PyResult<OutputSize<N>> {
    if let Ok(all) = object.extract::<usize>() {
        return Ok(OutputSize::from(all));
    }
    let sizes: Vec<Option<usize>> = object.extract().unwrap_or_default();
    <[Option<usize>; N]>::try_from(sizes).map(OutputSize::from).map_err(|_| {
        PyTypeError::new_err(format!(
            "expected `output_size` to be an int, or {N} of them or None, got {object}"
        ))
    })
}

/// Values, and with `wanted` their indices.
fn with_indices<'py>(
    input: Input<'_, 'py>,
    wanted: bool,
    values: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
    both: impl FnOnce(&Tensor) -> Result<(Tensor, Tensor)> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let py = input.py();
    if !wanted {
        return Ok(Bound::new(py, called(input, values)?)?.into_any());
    }
    runtime::start(py)?;
    let input = &input.get().0;
    let (values, indices) = ops::released(py, input.elem_count(), || both(input))?;
    Ok(PyTuple::new(py, [Bound::new(py, PyTensor(values))?, Bound::new(py, PyTensor(indices))?])?.into_any())
}

/// The functions of each number of dimensions.
macro_rules! of_dimensions {
    ($($n:literal: $conv:ident $conv_with:ident $transpose:ident $transpose_with:ident $max:ident $max_both:ident $avg:ident $lp:ident $unpool:ident
        $adaptive_avg:ident $adaptive_max:ident $adaptive_both:ident;)*) => {$(
        /// Cross-correlation. Shapes: (batch, in, ...), (out, in / groups, ...), (out,). `padding` is also `same` or `valid`.
        #[pyfunction]
        #[pyo3(signature = (input, weight, bias=None, stride=None, padding=None, dilation=None, groups=1))]
        pub fn $conv(
            input: Input,
            weight: Input,
            bias: Option<Input>,
            stride: Option<Object>,
            padding: Option<Object>,
            dilation: Option<Object>,
            groups: usize,
        ) -> PyResult<PyTensor> {
            let (weight, bias) = (&weight.get().0, bias.map(|bias| &*bias.get().0));
            let options = ConvOptions::<$n> {
                stride: each_or("stride", stride, PerDim([1; $n]))?,
                padding: self::padding(padding)?,
                dilation: each_or("dilation", dilation, PerDim([1; $n]))?,
                groups,
            };
            called(input, |x| x.$conv_with(weight, bias, options))
        }

        /// The transpose of a convolution. Shapes: (batch, in, ...), (in, out / groups, ...), (out,).
        #[pyfunction]
        #[pyo3(signature = (input, weight, bias=None, stride=None, padding=None, output_padding=None, groups=1, dilation=None))]
        #[allow(clippy::too_many_arguments)]
        pub fn $transpose(
            input: Input,
            weight: Input,
            bias: Option<Input>,
            stride: Option<Object>,
            padding: Option<Object>,
            output_padding: Option<Object>,
            groups: usize,
            dilation: Option<Object>,
        ) -> PyResult<PyTensor> {
            let (weight, bias) = (&weight.get().0, bias.map(|bias| &*bias.get().0));
            let options = ConvTransposeOptions::<$n> {
                stride: each_or("stride", stride, PerDim([1; $n]))?,
                padding: each_or("padding", padding, PerDim([0; $n]))?,
                output_padding: each_or("output_padding", output_padding, PerDim([0; $n]))?,
                dilation: each_or("dilation", dilation, PerDim([1; $n]))?,
                groups,
            };
            called(input, |x| x.$transpose_with(weight, bias, options))
        }

        /// The largest element of each window; the stride is the window's size if none is given.
        #[pyfunction]
        #[pyo3(signature = (input, kernel_size, stride=None, padding=None, dilation=None, ceil_mode=false, return_indices=false))]
        pub fn $max<'py>(
            input: Input<'_, 'py>,
            kernel_size: Object<'_, 'py>,
            stride: Option<Object<'_, 'py>>,
            padding: Option<Object<'_, 'py>>,
            dilation: Option<Object<'_, 'py>>,
            ceil_mode: bool,
            return_indices: bool,
        ) -> PyResult<Bound<'py, PyAny>> {
            let kernel = each("kernel_size", kernel_size)?;
            let options = MaxPoolOptions::<$n> {
                kernel,
                stride: each_or("stride", stride, kernel)?,
                padding: each_or("padding", padding, PerDim([0; $n]))?,
                dilation: each_or("dilation", dilation, PerDim([1; $n]))?,
                ceil_mode,
            };
            with_indices(input, return_indices, |x| x.$max(options), |x| x.$max_both(options))
        }

        /// The mean of each window; the stride is the window's size if none is given.
        #[pyfunction]
        #[pyo3(signature = (input, kernel_size, stride=None, padding=None, ceil_mode=false, count_include_pad=true, divisor_override=None))]
        pub fn $avg(
            input: Input,
            kernel_size: Object,
            stride: Option<Object>,
            padding: Option<Object>,
            ceil_mode: bool,
            count_include_pad: bool,
            divisor_override: Option<usize>,
        ) -> PyResult<PyTensor> {
            let kernel = each("kernel_size", kernel_size)?;
            let options = AvgPoolOptions::<$n> {
                kernel,
                stride: each_or("stride", stride, kernel)?,
                padding: each_or("padding", padding, PerDim([0; $n]))?,
                ceil_mode,
                count_include_pad,
                divisor_override,
            };
            called(input, |x| x.$avg(options))
        }

        /// The norm of order `norm_type` of each window.
        #[pyfunction]
        #[pyo3(signature = (input, norm_type, kernel_size, stride=None, ceil_mode=false))]
        pub fn $lp(
            input: Input,
            norm_type: f64,
            kernel_size: Object,
            stride: Option<Object>,
            ceil_mode: bool,
        ) -> PyResult<PyTensor> {
            let kernel = each("kernel_size", kernel_size)?;
            let stride = each_or("stride", stride, kernel)?;
            called(input, |x| x.$lp(LpPoolOptions::<$n> { norm_type, kernel, stride, ceil_mode }))
        }

        /// The inverse of max pooling by its indices; the other elements are 0.
        #[pyfunction]
        #[pyo3(signature = (input, indices, kernel_size, stride=None, padding=None, output_size=None))]
        pub fn $unpool(
            input: Input,
            indices: Input,
            kernel_size: Object,
            stride: Option<Object>,
            padding: Option<Object>,
            output_size: Option<Vec<usize>>,
        ) -> PyResult<PyTensor> {
            let kernel = each("kernel_size", kernel_size)?;
            // The whole shape, or the sizes of the last dimensions.
            let sizes = output_size.map(|sizes| {
                let last = sizes.len().checked_sub($n).map(|start| &sizes[start..]);
                last.and_then(|last| <[usize; $n]>::try_from(last).ok()).ok_or_else(|| {
                    PyValueError::new_err(format!("expected an `output_size` of {} or more sizes, got {sizes:?}", $n))
                })
            });
            let options = MaxUnpoolOptions::<$n> {
                kernel,
                stride: each_or("stride", stride, kernel)?,
                padding: each_or("padding", padding, PerDim([0; $n]))?,
                output_size: sizes.transpose()?,
            };
            let indices = &indices.get().0;
            called(input, |x| x.$unpool(indices, options))
        }

        /// The means of as many windows as the result has elements.
        #[pyfunction]
        pub fn $adaptive_avg(input: Input, output_size: Object) -> PyResult<PyTensor> {
            let size = output::<$n>(output_size)?;
            called(input, |x| x.$adaptive_avg(size))
        }

        /// The largest elements of as many windows as the result has elements.
        #[pyfunction]
        #[pyo3(signature = (input, output_size, return_indices=false))]
        pub fn $adaptive_max<'py>(
            input: Input<'_, 'py>,
            output_size: Object<'_, 'py>,
            return_indices: bool,
        ) -> PyResult<Bound<'py, PyAny>> {
            let size = output::<$n>(output_size)?;
            with_indices(input, return_indices, |x| x.$adaptive_max(size), |x| x.$adaptive_both(size))
        }
    )*};
}

of_dimensions! {
    1: conv1d conv1d_with conv_transpose1d conv_transpose1d_with max_pool1d max_pool1d_with_indices avg_pool1d lp_pool1d max_unpool1d
        adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool1d_with_indices;
    2: conv2d conv2d_with conv_transpose2d conv_transpose2d_with max_pool2d max_pool2d_with_indices avg_pool2d lp_pool2d max_unpool2d
        adaptive_avg_pool2d adaptive_max_pool2d adaptive_max_pool2d_with_indices;
    3: conv3d conv3d_with conv_transpose3d conv_transpose3d_with max_pool3d max_pool3d_with_indices avg_pool3d lp_pool3d max_unpool3d
        adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices;
}

/// Images of another size, by `size` or `scale_factor`.
#[pyfunction]
#[pyo3(signature = (
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=false
))]
pub fn interpolate(
    input: Input,
    size: Option<Object>,
    scale_factor: Option<Object>,
    mode: &str,
    align_corners: Option<bool>,
    recompute_scale_factor: Option<bool>,
    antialias: bool,
) -> PyResult<PyTensor> {
    if antialias {
        return Err(PyValueError::new_err(
            "interpolate: `antialias` is not supported; use `avg_pool2d` to shrink images",
        ));
    }
    let dims = input.get().0.rank().saturating_sub(2);
    let to = match (size, scale_factor) {
        (Some(size), None) => Resize::Size(match size.extract::<usize>() {
            Ok(all) => vec![all; dims],
            Err(_) => size.extract()?,
        }),
        (None, Some(scale)) => Resize::Scale(match scale.extract::<f64>() {
            Ok(all) => vec![all; dims],
            Err(_) => scale.extract()?,
        }),
        _ => return Err(PyValueError::new_err("interpolate: expected either `size` or `scale_factor`")),
    };
    let mode = match mode {
        "nearest" => InterpolateMode::Nearest,
        "nearest-exact" => InterpolateMode::NearestExact,
        "linear" => InterpolateMode::Linear,
        "bilinear" => InterpolateMode::Bilinear,
        "bicubic" => InterpolateMode::Bicubic,
        "trilinear" => InterpolateMode::Trilinear,
        _ => {
            return Err(PyValueError::new_err(format!(
                "interpolate: expected `mode` to be nearest, nearest-exact, linear, bilinear, bicubic or trilinear, got {mode}"
            )));
        }
    };
    let options = InterpolateOptions {
        to,
        mode,
        align_corners: align_corners.unwrap_or(false),
        recompute_scale_factor: recompute_scale_factor.unwrap_or(false),
    };
    called(input, |x| x.interpolate(&options))
}

fn windows(
    kernel_size: Object,
    dilation: Option<Object>,
    padding: Option<Object>,
    stride: Option<Object>,
) -> PyResult<UnfoldOptions> {
    Ok(UnfoldOptions {
        kernel: each("kernel_size", kernel_size)?,
        dilation: each_or("dilation", dilation, PerDim([1; 2]))?,
        padding: each_or("padding", padding, PerDim([0; 2]))?,
        stride: each_or("stride", stride, PerDim([1; 2]))?,
    })
}

/// The windows of images as columns.
#[pyfunction]
#[pyo3(signature = (input, kernel_size, dilation=None, padding=None, stride=None))]
pub fn unfold(
    input: Input,
    kernel_size: Object,
    dilation: Option<Object>,
    padding: Option<Object>,
    stride: Option<Object>,
) -> PyResult<PyTensor> {
    let options = windows(kernel_size, dilation, padding, stride)?;
    called(input, |x| x.im2col(options))
}

/// Images that are the sums of windows, which are columns.
#[pyfunction]
#[pyo3(signature = (input, output_size, kernel_size, dilation=None, padding=None, stride=None))]
pub fn fold(
    input: Input,
    output_size: Object,
    kernel_size: Object,
    dilation: Option<Object>,
    padding: Option<Object>,
    stride: Option<Object>,
) -> PyResult<PyTensor> {
    let size: PerDim<2> = each("output_size", output_size)?;
    let options = windows(kernel_size, dilation, padding, stride)?;
    called(input, |x| x.col2im(size, options))
}

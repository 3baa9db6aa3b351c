"""Pooling."""

from __future__ import annotations

from typing import Any, Sequence

from .._keyway import Tensor
from . import functional as F
from .of_function import OfFunction


_MAX: dict[str, Any] = {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False}
_AVG: dict[str, Any] = {"kernel_size": ..., "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}
_LP: dict[str, Any] = {"norm_type": ..., "kernel_size": ..., "stride": None, "ceil_mode": False}
_ADAPTIVE: dict[str, Any] = {"output_size": ..., "return_indices": False}


class MaxPool1d(OfFunction):
    """The largest element of each window."""

    _function = "max_pool1d"
    _options = _MAX


class MaxPool2d(OfFunction):
    """The largest element of each window."""

    _function = "max_pool2d"
    _options = _MAX


class MaxPool3d(OfFunction):
    """The largest element of each window."""

    _function = "max_pool3d"
    _options = _MAX


class AvgPool1d(OfFunction):
    """The mean of each window."""

    _function = "avg_pool1d"
    _options = _AVG


class AvgPool2d(OfFunction):
    """The mean of each window."""

    _function = "avg_pool2d"
    _options = {**_AVG, "divisor_override": None}


class AvgPool3d(OfFunction):
    """The mean of each window."""

    _function = "avg_pool3d"
    _options = {**_AVG, "divisor_override": None}


class LPPool1d(OfFunction):
    """The norm of order ``norm_type`` of each window."""

    _function = "lp_pool1d"
    _options = _LP


class LPPool2d(OfFunction):
    """The norm of order ``norm_type`` of each window."""

    _function = "lp_pool2d"
    _options = _LP


class LPPool3d(OfFunction):
    """The norm of order ``norm_type`` of each window."""

    _function = "lp_pool3d"
    _options = _LP


class AdaptiveAvgPool1d(OfFunction):
    """Means of ``output_size`` windows."""

    _function = "adaptive_avg_pool1d"
    _options = {"output_size": ...}


class AdaptiveAvgPool2d(OfFunction):
    """Means of ``output_size`` windows."""

    _function = "adaptive_avg_pool2d"
    _options = {"output_size": ...}


class AdaptiveAvgPool3d(OfFunction):
    """Means of ``output_size`` windows."""

    _function = "adaptive_avg_pool3d"
    _options = {"output_size": ...}


class AdaptiveMaxPool1d(OfFunction):
    """The largest elements of ``output_size`` windows."""

    _function = "adaptive_max_pool1d"
    _options = _ADAPTIVE


class AdaptiveMaxPool2d(OfFunction):
    """The largest elements of ``output_size`` windows."""

    _function = "adaptive_max_pool2d"
    _options = _ADAPTIVE


class AdaptiveMaxPool3d(OfFunction):
    """The largest elements of ``output_size`` windows."""

    _function = "adaptive_max_pool3d"
    _options = _ADAPTIVE


class _MaxUnpool(OfFunction):
    """The inverse of max pooling by its indices."""

    _options = {"kernel_size": ..., "stride": None, "padding": 0}

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Any:
        return getattr(F, self._function)(input, indices, **self._arguments(), output_size=output_size)


class MaxUnpool1d(_MaxUnpool):
    """The inverse of ``MaxPool1d``; the other elements are 0."""

    _function = "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
    """The inverse of ``MaxPool2d``; the other elements are 0."""

    _function = "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
    """The inverse of ``MaxPool3d``; the other elements are 0."""

    _function = "max_unpool3d"

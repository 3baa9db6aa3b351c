"""Statistical functions, and ``all``, ``any``, ``count_nonzero`` and ``diff``."""

from __future__ import annotations

from typing import Any

import keyway

from .. import Tensor
from ._manipulation import Axes


def _accumulated(x: Tensor, dtype: Any) -> Any:
    """The dtype of a sum or product: of 64 bits for integers."""
    if dtype is not None:
        return dtype
    if x.dtype.name.startswith("uint"):
        return keyway.uint64
    return x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else keyway.int64


def reduced(call: Any, x: Tensor, axis: Axes | None, keepdims: bool, *options: Any) -> Tensor:
    """The result of a reduction of the package; over no axis, each element is reduced by itself."""
    if isinstance(axis, (tuple, list)) and not axis:
        x, axis, keepdims = x.unsqueeze(-1), -1, False
    made: Tensor = call(x, axis, *options, keepdims)
    return made


def all(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true, or not zero."""
    return reduced(keyway.all, x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether an element is true, or not zero."""
    return reduced(keyway.any, x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero."""
    return sum(x != 0 if x.dtype != keyway.bool else x, axis=axis, keepdims=keepdims)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The sums of the elements up to each one along an axis, with ``include_initial`` after a zero."""
    return _cumulative(keyway.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The products of the elements up to each one along an axis, with ``include_initial`` after a one."""
    return _cumulative(keyway.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(call: Any, initial: int, x: Tensor, axis: int | None, dtype: Any, include_initial: bool) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"expected an axis for a tensor of {x.ndim} dimensions, got None")
        axis, x = 0, x.reshape(-1)
    dtype = _accumulated(x, dtype)
    made: Tensor = call(x.to(dtype=dtype), axis).to(dtype=dtype)
    if include_initial:
        sizes = list(made.shape)
        sizes[axis] = 1
        made = keyway.cat([made.new_full(sizes, initial), made], axis)
    return made


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along an axis, ``n`` times."""
    return keyway.diff(x, n, axis, prepend, append)


def max(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The largest elements."""
    return reduced(keyway.amax, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The arithmetic means."""
    return reduced(keyway.mean, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The smallest elements."""
    return reduced(keyway.amin, x, axis, keepdims)


def prod(x: Tensor, /, *, axis: Axes | None = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The products of the elements; of integers with 64 bits."""
    dtype = _accumulated(x, dtype)
    return reduced(keyway.prod, x.to(dtype=dtype), axis, keepdims).to(dtype=dtype)


def std(x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviations; the sum of squares is divided by the number of elements minus ``correction``."""
    return reduced(keyway.std, x, axis, keepdims, correction)


def sum(x: Tensor, /, *, axis: Axes | None = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sums of the elements; of integers with 64 bits."""
    dtype = _accumulated(x, dtype)
    return reduced(keyway.sum, x.to(dtype=dtype), axis, keepdims).to(dtype=dtype)


def var(x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variances; the sum of squares is divided by the number of elements minus ``correction``."""
    return reduced(keyway.var, x, axis, keepdims, correction)

"""Searching, indexing, set and sorting functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import keyway

from .. import Tensor
from ._manipulation import axes_of


class UniqueAll(NamedTuple):
    """The result of ``unique_all``."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of ``unique_counts``."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of ``unique_inverse``."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The indices of the largest elements."""
    return _arg(keyway.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The indices of the smallest elements."""
    return _arg(keyway.argmin, x, axis, keepdims)


def _arg(call: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    made: Tensor = call(x, axis, False if axis is None else keepdims)
    return made.reshape([1] * x.ndim) if keepdims and axis is None else made


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort an axis."""
    return keyway.argsort(x, axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    made: Tensor = keyway.sort(x, axis, descending, stable)[0]
    return made


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of ``x1`` is one of ``x2``."""
    return keyway.isin(x1, x2, invert)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, a tensor for each dimension."""
    if x.ndim == 0:
        raise ValueError("nonzero: expected a tensor with at least one dimension")
    made: tuple[Tensor, ...] = tuple(keyway.nonzero(x, as_tuple=True))
    return made


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The index at which each element of ``x2`` would be inserted into the sorted vector ``x1``."""
    return keyway.searchsorted(x1, x2, side=side, sorter=sorter)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of an axis at indices."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: expected an axis for a tensor of {x.ndim} dimensions, got None")
        axis = 0
    (axis,) = axes_of(axis, x.ndim)
    made = keyway.index_select(x, axis, _from_start(indices.reshape(-1), x.shape[axis]))
    return made.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices of an axis; the other axes broadcast."""
    (axis,) = axes_of(axis, x.ndim)
    return keyway.take_along_dim(x, _from_start(indices, x.shape[axis]), axis)


def _from_start(indices: Tensor, size: int) -> Tensor:
    """Indices with those from the end counted from the start."""
    indices = indices.long()
    return keyway.where(indices < 0, indices + size, indices)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, the index of the first of each, the index of each element among them, and their counts. Each NaN is
    distinct."""
    values, inverse, counts = _unique(x)
    # Of the positions of equal elements the first one.
    positions = keyway.arange(x.numel(), device=x.device)
    first = keyway.full((values.numel(),), x.numel(), dtype=keyway.int64, device=x.device)
    first = first.scatter_reduce(0, inverse.reshape(-1), positions, "amin")
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and their counts."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements and the index of each element among them."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return _unique(x)[0]


def _unique(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    values, inverse, counts = keyway.unique(x, return_inverse=True, return_counts=True)
    return values, inverse.reshape(x.shape), counts


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """The elements of ``x1`` where the condition holds, those of ``x2`` elsewhere."""
    return keyway.where(condition, x1, x2)

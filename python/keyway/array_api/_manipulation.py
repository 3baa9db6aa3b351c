"""Manipulation functions."""

from __future__ import annotations

from typing import Sequence

import keyway

from .. import Tensor, broadcast_shapes, broadcast_to

__all__ = ["broadcast_shapes", "broadcast_to"]

broadcast_arrays = keyway.broadcast_tensors
moveaxis = keyway.movedim
Axes = int | Sequence[int]


def axes_of(axis: Axes, ndim: int) -> list[int]:
    """Axes as different indices from 0."""
    given = [axis] if isinstance(axis, int) else list(axis)
    for one in given:
        if not -ndim <= one < ndim:
            raise IndexError(f"expected an axis from {-ndim} to {ndim - 1}, got {one}")
    made = [one % ndim for one in given]
    if len(set(made)) != len(made):
        raise ValueError(f"expected different axes, got {given}")
    return made


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors one after another along an axis, or flattened if ``axis`` is ``None``."""
    return keyway.concatenate(arrays, axis)


def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor:
    """A view with axes of size 1 at these indices of the result."""
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    for at in sorted(axes_of(axis, x.ndim + count)):
        x = x.unsqueeze(at)
    return x


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """The elements in reversed order along axes, or all."""
    return keyway.flip(x, list(range(x.ndim)) if axis is None else axes_of(axis, x.ndim))


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """A view with the axes in another order."""
    return keyway.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, or each slice of an axis, several times one after another."""
    return x.repeat_interleave(repeats, axis)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape; with ``copy=False`` a view, or a ``ValueError``."""
    if copy is False:
        return x.view(shape)
    made = x.reshape(shape)
    return made.clone() if copy else made


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """The elements moved along axes, those beyond the end to the start; flattened if ``axis`` is ``None``."""
    if axis is None:
        return keyway.roll(x.reshape(-1), shift, 0).reshape(x.shape)
    # One shift applies to each of several axes, and an axis may occur more than once.
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: expected as many shifts as axes, {len(axes)}, got {len(shifts)}")
    for by, at in zip(shifts, axes):
        x = keyway.roll(x, by, at)
    return x


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without axes of size 1."""
    axes = axes_of(axis, x.ndim)
    for at in axes:
        if x.shape[at] != 1:
            raise ValueError(f"squeeze: expected axis {at} to have size 1, got {x.shape[at]}")
    return keyway.squeeze(x, axes) if axes else x


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return keyway.stack(arrays, axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """The tensor repeated along each axis."""
    return keyway.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of the slices of an axis."""
    made: tuple[Tensor, ...] = tuple(keyway.unbind(x, axis))
    return made


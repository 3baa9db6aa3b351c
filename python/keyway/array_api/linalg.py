"""The extension ``linalg``: the functions of ``keyway.linalg`` with the names of arguments of the standard."""

from __future__ import annotations

from typing import Any, Sequence

import keyway

from .. import Tensor, matmul
from .. import linalg as _linalg
from ..linalg import det, eig, eigh, eigvals, eigvalsh, inv, matrix_power, matrix_transpose, outer, slogdet, svdvals
from ._manipulation import Axes
from ._reductions import reduced as _reduced
from ._reductions import sum as _sum


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive definite matrices."""
    return _linalg.cholesky(x, upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along an axis."""
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: expected 3 elements along axis {axis}, got {x1.shape[axis]} and {x2.shape[axis]}")
    return _linalg.cross(*keyway.broadcast_tensors(x1, x2), axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Views of the diagonals of matrices."""
    return keyway.diagonal(x, offset, -2, -1)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norms of matrices: ``"fro"``, ``"nuc"``, or 1, 2, infinity or the negative of one."""
    made = x.matrix_norm(ord)
    return made.unsqueeze(-1).unsqueeze(-1) if keepdims else made


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values above ``rtol`` times the largest one."""
    if not isinstance(rtol, Tensor):
        return x.matrix_rank(rtol=rtol)
    values = svdvals(x)
    return (values > rtol.unsqueeze(-1) * values.amax(-1, True)).sum(-1)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverses, without the singular values of at most ``rtol`` times the largest one."""
    if not isinstance(rtol, Tensor):
        return _linalg.pinv(x, rtol=rtol)
    u, values, vh = svd(x, full_matrices=False)
    kept = values > rtol.unsqueeze(-1) * values.amax(-1, True)
    inverses = keyway.where(kept, 1 / keyway.where(kept, values, 1.0), 0.0)
    return (vh.mH * inverses.unsqueeze(-2)) @ u.mH


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """The orthonormal and the upper triangular factors."""
    return _linalg.qr(x, mode)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions of ``x1 @ x = x2``; ``x2`` is a vector if it has one dimension, and else has matrices."""
    dtype = keyway.result_type(x1, x2)
    x1, x2 = x1.to(dtype=dtype), x2.to(dtype=dtype)
    if x2.ndim == 1:
        return _linalg.solve(x1, x2.expand(*x1.shape[:-2], x2.shape[0]).unsqueeze(-1)).squeeze(-1)
    return _linalg.solve(x1, x2)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """The singular values and vectors."""
    return _linalg.svd(x, full_matrices)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sums of products over the last axes of ``x1`` and the first of ``x2``, or over pairs of axes."""
    return _linalg.tensordot(x1, x2, axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot products along an axis, the first factor conjugated."""
    dtype = keyway.result_type(x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: expected as many elements along axis {axis}, {x1.shape[axis]}, got {x2.shape[axis]}")
    return x1.to(dtype=dtype).vecdot(x2.to(dtype=dtype), axis).to(dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norms of vectors along axes, or of all elements."""
    return _reduced(lambda x, axis, keepdims: keyway.norm(x, ord, axis, keepdims), x, axis, keepdims)

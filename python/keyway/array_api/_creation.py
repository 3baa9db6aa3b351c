"""Creation functions."""

from __future__ import annotations

from typing import Any, Sequence

import keyway

from .. import Tensor, asarray, from_dlpack, triu as _triu, tril as _tril

Shape = int | Sequence[int]
__all__ = ["asarray", "from_dlpack"]


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: str | None = None
) -> Tensor:
    """The numbers from ``start`` (0 if ``stop`` is not given) to ``stop``, which is excluded, in steps."""
    first, last = (0, start) if stop is None else (start, stop)
    if step != 0 and (last - first) / step <= 0:
        whole = all(isinstance(number, int) for number in (first, last, step))
        default = keyway.int64 if whole else keyway.get_default_dtype()
        return keyway.empty(0, dtype=default if dtype is None else dtype, device=device)
    return keyway.arange(first, last, step, dtype=dtype, device=device)


def empty(shape: Shape, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor whose elements are unspecified."""
    return keyway.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Unspecified elements in the shape of ``x``."""
    return keyway.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: str | None = None
) -> Tensor:
    """A matrix with ones on the diagonal ``k`` above the main one and zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    k = max(-n_rows, min(k, n_cols))
    if k == 0:
        return keyway.eye(n_rows, n_cols, dtype=dtype, device=device)
    ones = keyway.ones((n_rows, n_cols), dtype=keyway.bool, device=device)
    band = ones.triu(k) & ones.tril(k)
    return band.to(dtype=keyway.get_default_dtype() if dtype is None else dtype)


def full(shape: Shape, fill_value: complex, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor whose elements are all ``fill_value``."""
    return keyway.full(shape, fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Elements of one value in the shape of ``x``."""
    return keyway.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which ``endpoint`` includes."""
    if isinstance(start, complex) or isinstance(stop, complex):
        first, last = complex(start), complex(stop)
        made = linspace(0.0, 1.0, num, dtype=keyway.float64, device=device, endpoint=endpoint)
        made = first + made * (last - first)
        if endpoint and num > 1:
            made[-1] = last
        default = keyway.promote_types(keyway.get_default_dtype(), keyway.complex64)
        return made.to(dtype=default if dtype is None else dtype)
    points = num if endpoint else num + 1
    made = keyway.linspace(start, stop, points, dtype=dtype, device=device)
    return made if endpoint else made[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid, a tensor for each vector, all of one shape."""
    return keyway.meshgrid(*arrays, indexing=indexing)


def ones(shape: Shape, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of ones."""
    return keyway.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones in the shape of ``x``."""
    return keyway.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, up to the diagonal ``k``; zeros elsewhere."""
    return _tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, from the diagonal ``k`` on; zeros elsewhere."""
    return _triu(x, k)


def zeros(shape: Shape, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros."""
    return keyway.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros in the shape of ``x``."""
    return keyway.zeros_like(x, dtype=dtype, device=device)

"""Functions that are combinations of ops, with the names and semantics of PyTorch or NumPy."""

from __future__ import annotations

from typing import Any, Sequence

from ._keyway import Tensor, call_op, empty, full, ones, rand, randn, zeros


def _options(like: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": like.dtype if dtype is None else dtype, "device": like.device if device is None else device}


def zeros_like(input: Tensor, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Zeros of the shape, dtype and device of a tensor."""
    return zeros(input.shape, **_options(input, dtype, device), requires_grad=requires_grad)


def ones_like(input: Tensor, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Ones of the shape, dtype and device of a tensor."""
    return ones(input.shape, **_options(input, dtype, device), requires_grad=requires_grad)


def empty_like(input: Tensor, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Unspecified elements of the shape, dtype and device of a tensor."""
    return empty(input.shape, **_options(input, dtype, device), requires_grad=requires_grad)


def full_like(
    input: Tensor, fill_value: float, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Elements of one value of the shape, dtype and device of a tensor."""
    return full(input.shape, fill_value, **_options(input, dtype, device), requires_grad=requires_grad)


def rand_like(input: Tensor, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Uniformly distributed numbers from 0 to 1 of the shape, dtype and device of a tensor."""
    return rand(input.shape, **_options(input, dtype, device), requires_grad=requires_grad)


def randn_like(input: Tensor, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Normally distributed numbers of the shape, dtype and device of a tensor."""
    return randn(input.shape, **_options(input, dtype, device), requires_grad=requires_grad)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most ``atol + rtol * abs(other)``."""
    return bool(call_op("isclose", (input, other, rtol, atol, equal_nan)).all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    return input.shape == other.shape and bool((input == other).all())


def is_tensor(obj: object) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one after another along the second dimension, or the only one."""
    made: Tensor = call_op("cat", (tensors, 0 if tensors[0].ndim <= 1 else 1))
    return made


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one below another along the first dimension; vectors are rows."""
    rows = [tensor.reshape(1, -1) if tensor.ndim <= 1 else tensor for tensor in tensors]
    made: Tensor = call_op("cat", (rows, 0))
    return made


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: a tensor for each vector, all of one shape. ``indexing="xy"`` exchanges the first two."""
    if indexing not in ("ij", "xy"):
        raise ValueError(f'meshgrid: expected indexing "ij" or "xy", got {indexing!r}')
    shape = [tensor.numel() for tensor in tensors]
    grids = []
    for dim, tensor in enumerate(tensors):
        sizes = [1] * len(tensors)
        sizes[dim] = tensor.numel()
        grid = tensor.reshape(sizes).expand(shape)
        grids.append(grid.transpose(0, 1) if indexing == "xy" and len(tensors) > 1 else grid)
    return tuple(grids)


def clip(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The elements with those below ``min`` or above ``max`` set to these."""
    made: Tensor = call_op("clamp", (input, min, max))
    return made

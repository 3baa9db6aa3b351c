"""Functions that are combinations of ops, with the names and semantics of PyTorch or NumPy."""

from __future__ import annotations

from typing import Any, Sequence

from ._keyway import Tensor, asarray, call_op, composed


def as_tensor(data: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """``asarray`` with PyTorch's arguments."""
    return asarray(data, dtype=dtype, device=device)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def concatenate(tensors: Sequence[Tensor], axis: int | None = 0) -> Tensor:
    """``cat`` with NumPy's arguments; all elements in one dimension if ``axis`` is ``None``."""
    if axis is None:
        tensors, axis = [tensor.reshape(-1) for tensor in tensors], 0
    made: Tensor = call_op("cat", (tensors, axis))
    return made


def broadcast_to(input: Tensor, shape: Sequence[int]) -> Tensor:
    """A view of a shape, in which sizes of 1 are repeated."""
    made: Tensor = call_op("expand", (input, list(shape)))
    return made


def is_tensor(obj: object) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def clip(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The elements with those below ``min`` or above ``max`` set to these."""
    made: Tensor = call_op("clamp", (input, min, max))
    return made


def bernoulli(input: Tensor) -> Tensor:
    """Ones with the probabilities of the input, and zeros."""
    made: Tensor = composed.bernoulli(input)
    return made


def multinomial(input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Indices that are drawn with the weights of each row."""
    made: Tensor = composed.multinomial(input, num_samples, replacement)
    return made


def poisson(input: Tensor) -> Tensor:
    """Counts of Poisson distributions with the rates of the input."""
    made: Tensor = composed.poisson(input)
    return made


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after another along a dimension."""
    made: Tensor = call_op("cat", (list(tensors), dim))
    return made


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension."""
    made: Tensor = call_op("stack", (list(tensors), dim))
    return made

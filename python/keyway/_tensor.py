"""Methods of ``Tensor`` that are combinations of ops, with the names and semantics of PyTorch."""

from __future__ import annotations

import builtins
import math
from typing import Any, Sequence

from . import _functions, _keyway
from ._keyway import Tensor, call_op

_DTYPE_METHODS = {
    "float": _keyway.float32,
    "double": _keyway.float64,
    "half": _keyway.float16,
    "bfloat16": _keyway.bfloat16,
    "char": _keyway.int8,
    "byte": _keyway.uint8,
    "short": _keyway.int16,
    "int": _keyway.int32,
    "long": _keyway.int64,
    "bool": _keyway.bool,
}


def _axis(dim: int, rank: int) -> int:
    if not -rank <= dim < builtins.max(rank, 1):
        raise IndexError(f"expected a dimension from {-rank} to {rank - 1}, got {dim}")
    return dim + rank if dim < 0 else dim


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The tensor with the dimensions from ``start_dim`` to ``end_dim``, both included, as one."""
    if self.ndim == 0:
        return self.reshape(1)
    start, end = _axis(start_dim, self.ndim), _axis(end_dim, self.ndim)
    if start > end:
        raise ValueError(f"flatten: expected start_dim at or before end_dim, got {start_dim} and {end_dim}")
    shape = self.shape
    return self.reshape(shape[:start] + (math.prod(shape[start : end + 1]),) + shape[end + 1 :])


def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """The tensor with dimension ``dim`` split into dimensions of these sizes."""
    at = _axis(dim, self.ndim)
    return self.reshape(self.shape[:at] + tuple(sizes) + self.shape[at + 1 :])


def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view of ``length`` elements of a dimension from ``start`` on."""
    return call_op("slice", (self, dim, start, start + length))


def split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of ``split_size`` elements each, the last one of the rest, or of the given sizes."""
    if isinstance(split_size, int):
        if split_size < 1:
            raise ValueError(f"split: expected a size of at least 1, got {split_size}")
        total = self.size(dim)
        whole, rest = divmod(total, split_size)
        split_size = [split_size] * whole + ([rest] if rest or not total else [])
    return call_op("split", (self, list(split_size), dim))


def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal sizes, the last one of the rest."""
    if chunks < 1:
        raise ValueError(f"chunk: expected at least 1 chunk, got {chunks}")
    return split(self, builtins.max(-(-self.size(dim) // chunks), 1), dim)


def movedim(self: Tensor, source: int, destination: int) -> Tensor:
    """The tensor with one dimension moved to another index."""
    order = [dim for dim in range(self.ndim) if dim != _axis(source, self.ndim)]
    order.insert(_axis(destination, self.ndim), _axis(source, self.ndim))
    return self.permute(order)


def _reduced(name: str, over_all: str, self: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args and isinstance(args[0], Tensor):
        return call_op(f"{name}imum", (self, *args), kwargs or None)
    if args or "dim" in kwargs or "axis" in kwargs:
        return call_op(name, (self, *args), kwargs or None)
    return call_op(over_all, (self,), kwargs or None)


def max(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The largest element, or with ``dim`` the largest elements of a dimension and their indices."""
    return _reduced("max", "amax", self, args, kwargs)


def min(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The smallest element, or with ``dim`` the smallest elements of a dimension and their indices."""
    return _reduced("min", "amin", self, args, kwargs)


def t(self: Tensor) -> Tensor:
    """The transpose of a tensor of at most two dimensions."""
    return self.T


def cpu(self: Tensor) -> Tensor:
    """The tensor in host memory."""
    return self.to(device="cpu")


def cuda(self: Tensor, index: int = 0) -> Tensor:
    """The tensor on a GPU of NVIDIA."""
    return self.to(device=f"cuda:{index}")


def zero_(self: Tensor) -> Tensor:
    """Sets each element to 0."""
    return self.fill_(0)


def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Fills the tensor with uniformly distributed numbers from ``low`` to ``high``."""
    random = _keyway.rand(self.shape, dtype=self.dtype, device=self.device)
    return self.copy_(random * (high - low) + low)


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fills the tensor with normally distributed numbers."""
    random = _keyway.randn(self.shape, dtype=self.dtype, device=self.device)
    return self.copy_(random * std + mean)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """A view of the shape of another tensor, whose sizes of 1 are repeated."""
    return self.expand(other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the shape of another one."""
    return self.reshape(other.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another one."""
    return self.to(dtype=other.dtype)


def ravel(self: Tensor) -> Tensor:
    """The elements as one dimension."""
    return self.reshape(-1)


def swapaxes(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """The tensor with two dimensions exchanged."""
    return self.transpose(axis0, axis1)


def is_floating_point(self: Tensor) -> builtins.bool:
    """Whether the dtype is a real floating-point type."""
    return self.dtype.is_floating_point


def is_complex(self: Tensor) -> builtins.bool:
    """Whether the dtype is a complex type."""
    return self.dtype.is_complex


def _format(self: Tensor, spec: str) -> str:
    if self.ndim == 0 and spec:
        return format(self.item(), spec)
    return format(repr(self), spec)


def _contains(self: Tensor, value: Any) -> builtins.bool:
    return builtins.bool((self == value).any())


def numpy(self: Tensor) -> Any:
    """A NumPy array over the tensor's memory."""
    import numpy

    return numpy.asarray(self)


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    import numpy

    try:
        view = memoryview(self)
    except BufferError as error:
        raise TypeError(str(error)) from None
    array = numpy.asarray(view)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _html(self: Tensor) -> str:
    from html import escape

    return (
        f"<pre>{escape(repr(self))}</pre><small>shape {escape(str(self.shape))}, {escape(self.dtype.name)}, "
        f"{escape(self.layout)}, {escape(self.device)}</small>"
    )


_METHODS = (
    chunk,
    cpu,
    cuda,
    expand_as,
    flatten,
    is_complex,
    is_floating_point,
    max,
    min,
    movedim,
    narrow,
    normal_,
    numpy,
    ravel,
    reshape_as,
    split,
    swapaxes,
    t,
    type_as,
    unflatten,
    uniform_,
    zero_,
)


def install() -> None:
    """Adds the methods to ``Tensor``."""
    for method in _METHODS:
        setattr(Tensor, method.__name__, method)
    for name, dtype in _DTYPE_METHODS.items():

        def convert(self: Tensor, _dtype: Any = dtype) -> Tensor:
            return self.to(dtype=_dtype)

        convert.__name__ = name
        convert.__doc__ = f"The tensor converted to {dtype.name}."
        setattr(Tensor, name, convert)
    for function in (_functions.allclose, _functions.clip, _functions.equal):
        setattr(Tensor, function.__name__, function)
    Tensor.__array__ = _array
    Tensor.__format__ = _format
    Tensor.__contains__ = _contains
    Tensor._repr_html_ = _html
    # NumPy's operators leave calls with a tensor to the tensor's.
    Tensor.__array_priority__ = 1000

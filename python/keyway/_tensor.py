"""Methods of ``Tensor`` that are combinations of ops, with the names and semantics of PyTorch."""

from __future__ import annotations

import builtins
from typing import Any

from . import _functions, _keyway, _ops, _torch
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


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The elements of this tensor where the condition holds, those of ``other`` elsewhere."""
    return call_op("where", (condition, self, other))


def new_zeros(self: Tensor, *size: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros of another shape with the dtype and device of this tensor."""
    return _keyway.zeros(*size, dtype=dtype or self.dtype, device=device or self.device)


def new_ones(self: Tensor, *size: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones of another shape with the dtype and device of this tensor."""
    return _keyway.ones(*size, dtype=dtype or self.dtype, device=device or self.device)


def new_full(self: Tensor, size: Any, fill_value: float, dtype: Any = None, device: str | None = None) -> Tensor:
    """Elements of one value in another shape with the dtype and device of this tensor."""
    return _keyway.full(size, fill_value, dtype=dtype or self.dtype, device=device or self.device)


def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of data, copied, with the dtype and device of this tensor."""
    return _keyway.tensor(data, dtype=dtype or self.dtype, device=device or self.device)


def new_empty(self: Tensor, *size: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of another shape with undefined elements, with the dtype and device of this tensor."""
    return _keyway.empty(*size, dtype=dtype or self.dtype, device=device or self.device)


def fill_diagonal_(self: Tensor, fill_value: float, wrap: builtins.bool = False) -> Tensor:
    """Sets the diagonal of a matrix, or of a tensor with equal sizes; with ``wrap`` diagonals follow below in a tall matrix."""
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ValueError(f"fill_diagonal_: expected a matrix, or equal sizes, got the shape {tuple(self.shape)}")
    height, width = self.shape[0], self.shape[1]
    steps = range(height if wrap and self.ndim == 2 else builtins.min(self.shape))
    rows = [row for row in steps if self.ndim > 2 or row % (width + 1) < width]
    if rows:
        columns = [row % (width + 1) for row in rows] if self.ndim == 2 else rows
        self[(rows, columns) if self.ndim == 2 else (rows,) * self.ndim] = fill_value
    return self


def astype(self: Tensor, dtype: Any) -> Tensor:
    """The tensor converted to a dtype, by NumPy's name."""
    return self.to(dtype=dtype)


def clamp_min(self: Tensor, min: Any) -> Tensor:
    """The elements with those below ``min`` set to it."""
    return _functions.clamp(self, min)


def clamp_max(self: Tensor, max: Any) -> Tensor:
    """The elements with those above ``max`` set to it."""
    return _functions.clamp(self, max=max)


def _reduced(name: str, over_all: str, self: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args and isinstance(args[0], Tensor):
        return call_op(f"{name}imum", (self, *args), kwargs or None)
    if args or "dim" in kwargs or "axis" in kwargs:
        return _ops.call_named(name, (self, *args), kwargs)
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


def share_memory_(self: Tensor) -> Tensor:
    """Moves the tensor to memory that other processes can map, with its gradient, and returns it. No effect if it is there.

    Call it before views of the tensor are made: they would keep the old memory, so it is an error while there are any. NumPy arrays
    over the old memory keep it.
    """
    # Registers how tensors are sent to other processes.
    from . import _shared as _shared

    return self._share()


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the shape of another one."""
    return self.reshape(other.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another one."""
    return self.to(dtype=other.dtype)


def type(self: Tensor, dtype: Any = None) -> Any:
    """The tensor converted to a dtype, or the name of its dtype."""
    return f"keyway.{self.dtype.name}" if dtype is None else self.to(dtype=dtype)


def _set_data(self: Tensor, value: Tensor) -> None:
    if value.shape != self.shape or value.dtype != self.dtype or value.device != self.device:
        raise ValueError(
            f"data: expected a tensor of shape {tuple(self.shape)} and dtype {self.dtype.name} on {self.device}, got "
            f"{tuple(value.shape)}, {value.dtype.name} on {value.device}; assign a new Parameter to the module instead"
        )
    self.detach().copy_(value)


def ravel(self: Tensor) -> Tensor:
    """The elements as one dimension."""
    return self.reshape(-1)


def is_floating_point(self: Tensor) -> builtins.bool:
    """Whether the dtype is a real floating-point type."""
    return self.dtype.is_floating_point


def is_complex(self: Tensor) -> builtins.bool:
    """Whether the dtype is a complex type."""
    return self.dtype.is_complex


class _Size(int):
    """The number of elements, as in NumPy; a call returns the shape or the size of a dimension, as in PyTorch."""

    _tensor: Tensor

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self._tensor._size(dim)

    def __reduce__(self) -> Any:
        return int, (int(self),)


def _size(self: Tensor) -> _Size:
    made = _Size(self.numel())
    made._tensor = self
    return made


_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> Any:
    """The namespace of the array API standard, ``keyway.array_api``."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"expected an array API version of {', '.join(_VERSIONS)}, got {api_version!r}")
    from . import array_api

    return array_api


def to_device(self: Tensor, device: str, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device; ``stream`` has no effect."""
    return self.to(device=device)


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
    __array_namespace__,
    _functions.addmv,
    _functions.addr,
    _functions.adjoint,
    _functions.broadcast_to,
    _functions.clamp,
    _functions.clip,
    _functions.conj,
    _functions.diagflat,
    _functions.diff,
    _functions.dist,
    _functions.dsplit,
    _functions.hsplit,
    _functions.inner,
    _functions.is_nonzero,
    _functions.isin,
    _functions.isreal,
    _functions.ldexp,
    _functions.logaddexp2,
    _functions.msort,
    _functions.nonzero,
    _functions.norm,
    _functions.positive,
    _functions.resolve_conj,
    _functions.resolve_neg,
    _functions.sgn,
    _functions.slogdet,
    _functions.split_with_sizes,
    _functions.vsplit,
    astype,
    clamp_max,
    clamp_min,
    cpu,
    cuda,
    fill_diagonal_,
    is_complex,
    is_floating_point,
    max,
    min,
    new_empty,
    new_full,
    new_ones,
    new_tensor,
    new_zeros,
    numpy,
    ravel,
    reshape_as,
    share_memory_,
    t,
    to_device,
    type,
    type_as,
    where,
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
    Tensor.to_torch = _torch.to_torch
    Tensor.moveaxis = Tensor.movedim
    Tensor.size = property(_size, doc=_Size.__doc__)
    Tensor.view_as = reshape_as
    Tensor.swapdims = Tensor.swapaxes
    Tensor.data = property(Tensor.detach, _set_data, doc="The tensor without its history; the memory is shared.")
    Tensor.nelement, Tensor.ndimension = Tensor.numel, Tensor.dim
    Tensor.is_cpu = property(lambda self: self.device == "cpu", doc="Whether it is in host memory.")
    Tensor.itemsize = property(lambda self: self.element_size(), doc="The bytes of an element.")
    Tensor.is_cuda = property(lambda self: self.device.startswith("cuda"), doc="Whether it is on a GPU of NVIDIA.")
    Tensor.H = property(lambda self: self.T.conj() if self.dtype.is_complex else self.T, doc="The adjoint matrix.")
    Tensor.mH = property(lambda self: self.mT.conj() if self.dtype.is_complex else self.mT, doc="The adjoint matrices.")
    Tensor.__array__ = _array
    Tensor.__format__ = _format
    Tensor.__contains__ = _contains
    Tensor._repr_html_ = _html
    # NumPy's operators leave calls with a tensor to the tensor's.
    Tensor.__array_priority__ = 1000

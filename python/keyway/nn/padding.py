"""Padding."""

from __future__ import annotations

from typing import Sequence

from .._keyway import Tensor
from . import functional as F
from .module import Module


class _Pad(Module):
    """Adds elements at both ends of the last dimensions."""

    _dims: int
    _mode: str

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self._dims:
            raise ValueError(f"{type(self).__name__}: expected an int or {2 * self._dims} of them, got {self.padding}")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    """Adds elements of one value."""

    _mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)


class _ZeroPad(_Pad):
    """Adds zeros."""

    _mode = "constant"


class ConstantPad1d(_ConstantPad):
    """Adds elements of one value around the last dimension."""

    _dims = 1
    _mode = "constant"


class ConstantPad2d(_ConstantPad):
    """Adds elements of one value around the last 2 dimensions."""

    _dims = 2
    _mode = "constant"


class ConstantPad3d(_ConstantPad):
    """Adds elements of one value around the last 3 dimensions."""

    _dims = 3
    _mode = "constant"


class ZeroPad1d(_ZeroPad):
    """Adds zeros around the last dimension."""

    _dims = 1
    _mode = "constant"


class ZeroPad2d(_ZeroPad):
    """Adds zeros around the last 2 dimensions."""

    _dims = 2
    _mode = "constant"


class ZeroPad3d(_ZeroPad):
    """Adds zeros around the last 3 dimensions."""

    _dims = 3
    _mode = "constant"


class ReflectionPad1d(_Pad):
    """Adds the reflected elements around the last dimension."""

    _dims = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Adds the reflected elements around the last 2 dimensions."""

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Adds the reflected elements around the last 3 dimensions."""

    _dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Adds copies of the border around the last dimension."""

    _dims = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Adds copies of the border around the last 2 dimensions."""

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """Adds copies of the border around the last 3 dimensions."""

    _dims = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """Adds the elements of the other end around the last dimension."""

    _dims = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """Adds the elements of the other end around the last 2 dimensions."""

    _dims = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """Adds the elements of the other end around the last 3 dimensions."""

    _dims = 3
    _mode = "circular"

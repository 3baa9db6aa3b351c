"""Limits of dtypes, with the names of NumPy and PyTorch."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

from . import _keyway
from ._keyway import Tensor


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a floating-point dtype; those of a complex one are the limits of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any

    @property
    def tiny(self) -> float:
        """The smallest positive normal number, by its older name."""
        return self.smallest_normal


@dataclass(frozen=True)
class IntInfo:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


# Bits of the exponent and of the fraction of each floating-point dtype.
_FORMATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def _name(type: Any) -> str:
    if isinstance(type, Tensor):
        return type.dtype.name
    if hasattr(type, "dtype") and not isinstance(type, builtins.type):
        type = type.dtype
    for known in vars(_keyway).values():
        if isinstance(known, _keyway.dtype) and known == type:
            return known.name
    raise TypeError(f"expected a dtype or a tensor, got {type!r}")


def finfo(type: Any = None) -> FloatInfo:
    """The limits of a floating-point or complex dtype, or of that of a tensor; of the default dtype if none is given."""
    name = _name(_keyway.get_default_dtype() if type is None else type)
    name = _PARTS.get(name, name)
    if name not in _FORMATS:
        raise TypeError(f"finfo: expected a floating-point dtype, got {name}; call `iinfo` for integers")
    exponent, fraction = _FORMATS[name]
    bias = 2 ** (exponent - 1) - 1
    largest = (2.0 - 2.0**-fraction) * 2.0**bias
    return FloatInfo(
        1 + exponent + fraction, 2.0**-fraction, largest, -largest, 2.0 ** (1 - bias), getattr(_keyway, name)
    )


def iinfo(type: Any) -> IntInfo:
    """The limits of an integer dtype, or of that of a tensor."""
    name = _name(type)
    if not name.startswith(("int", "uint")):
        raise TypeError(f"iinfo: expected an integer dtype, got {name}; call `finfo` for floating-point numbers")
    bits = int(name.removeprefix("u").removeprefix("int"))
    if name.startswith("u"):
        return IntInfo(bits, 2**bits - 1, 0, getattr(_keyway, name))
    return IntInfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), getattr(_keyway, name))

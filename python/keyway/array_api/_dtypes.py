"""Data type functions."""

from __future__ import annotations

import builtins
from typing import Any

import keyway

from .. import Tensor, finfo, iinfo, result_type

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
# The dtypes of the standard by kind.
KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """The tensor converted to a dtype; with ``copy=False`` the tensor itself if it has that dtype and device."""
    if x.dtype.is_complex and not _dtype(dtype).is_complex:
        raise TypeError(f"astype: {x.dtype.name} cannot be converted to a real dtype; take `real` or `abs` first")
    made = x.to(dtype=dtype, device=device)
    return made.clone() if copy and made.dtype == x.dtype and made.device == x.device else made


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or that of a tensor, converts to another one by the rules of promotion."""
    from_ = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return bool(keyway.promote_types(from_, to) == to)
    except TypeError:
        return False


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind of the standard, such as ``"real floating"``, is another dtype, or one of a tuple of these.
    float16 and bfloat16 are real floating too."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    if not isinstance(kind, str):
        return bool(dtype == kind)
    if kind not in KINDS:
        raise ValueError(f"isdtype: expected one of {', '.join(KINDS)}, got {kind!r}")
    name = dtype.name
    return name in KINDS[kind] or (kind in ("real floating", "numeric") and name in ("float16", "bfloat16"))


def _dtype(dtype: Any) -> Any:
    return keyway.promote_types(dtype, dtype)

"""Inspection of the namespace."""

from __future__ import annotations

from typing import Any

import keyway

from ._dtypes import KINDS


class _Info:
    """The devices, dtypes and capabilities of the namespace; ``__array_namespace_info__()`` returns it."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and shapes that depend on elements are supported; a tensor has at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of new tensors."""
        return keyway.empty(0).device

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Any]:
        """The dtypes of new tensors by kind; they are the same on each device."""
        real = keyway.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": keyway.promote_types(real, keyway.complex64),
            "integral": keyway.int64,
            "indexing": keyway.int64,
        }

    def devices(self) -> tuple[str, ...]:
        """The devices that a loaded backend serves."""
        return tuple(keyway.devices())

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The dtypes of the standard by name: all, or those of a kind or of one of several kinds."""
        if kind is None:
            kinds: tuple[str, ...] = ("bool", "numeric")
        else:
            kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        for name in kinds:
            if name not in KINDS:
                raise ValueError(f"dtypes: expected one of {', '.join(KINDS)}, got {name!r}")
        return {name: getattr(keyway, name) for one in kinds for name in KINDS[one]}


def __array_namespace_info__() -> Any:
    """The capabilities, devices and dtypes of the namespace."""
    return _Info()

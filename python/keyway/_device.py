"""Devices by their name."""

from __future__ import annotations

from typing import Any

from ._keyway import Tensor, _count_devices


class device(str):
    """The name of a device, such as ``cpu`` or ``cuda:0``, with its ``type`` and ``index``."""

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> device:
        name = str(type) if index is None else f"{type}:{index}"
        kind, _, number = name.partition(":")
        if not kind or (number and not number.isdecimal()):
            raise ValueError(f'device: expected a name such as "cpu" or "cuda:0", got {name!r}')
        return super().__new__(cls, name)

    @property
    def type(self) -> str:
        """The kind of device."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number among the devices of the kind, or ``None``."""
        number = self.partition(":")[2]
        return int(number) if number else None

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __str__(self) -> str:
        return str.__str__(self)


def install() -> None:
    """Makes ``Tensor.device`` a ``device``."""
    name = Tensor.__dict__["device"].__get__
    known: dict[str, device] = {}

    def of(self: Tensor) -> device:
        text = name(self)
        found = known.get(text)
        if found is None:
            found = known[text] = device(text)
        return found

    setattr(Tensor, "device", property(of, doc="The device, a str such as `cpu` or `cuda:0` with `type` and `index`."))


def count(kind: str) -> int:
    """The number of devices of a kind."""
    return _count_devices(kind)

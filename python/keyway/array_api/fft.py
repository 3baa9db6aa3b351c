"""The extension ``fft``: the functions of ``keyway.fft`` with the names of arguments of the standard."""

from __future__ import annotations

from typing import Any, Sequence

from .. import Tensor
from .. import fft as _fft


def _of_axis(name: str) -> Any:
    call = getattr(_fft, name)

    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        made: Tensor = call(x, n, axis, norm)
        return made

    return _named(function, call)


def _of_axes(name: str) -> Any:
    call = getattr(_fft, name)

    def function(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Tensor:
        made: Tensor = call(x, s, axes, norm)
        return made

    return _named(function, call)


def _named(function: Any, call: Any) -> Any:
    function.__name__ = function.__qualname__ = call.__name__
    function.__doc__ = call.__doc__
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_of_axis, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_of_axes, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of ``fft`` of ``n`` samples at distance ``d``."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of ``rfft`` of ``n`` samples at distance ``d``."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Moves the frequency 0 to the middle."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of ``fftshift``."""
    return _fft.ifftshift(x, axes)

"""Discrete Fourier transforms with the names and arguments of ``torch.fft``; they need the library ``keyway-fft``.

``n`` or ``s`` gives the lengths of the signal, which is cut or padded with zeros to them. ``norm`` is ``"backward"`` (the inverse is
divided by the length), ``"ortho"`` (both by its square root) or ``"forward"``.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ._keyway import Tensor, arange, call_op

_NORMS = ("backward", "ortho", "forward")
# The factor of a transform in one direction is that of the other one under the opposite name.
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _norm(norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in _NORMS:
        raise ValueError(f"expected norm to be one of {', '.join(_NORMS)}, got {norm!r}")
    return norm


def _resized(x: Tensor, sizes: Sequence[int | None], dims: Sequence[int]) -> Tensor:
    """The signal with these lengths, ``None`` for its own."""
    for size, dim in zip(sizes, dims):
        if size is None:
            continue
        if size < 1:
            raise ValueError(f"expected lengths of at least 1, got {size}")
        missing = size - x.size(dim)
        if missing < 0:
            x = x.narrow(dim, 0, size)
        elif missing > 0:
            at = dim % x.ndim
            x = x.constant_pad([0, 0] * (x.ndim - 1 - at) + [0, missing])
    return x


def _dims(x: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None) -> tuple[list[int | None], list[int]]:
    """The lengths and dimensions of a transform over several dimensions."""
    if dim is None:
        dim = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    sizes: list[int | None] = [None] * len(dim) if s is None else list(s)
    if len(sizes) != len(dim):
        raise ValueError(f"expected one length for each of {len(dim)} dimensions, got {len(sizes)}")
    return sizes, list(dim)


def _complex(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        return x
    real = x if x.dtype.is_floating_point else x.float()
    made: Tensor = call_op("complex", (real, real * 0))
    return made


def _real(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        raise TypeError(f"expected a real signal, got {x.dtype.name}")
    return x if x.dtype.is_floating_point else x.float()


def _c2c(x: Tensor, sizes: Sequence[int | None], dims: list[int], norm: str | None, forward: bool) -> Tensor:
    made: Tensor = call_op("fft_c2c", (_resized(_complex(x), sizes, dims), dims, _norm(norm), forward))
    return made


def _r2c(x: Tensor, sizes: Sequence[int | None], dims: list[int], norm: str | None) -> Tensor:
    made: Tensor = call_op("fft_r2c", (_resized(_real(x), sizes, dims), dims, _norm(norm), True))
    return made


def _c2r(x: Tensor, sizes: Sequence[int | None], dims: list[int], norm: str | None) -> Tensor:
    last = sizes[-1] if sizes[-1] is not None else 2 * (x.size(dims[-1]) - 1)
    if last < 1:
        raise ValueError(f"expected a length of at least 1, got {last}; give `n`")
    half = [*sizes[:-1], last // 2 + 1]
    made: Tensor = call_op("fft_c2r", (_resized(_complex(x), half, dims), dims, _norm(norm), last))
    return made


def fft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of a dimension."""
    return _c2c(x, [n], [dim], norm, True)


def ifft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``fft``."""
    return _c2c(x, [n], [dim], norm, False)


def rfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of the transform of a real signal, ``n // 2 + 1`` numbers."""
    return _r2c(x, [n], [dim], norm)


def irfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``rfft``; the length is even if ``n`` is not given."""
    return _c2r(x, [n], [dim], norm)


def hfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real transform of a signal whose second half is the conjugate of the first."""
    return _c2r(_complex(x).conj(), [n], [dim], _OPPOSITE[_norm(norm)])


def ihfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``hfft``."""
    return _r2c(x, [n], [dim], _OPPOSITE[_norm(norm)]).conj()


Transform = Callable[..., Tensor]


def fftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The transform of several dimensions, all if none are given."""
    return _c2c(x, *_dims(x, s, dim), norm, True)


def ifftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The inverse of ``fftn``."""
    return _c2c(x, *_dims(x, s, dim), norm, False)


def rfftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The half of the transform of a real signal by its last dimension."""
    return _r2c(x, *_dims(x, s, dim), norm)


def irfftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The inverse of ``rfftn``."""
    return _c2r(x, *_dims(x, s, dim), norm)


def _of_images(transform: Transform) -> Transform:
    def function(
        x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Tensor:
        return transform(x, s, dim, norm)

    function.__doc__ = f"``{transform.__name__}`` of the last two dimensions."
    return function


fft2, ifft2, rfft2, irfft2 = (_of_images(transform) for transform in (fftn, ifftn, rfftn, irfftn))


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of ``fft`` of ``n`` samples at distance ``d``."""
    at = arange(n, **options)
    signed: Tensor = call_op("where", (at < (n + 1) // 2, at, at - n))
    return signed / (n * d)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of ``rfft`` of ``n`` samples at distance ``d``."""
    return arange(n // 2 + 1, **options) / (n * d)


def _shifted(x: Tensor, dim: int | Sequence[int] | None, forward: bool) -> Tensor:
    dims = [dim] if isinstance(dim, int) else list(range(x.ndim)) if dim is None else list(dim)
    shifts = [x.size(d) // 2 if forward else -(x.size(d) // 2) for d in dims]
    made: Tensor = call_op("roll", (x, shifts, dims))
    return made


def fftshift(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Moves the frequency 0 to the middle."""
    return _shifted(x, dim, True)


def ifftshift(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of ``fftshift``."""
    return _shifted(x, dim, False)

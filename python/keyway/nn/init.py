"""Initial values of parameters: each function fills a tensor and returns it."""

from __future__ import annotations

import math
from typing import Any

from .._keyway import (
    Generator,
    Tensor,
    _init_kaiming,
    _init_orthogonal,
    _init_sparse,
    _init_trunc_normal,
    _init_xavier,
)
from .._random import drawn
from ..autograd import no_grad


def _fill(tensor: Tensor, values: Tensor) -> Tensor:
    with no_grad():
        tensor.copy_(values)
    return tensor


def _at_least_two(name: str, tensor: Tensor) -> None:
    if tensor.ndim < 2:
        raise ValueError(f"{name}: expected a tensor of at least 2 dimensions, got {tensor.ndim}")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain of an activation, which preserves the variance."""
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    linear = ("linear", "sigmoid", *(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)))
    if nonlinearity in linear:
        return 1.0
    if nonlinearity not in gains:
        raise ValueError(f"calculate_gain: expected one of {', '.join([*gains, 'leaky_relu', *linear])}, got {nonlinearity}")
    return gains[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniformly distributed numbers from ``a`` to ``b``."""
    with no_grad():
        made: Tensor = drawn(generator, tensor.uniform_, a, b)
    return made


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normally distributed numbers."""
    with no_grad():
        made: Tensor = drawn(generator, tensor.normal_, mean, std)
    return made


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value."""
    with no_grad():
        made: Tensor = tensor.fill_(val)
    return made


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ValueError(f"eye_: expected a matrix, got {tensor.ndim} dimensions")
    zeros_(tensor)
    with no_grad():
        for index in range(min(tensor.shape)):
            tensor[index, index] = 1.0
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Filters that return their channel, for convolutions of one to three dimensions."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: expected filters of 3 to 5 dimensions for {groups} groups, got {tuple(tensor.shape)}")
    zeros_(tensor)
    rows, middle = tensor.shape[0] // groups, tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        for group in range(groups):
            for index in range(min(rows, tensor.shape[1])):
                tensor[(group * rows + index, index, *middle)] = 1.0
    return tensor


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Normally distributed numbers from ``a`` to ``b``."""
    return _fill(tensor, drawn(generator, _init_trunc_normal, tensor.shape, mean, std, a, b))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform within ``gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio 2010)."""
    _at_least_two("xavier_uniform_", tensor)
    return _fill(tensor, drawn(generator, _init_xavier, tensor.shape, gain, True))


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal of standard deviation ``gain * sqrt(2 / (fan_in + fan_out))`` (the same)."""
    _at_least_two("xavier_normal_", tensor)
    return _fill(tensor, drawn(generator, _init_xavier, tensor.shape, gain, False))


def _kaiming(
    name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str, uniform: bool, generator: Generator | None
) -> Tensor:
    _at_least_two(name, tensor)
    if nonlinearity == "leaky_relu":
        return _fill(tensor, drawn(generator, _init_kaiming, tensor.shape, a, mode, uniform))
    # A slope of 1 is the linear function, of gain 1.
    return _fill(tensor, drawn(generator, _init_kaiming, tensor.shape, 1.0, mode, uniform) * calculate_gain(nonlinearity, a))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Uniform within ``gain * sqrt(3 / fan)`` (He et al. 2015)."""
    return _kaiming("kaiming_uniform_", tensor, a, mode, nonlinearity, True, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Normal of standard deviation ``gain / sqrt(fan)`` (the same)."""
    return _kaiming("kaiming_normal_", tensor, a, mode, nonlinearity, False, generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """A matrix with orthonormal rows or columns, times ``gain`` (Saxe et al. 2014)."""
    _at_least_two("orthogonal_", tensor)
    return _fill(tensor, drawn(generator, _init_orthogonal, tensor.shape, gain))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normally distributed numbers, with a share of zeros in each column (Martens 2010)."""
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: expected a matrix, got {tensor.ndim} dimensions")
    return _fill(tensor, drawn(generator, _init_sparse, tensor.shape, sparsity, std))


def __getattr__(name: str) -> Any:
    """Names without the underscore are those of former versions of PyTorch."""
    if f"{name}_" in globals():
        raise AttributeError(f"nn.init has no `{name}`; its functions fill a tensor in place: `{name}_`")
    raise AttributeError(f"module `keyway.nn.init` has no attribute `{name}`")

"""Linear layers, and changes of shape."""

from __future__ import annotations

import math
from typing import Any, Sequence

from .._keyway import Tensor, empty
from . import functional as F
from .init import uniform_
from .module import Module, Parameter


def uniform_parameter(bound: float, *shape: int) -> Any:
    """A parameter of numbers between ``-bound`` and ``bound``."""
    return Parameter(uniform_(empty(shape), -bound, bound))


class Identity(Module):
    """The input; arguments of the constructor are ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """``x @ weight.T + bias``, initialised uniformly within ``1 / sqrt(in_features)``."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = uniform_parameter(0.0, out_features, in_features)
        self.register_parameter("bias", uniform_parameter(0.0, out_features) if bias else None)
        self.reset_parameters()
        self._place(device, dtype)

    def reset_parameters(self) -> None:
        """Sets the parameters to new initial values."""
        bound = 1.0 / math.sqrt(max(self.in_features, 1))
        for parameter in self.parameters(recurse=False):
            uniform_(parameter, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``x1 @ weight @ x2 + bias`` for each result."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1.0 / math.sqrt(max(in1_features, 1))
        self.weight = uniform_parameter(bound, out_features, in1_features, in2_features)
        self.register_parameter("bias", uniform_parameter(bound, out_features) if bias else None)
        self._place(device, dtype)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)


class Flatten(Module):
    """Joins dimensions into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits a dimension into several."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, list(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

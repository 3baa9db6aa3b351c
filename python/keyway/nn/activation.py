"""Activations."""

from __future__ import annotations

from typing import Any

from .._keyway import Tensor, full
from . import functional as F
from .module import Module, Parameter
from .of_function import OfFunction


class _Activation(OfFunction):
    """An activation; ``inplace`` overwrites the input."""

    def __init__(self, *values: Any, inplace: bool = False, **named: Any) -> None:
        if len(values) == len(self._options) + 1:
            *values, inplace = values  # type: ignore[assignment]
        super().__init__(*values, **named)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        made = getattr(F, self._function)(input, **self._arguments())
        return input.copy_(made) if self.inplace else made

    def extra_repr(self) -> str:
        options = [super().extra_repr(), "inplace=True" if self.inplace else ""]
        return ", ".join(filter(None, options))


class ReLU(_Activation):
    """The larger of 0 and each element."""

    _function = "relu"


class ReLU6(_Activation):
    """The input clamped to 0 to 6."""

    _function = "relu6"


class LeakyReLU(_Activation):
    """``x`` above 0, ``negative_slope * x`` below."""

    _function = "leaky_relu"
    _options = {"negative_slope": 0.01}


class ELU(_Activation):
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below (Clevert et al. 2016)."""

    _function = "elu"
    _options = {"alpha": 1.0}


class CELU(_Activation):
    """``x`` above 0, ``alpha * (exp(x / alpha) - 1)`` below (Barron 2017)."""

    _function = "celu"
    _options = {"alpha": 1.0}


class SELU(_Activation):
    """The self-normalising ``elu`` (Klambauer et al. 2017)."""

    _function = "selu"


class SiLU(_Activation):
    """``x * sigmoid(x)``."""

    _function = "silu"


class Mish(_Activation):
    """``x * tanh(softplus(x))`` (Misra 2019)."""

    _function = "mish"


class Hardswish(_Activation):
    """``x * relu6(x + 3) / 6`` (Howard et al. 2019)."""

    _function = "hardswish"


class Hardsigmoid(_Activation):
    """``relu6(x + 3) / 6``."""

    _function = "hardsigmoid"


class Hardtanh(_Activation):
    """The input clamped to ``min_val`` to ``max_val``."""

    _function = "hardtanh"
    _options = {"min_val": -1.0, "max_val": 1.0}


class Threshold(_Activation):
    """Elements of at most ``threshold`` set to ``value``."""

    _function = "threshold"
    _options = {"threshold": ..., "value": ...}


class GELU(OfFunction):
    """The Gaussian error linear unit (Hendrycks and Gimpel 2016)."""

    _function = "gelu"
    _options = {"approximate": "none"}


class Sigmoid(OfFunction):
    """The logistic function."""

    _function = "sigmoid"


class LogSigmoid(OfFunction):
    """The logarithm of the logistic function."""

    _function = "logsigmoid"


class Tanh(OfFunction):
    """The hyperbolic tangent."""

    _function = "tanh"


class Tanhshrink(OfFunction):
    """``x - tanh(x)``."""

    _function = "tanhshrink"


class Softsign(OfFunction):
    """``x / (1 + abs(x))``."""

    _function = "softsign"


class Softplus(OfFunction):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` above the threshold."""

    _function = "softplus"
    _options = {"beta": 1.0, "threshold": 20.0}


class Softshrink(OfFunction):
    """The input moved to 0 by ``lambd``."""

    _function = "softshrink"
    _options = {"lambd": 0.5}


class Hardshrink(OfFunction):
    """Elements from ``-lambd`` to ``lambd`` set to 0."""

    _function = "hardshrink"
    _options = {"lambd": 0.5}


class Softmax(OfFunction):
    """The exponentials of a dimension divided by their sum."""

    _function = "softmax"
    _options = {"dim": None}


class LogSoftmax(OfFunction):
    """The logarithm of the softmax."""

    _function = "log_softmax"
    _options = {"dim": None}


class Softmin(OfFunction):
    """The softmax of the negative elements."""

    _function = "softmin"
    _options = {"dim": None}


class GLU(OfFunction):
    """One half of a dimension times the logistic function of the other (Dauphin et al. 2017)."""

    _function = "glu"
    _options = {"dim": -1}


class Softmax2d(Module):
    """The softmax over the channels of images."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, -3)


class PReLU(Module):
    """``x`` above 0, ``weight * x`` below, with a learned weight (He et al. 2015)."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init))
        self._place(device, dtype)

    def forward(self, input: Tensor) -> Any:
        return F.prelu(input, self.weight)

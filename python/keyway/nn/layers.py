"""Layers and losses as modules."""

from __future__ import annotations

import math
from typing import Sequence

from .._keyway import Tensor, call_op, ones, rand, randn, tensor, zeros
from ..autograd import no_grad
from . import functional as F
from .module import Module, Parameter


def _uniform(bound: float, *shape: int) -> Tensor:
    """A parameter of numbers between ``-bound`` and ``bound``."""
    with no_grad():
        made: Tensor = Parameter((rand(shape) * 2.0 - 1.0) * bound)
    return made


def _sizes(shape: int | Sequence[int]) -> list[int]:
    """A shape that may be given as one number."""
    return [shape] if isinstance(shape, int) else list(shape)


class Linear(Module):
    """``x @ weight.T + bias``, initialised uniformly within ``1 / sqrt(in_features)``."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bound = 1.0 / math.sqrt(max(in_features, 1))
        self.weight = _uniform(bound, out_features, in_features)
        self.bias = _uniform(bound, out_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Conv2d(Module):
    """Cross-correlation of images with learned filters, initialised uniformly within ``1 / sqrt(fan_in)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        rows, columns = F._pair(kernel_size)
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"Conv2d: expected channels that {groups} groups divide, got {in_channels} and {out_channels}")
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        bound = 1.0 / math.sqrt(max(in_channels // groups * rows * columns, 1))
        self.weight = _uniform(bound, out_channels, in_channels // groups, rows, columns)
        self.bias = _uniform(bound, out_channels) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        out_channels, channels, *kernel = self.weight.shape
        return f"{channels * self.groups}, {out_channels}, kernel_size={tuple(kernel)}, stride={self.stride}"


class Embedding(Module):
    """A table of vectors, one for each index, initialised from the normal distribution."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        weight = randn(num_embeddings, embedding_dim)
        if padding_idx is not None:
            weight[padding_idx] = 0.0
        self.weight = Parameter(weight)

    def forward(self, indices: Tensor) -> Tensor:
        return F.embedding(indices, self.weight, self.padding_idx)


class LayerNorm(Module):
    """Normalises the last dimensions, then scales and shifts."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.weight, self.bias = Parameter(ones(self.normalized_shape)), Parameter(zeros(self.normalized_shape))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class GroupNorm(Module):
    """Normalises groups of channels, then scales and shifts each channel (Wu and He 2018)."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.num_groups, self.eps = num_groups, eps
        self.weight, self.bias = Parameter(ones(num_channels)), Parameter(zeros(num_channels))

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = call_op("group_norm", (x, self.num_groups, self.weight, self.bias, self.eps))
        return made


class RMSNorm(Module):
    """Divides the last dimensions by their root mean square, then scales (Zhang and Sennrich 2019)."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.weight = Parameter(ones(self.normalized_shape))

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = call_op("rms_norm", (x, self.normalized_shape, self.weight, self.eps))
        return made


class BatchNorm2d(Module):
    """Normalises each channel over the batch while training, by running statistics otherwise."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = Parameter(ones(num_features)), Parameter(zeros(num_features))
        self.register_buffer("running_mean", zeros(num_features))
        self.register_buffer("running_var", ones(num_features))
        self.register_buffer("num_batches_tracked", tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.num_batches_tracked += 1
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(x, mean, var, self.weight, self.bias, self.training, self.momentum, self.eps)


class BatchNorm1d(BatchNorm2d):
    """``BatchNorm2d`` of sequences: the op takes any number of dimensions behind the channels."""


class BatchNorm3d(BatchNorm2d):
    """``BatchNorm2d`` of volumes."""


class Identity(Module):
    """The input; arguments of the constructor are ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class Dropout(Module):
    """Sets elements to 0 with probability ``p`` while training."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"Dropout: expected a probability from 0 to 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Flatten(Module):
    """Joins dimensions into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)


class MaxPool2d(Module):
    """The largest element of each window."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.options = kernel_size, stride, padding, dilation, ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, *self.options)


class AvgPool2d(Module):
    """The mean of each window."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        self.options = kernel_size, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(x, *self.options)


class AdaptiveAvgPool2d(Module):
    """The means of as many windows as the result has pixels."""

    def __init__(self, output_size: int | Sequence[int]) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(x, self.output_size)


class _OfOp(Module):
    """A module that calls an op with options, which are numbers by the op's names."""

    _op: str
    _defaults: dict[str, float] = {}

    def __init__(self, *values: float, inplace: bool = False, **options: float) -> None:
        super().__init__()
        name = type(self).__name__
        if len(values) > len(self._defaults):
            raise TypeError(f"{name}: expected at most {len(self._defaults)} options, got {len(values)}")
        options.update(zip(self._defaults, values))
        unknown = sorted(options.keys() - self._defaults.keys())
        if unknown:
            raise TypeError(f"{name}: unknown options {', '.join(unknown)}")
        self.inplace, self.options = inplace, {**self._defaults, **options}

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = call_op(self._op, (x,), dict(self.options), self.inplace)
        return made

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.options.items())


class ReLU(_OfOp):
    """The larger of 0 and each element."""

    _op = "relu"


class GELU(_OfOp):
    """The Gaussian error linear unit (Hendrycks and Gimpel 2016)."""

    _op = "gelu"


class SiLU(_OfOp):
    """``x * sigmoid(x)``."""

    _op = "silu"


class Tanh(_OfOp):
    """The hyperbolic tangent."""

    _op = "tanh"


class Sigmoid(_OfOp):
    """The logistic function."""

    _op = "sigmoid"


class LeakyReLU(_OfOp):
    """``x`` above 0, ``negative_slope * x`` below."""

    _op = "leaky_relu"
    _defaults = {"negative_slope": 0.01}


class ELU(_OfOp):
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below (Clevert et al. 2016)."""

    _op = "elu"
    _defaults = {"alpha": 1.0}


class Softplus(_OfOp):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` above the threshold."""

    _op = "softplus"
    _defaults = {"beta": 1.0, "threshold": 20.0}


class _OfDimension(Module):
    """A module that calls an op of one dimension."""

    _op: str

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = call_op(self._op, (x, self.dim))
        return made


class Softmax(_OfDimension):
    """The exponentials of a dimension divided by their sum."""

    _op = "softmax"


class LogSoftmax(_OfDimension):
    """The logarithm of the softmax."""

    _op = "log_softmax"


class CrossEntropyLoss(Module):
    """``functional.cross_entropy`` with fixed options."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.ignore_index, self.reduction, self.label_smoothing = ignore_index, reduction, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class _Loss(Module):
    """A loss of an input and a target by the op of its name."""

    _op: str

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        made: Tensor = call_op(self._op, (input, target), {"reduction": self.reduction})
        return made


class MSELoss(_Loss):
    """The mean of the squared differences."""

    _op = "mse_loss"


class L1Loss(_Loss):
    """The mean of the absolute differences."""

    _op = "l1_loss"


class SmoothL1Loss(_Loss):
    """Squares of small differences, absolute values of large ones (Girshick 2015)."""

    _op = "smooth_l1_loss"


class NLLLoss(_Loss):
    """Minus the logarithm of the probability of the target's class, from logarithms of probabilities."""

    _op = "nll_loss"


class BCELoss(_Loss):
    """The binary cross entropy of probabilities."""

    _op = "binary_cross_entropy"


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of logits."""

    _op = "binary_cross_entropy_with_logits"

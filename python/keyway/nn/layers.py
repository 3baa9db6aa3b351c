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
        return Parameter((rand(shape) * 2.0 - 1.0) * bound)


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
        self.normalized_shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.eps = eps
        self.weight, self.bias = Parameter(ones(self.normalized_shape)), Parameter(zeros(self.normalized_shape))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class BatchNorm2d(Module):
    """Normalises each channel of images over the batch while training, by running statistics otherwise."""

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


class Dropout(Module):
    """Sets elements to 0 with probability ``p`` while training."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
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
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding)


def _activation(name: str, op: str, doc: str) -> type[Module]:
    def forward(self: Module, x: Tensor) -> Tensor:
        made: Tensor = call_op(op, (x,))
        return made

    return type(name, (Module,), {"forward": forward, "__doc__": doc, "__module__": __name__})


ReLU = _activation("ReLU", "relu", "The larger of 0 and each element.")
GELU = _activation("GELU", "gelu", "The Gaussian error linear unit.")
SiLU = _activation("SiLU", "silu", "``x * sigmoid(x)``.")
Tanh = _activation("Tanh", "tanh", "The hyperbolic tangent.")
Sigmoid = _activation("Sigmoid", "sigmoid", "The logistic function.")


class Softmax(Module):
    """The exponentials of a dimension divided by their sum."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self.dim)


class CrossEntropyLoss(Module):
    """``functional.cross_entropy`` with fixed options."""

    def __init__(self, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.ignore_index, self.reduction, self.label_smoothing = ignore_index, reduction, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, None, self.ignore_index, self.reduction, self.label_smoothing)


class MSELoss(Module):
    """The mean of the squared differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, self.reduction)

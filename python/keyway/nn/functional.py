"""Functions of layers and losses, with the arguments of ``torch.nn.functional``."""

from __future__ import annotations

from typing import Any, Sequence

from .._keyway import Tensor, call_op, rand



def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def _op(name: str, *args: Any, **kwargs: Any) -> Tensor:
    made: Tensor = call_op(name, args, kwargs or None)
    return made


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``. Shapes: (..., in), (out, in), (out,)."""
    return _op("linear", input, weight, bias)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of images. Shapes: (batch, in, rows, columns), (out, in / groups, rows, columns), (out,)."""
    return _op("conv", input, weight, bias, _pair(stride), _pair(padding), _pair(dilation), groups)


def max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of each window; the stride is the window's size if none is given."""
    kernel = _pair(kernel_size)
    step = kernel if stride is None else _pair(stride)
    values: Tensor = call_op("max_pool", (input, kernel, step, _pair(padding), _pair(dilation), ceil_mode))[0]
    return values


def relu(input: Tensor) -> Tensor:
    """The larger of 0 and each element."""
    return _op("relu", input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``x`` times the distribution function of the normal distribution at ``x``; ``approximate="tanh"`` by tanh."""
    return _op("gelu", input, approximate=approximate)


def silu(input: Tensor) -> Tensor:
    """``x * sigmoid(x)``."""
    return _op("silu", input)


def softmax(input: Tensor, dim: int) -> Tensor:
    """The exponentials of a dimension divided by their sum."""
    return _op("softmax", input, dim)


def log_softmax(input: Tensor, dim: int) -> Tensor:
    """The logarithm of ``softmax``."""
    return _op("log_softmax", input, dim)


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Sets elements to 0 with probability ``p`` while training, and divides the others by ``1 - p``."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: expected a probability from 0 to 1, got {p}")
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input * 0.0
    kept = rand(input.shape, dtype=input.dtype, device=input.device) >= p
    return input * kept / (1.0 - p)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises the last dimensions to mean 0 and variance 1, then scales and shifts (Ba et al. 2016)."""
    return _op("layer_norm", input, list(normalized_shape), weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel over the batch, or by running statistics (Ioffe and Szegedy 2015)."""
    return _op("batch_norm", input, running_mean, running_var, weight, bias, training, momentum, eps)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of ``weight`` at the indices ``input``."""
    return _op("embedding", weight, input, padding_idx)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the logarithm of the softmax of the target's class, or of the mean by the target's probabilities."""
    return _op("cross_entropy", input, target, weight, ignore_index, label_smoothing, reduction)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The squared differences, averaged, summed, or as they are."""
    return _op("mse_loss", input, target, reduction)

"""Functions of layers and losses, with the arguments of ``torch.nn.functional``.

A function that is not written here is that of the Rust side: an op, or a combination of ops.
"""

from __future__ import annotations

import warnings
from typing import Any, Sequence

from .._keyway import Tensor, call_op, composed, tensors
from .._ops import function_of


def _op(name: str, *args: Any, **kwargs: Any) -> Tensor:
    made: Tensor = call_op(name, args, kwargs or None)
    return made


def _refuse_former(name: str, size_average: Any, reduce: Any) -> None:
    """Refuses the arguments of former versions of PyTorch that ``reduction`` replaced."""
    if size_average is not None or reduce is not None:
        raise TypeError(f'{name}: pass `reduction="mean"`, "sum" or "none" instead of `size_average` and `reduce`')


def _same_shape(name: str, input: Tensor, target: Tensor, strict: bool = False) -> None:
    """Warns of shapes that are broadcast, which is rarely what a loss is meant to do, or refuses them."""
    if input.shape != target.shape:
        message = f"{name}: expected a target of the input's shape {tuple(input.shape)}, got {tuple(target.shape)}"
        if strict:
            raise ValueError(message)
        warnings.warn(f"{message}; they are broadcast", stacklevel=3)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``. Shapes: (..., in), (out, in), (out,)."""
    return _op("linear", input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight @ input2`` for each result, plus ``bias``. Shapes: (..., a), (..., b), (out, a, b), (out,)."""
    made = _op("einsum", "...a,oab,...b->...o", [input1, weight, input2])
    return made if bias is None else made + bias


def _activation(name: str, input: Tensor, inplace: bool, *args: Any, **kwargs: Any) -> Tensor:
    made: Tensor = call_op(name, (input, *args), kwargs or None, inplace)
    return made


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The larger of 0 and each element."""
    return _activation("relu", input, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` above 0, ``negative_slope * x`` below."""
    return _activation("leaky_relu", input, inplace, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below."""
    return _activation("elu", input, inplace, alpha)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``x`` times the distribution function of the normal distribution at ``x``; ``approximate="tanh"`` by tanh."""
    return _op("gelu", input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return _activation("silu", input, inplace)


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The exponentials of a dimension divided by their sum."""
    return _op("softmax", input if dtype is None else input.to(dtype=dtype), _dimension("softmax", dim))


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The logarithm of ``softmax``."""
    return _op("log_softmax", input if dtype is None else input.to(dtype=dtype), _dimension("log_softmax", dim))


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """``softmax`` of the negative elements."""
    return softmax(-input, dim, dtype)


def _dimension(name: str, dim: int | None) -> int:
    if dim is None:
        raise TypeError(f"{name}: expected a dimension; pass `dim=-1` for the last one")
    return dim


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


def normalize(input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12) -> Tensor:
    """The input divided by its norm of order ``p`` along a dimension."""
    return _op("normalize", input, p, dim, eps)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` at the indices ``input``. ``sparse`` makes the gradient of ``weight`` a sparse tensor."""
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError("embedding: `max_norm` and `scale_grad_by_freq` are not supported; call `renorm` on the weight")
    return _op("embedding_sparse" if sparse else "embedding", weight, input, padding_idx)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of the rows of ``weight`` over bags of indices."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError("embedding_bag: `max_norm`, `scale_grad_by_freq` and `sparse` are not supported")
    return _op("embedding_bag", weight, input, offsets, mode, per_sample_weights, include_last_offset, padding_idx)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """``-log(softmax(x))[target]``, or the mean of ``-log(softmax(x))`` weighted by the probabilities of the target."""
    _refuse_former("cross_entropy", size_average, reduce)
    return _op("cross_entropy", input, target, weight, ignore_index, label_smoothing, reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the logarithm of the probability of the target's class, from logarithms of probabilities."""
    _refuse_former("nll_loss", size_average, reduce)
    return _op("nll_loss", input, target, weight, ignore_index, reduction)


def mse_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The squared differences, averaged, summed, or as they are."""
    _refuse_former("mse_loss", size_average, reduce)
    _same_shape("mse_loss", input, target)
    return _op("mse_loss", input, target, reduction)


def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The absolute differences, averaged, summed, or as they are."""
    _refuse_former("l1_loss", size_average, reduce)
    _same_shape("l1_loss", input, target)
    return _op("l1_loss", input, target, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squares of differences below ``beta``, absolute values of others (Girshick 2015)."""
    _refuse_former("smooth_l1_loss", size_average, reduce)
    _same_shape("smooth_l1_loss", input, target)
    return _op("smooth_l1_loss", input, target, beta, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of probabilities."""
    _refuse_former("binary_cross_entropy", size_average, reduce)
    _same_shape("binary_cross_entropy", input, target, strict=True)
    return _op("binary_cross_entropy", input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of logits."""
    _refuse_former("binary_cross_entropy_with_logits", size_average, reduce)
    _same_shape("binary_cross_entropy_with_logits", input, target, strict=True)
    return _op("binary_cross_entropy_with_logits", input, target, weight, pos_weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of a target from logarithms of probabilities."""
    _refuse_former("kl_div", size_average, reduce)
    return _op("kl_div", input, target, log_target, reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The connectionist temporal classification loss (Graves et al. 2006) of ``log_probs``, (steps, batch, classes).

    Lengths are tensors or sequences of ints. Without a batch, ``log_probs`` is (steps, classes).
    """
    alone = log_probs.ndim == 2
    lengths = [_ints(input_lengths), _ints(target_lengths)]
    made: Tensor = composed.ctc_loss(
        log_probs.unsqueeze(1) if alone else log_probs, targets, *lengths, blank, reduction, zero_infinity
    )
    return made.squeeze(0) if alone and made.ndim else made


def _ints(lengths: Any) -> list[int]:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [int(values)] if isinstance(values, int) else [int(value) for value in values]


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A vector for each index, 1 at the index and 0 elsewhere; the classes are counted if -1."""
    return _op("one_hot", input, int(input.max()) + 1 if num_classes == -1 else num_classes)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Adds elements at both ends of the last dimensions: ``pad`` begins with the last dimension."""
    return _op("pad", input, list(pad), mode, 0.0 if value is None else value)


def upsample(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``interpolate``, by its former name."""
    made: Tensor = composed.interpolate(input, *args, **kwargs)
    return made


def __getattr__(name: str) -> Any:
    """Every other function of the Rust side under its own name."""
    function = getattr(composed, name, None) or function_of(name) or getattr(tensors, name, None)
    if function is None or name.startswith("_"):
        raise AttributeError(f"module `keyway.nn.functional` has no attribute `{name}`")
    globals()[name] = function
    return function

"""Layers that normalise."""

from __future__ import annotations

from typing import Any, Sequence

from .._keyway import Tensor, call_op, ones, tensor, zeros
from . import functional as F
from .module import Module, Parameter


def _sizes(shape: int | Sequence[int]) -> list[int]:
    """A shape that may be given as one number."""
    return [shape] if isinstance(shape, int) else list(shape)


def _call(name: str, *args: Any) -> Tensor:
    made: Tensor = call_op(name, args)
    return made


class LayerNorm(Module):
    """Normalises the last dimensions, then scales and shifts (Ba et al. 2016)."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = tuple(_sizes(normalized_shape)), eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", Parameter(ones(self.normalized_shape)) if elementwise_affine else None)
        has_bias = elementwise_affine and bias
        self.register_parameter("bias", Parameter(zeros(self.normalized_shape)) if has_bias else None)
        self._place(device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """Divides the last dimensions by their root mean square, then scales (Zhang and Sennrich 2019)."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = tuple(_sizes(normalized_shape)), eps
        self.register_parameter("weight", Parameter(ones(self.normalized_shape)) if elementwise_affine else None)
        self._place(device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return _call("rms_norm", input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Normalises groups of channels, then scales and shifts each channel (Wu and He 2018)."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: expected channels that {num_groups} groups divide, got {num_channels}")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.register_parameter("weight", Parameter(ones(num_channels)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_channels)) if affine else None)
        self._place(device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return _call("group_norm", input, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Module):
    """Divides each channel by a power of the squares of its neighbours (Krizhevsky et al. 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return _call("local_response_norm", input, self.size, self.alpha, self.beta, self.k)


class _Running(Module):
    """Normalisation by channels with running statistics."""

    _ranks: tuple[int, ...]

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, track: bool, device: str | None, dtype: Any
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track
        self.register_parameter("weight", Parameter(ones(num_features)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_features)) if affine else None)
        self.register_buffer("running_mean", zeros(num_features) if track else None)
        self.register_buffer("running_var", ones(num_features) if track else None)
        self.register_buffer("num_batches_tracked", tensor(0) if track else None)
        self._place(device, dtype)

    def reset_running_stats(self) -> None:
        """Forgets the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.zero_()

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self._ranks:
            ranks = " or ".join(str(rank) for rank in self._ranks)
            raise ValueError(f"{type(self).__name__}: expected an input of {ranks} dimensions, got {input.ndim}")

    def extra_repr(self) -> str:
        options = f"momentum={self.momentum}, affine={self.affine}, track_running_stats={self.track_running_stats}"
        return f"{self.num_features}, eps={self.eps}, {options}"


class _BatchNorm(_Running):
    """Normalises each channel over the batch while training, by running statistics otherwise (Ioffe and Szegedy 2015)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        momentum = self.momentum if self.momentum is not None else 0.0
        if self.training and self.track_running_stats:
            self.num_batches_tracked += 1
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or not self.track_running_stats
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (batch, channels) or (batch, channels, length)."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images, (batch, channels, height, width)."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes, (batch, channels, depth, height, width)."""

    _ranks = (5,)


class _InstanceNorm(_Running):
    """Normalises each channel of each sample (Ulyanov et al. 2016)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        alone = input.ndim == self._ranks[0]
        by_sample = self.training or not self.track_running_stats
        mean, var = self.running_mean, self.running_var
        made = _call(
            "instance_norm",
            input.unsqueeze(0) if alone else input,
            mean,
            var,
            self.weight,
            self.bias,
            by_sample,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return made.squeeze(0) if alone else made


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (batch, channels, length)."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images, (batch, channels, height, width)."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes, (batch, channels, depth, height, width)."""

    _ranks = (4, 5)

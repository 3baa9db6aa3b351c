"""Convolutions and their transposes, in one to three dimensions."""

from __future__ import annotations

import math
from typing import Any, Sequence

from .._keyway import Tensor
from . import functional as F
from .linear import uniform_parameter
from .module import Module, changed

Sizes = int | Sequence[int]


def each(value: Sizes, count: int) -> tuple[int, ...]:
    """One value for each dimension."""
    return (value,) * count if isinstance(value, int) else tuple(value)


class _Conv(Module):
    """A convolution with learned filters, initialised uniformly within ``1 / sqrt(fan_in)``."""

    _dims: int
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: expected channels that {groups} groups divide, got {in_channels} and {out_channels}")
        modes = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}
        if padding_mode not in modes or (self._transposed and padding_mode != "zeros"):
            raise ValueError(f"{name}: expected `padding_mode` to be one of {', '.join(modes)}, got {padding_mode}")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = each(kernel_size, self._dims), each(stride, self._dims)
        self.dilation = each(dilation, self._dims)
        self.padding: Any = padding if isinstance(padding, str) else each(padding, self._dims)
        self.padding_mode, self._mode = padding_mode, modes[padding_mode]
        channels = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        bound = 1.0 / math.sqrt(max(channels[1] * math.prod(self.kernel_size), 1))
        self.weight = uniform_parameter(bound, *channels, *self.kernel_size)
        self.register_parameter("bias", uniform_parameter(bound, out_channels) if bias else None)
        self._place(device, dtype)

    def _padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input with its border by ``padding_mode``, and the padding that is left."""
        if self.padding_mode == "zeros" or self.padding == "valid":
            return input, self.padding
        widths: list[int] = []
        for index in reversed(range(self._dims)):
            if self.padding == "same":
                whole = self.dilation[index] * (self.kernel_size[index] - 1)
                widths += [whole // 2, whole - whole // 2]
            else:
                widths += [self.padding[index], self.padding[index]]
        return F.pad(input, widths, self._mode), 0

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self._padded(input)
        function = getattr(F, f"conv{self._dims}d")
        made: Tensor = function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return made

    def extra_repr(self) -> str:
        channels = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        nothing, ones = (0,) * self._dims, (1,) * self._dims
        return channels + changed(
            padding=(self.padding, nothing),
            dilation=(self.dilation, ones),
            output_padding=(getattr(self, "output_padding", nothing), nothing),
            groups=(self.groups, 1),
            bias=(self.bias is not None, True),
            padding_mode=(self.padding_mode, "zeros"),
        )


class Conv1d(_Conv):
    """Cross-correlation of sequences, (batch, channels, length)."""

    _dims = 1


class Conv2d(_Conv):
    """Cross-correlation of images, (batch, channels, height, width)."""

    _dims = 2


class Conv3d(_Conv):
    """Cross-correlation of volumes, (batch, channels, depth, height, width)."""

    _dims = 3


class _ConvTranspose(_Conv):
    """The transpose of a convolution."""

    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self.output_padding = each(output_padding, self._dims)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding
        if output_size is not None:
            sizes = list(output_size)[-self._dims :]
            extra = tuple(
                size - ((before - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1)
                for size, before, stride, padding, dilation, kernel in zip(
                    sizes, input.shape[-self._dims :], self.stride, self.padding, self.dilation, self.kernel_size
                )
            )
        function = getattr(F, f"conv_transpose{self._dims}d")
        made: Tensor = function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
        return made


class ConvTranspose1d(_ConvTranspose):
    """The transpose of ``Conv1d``."""

    _dims = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of ``Conv2d``."""

    _dims = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of ``Conv3d``."""

    _dims = 3

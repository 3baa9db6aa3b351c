"""Changes of the resolution of images, and their windows."""

from __future__ import annotations

from typing import Any

from .._keyway import Tensor
from . import functional as F
from .module import Module
from .of_function import OfFunction


_UNFOLD: dict[str, Any] = {"kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1}


class Upsample(OfFunction):
    """Images of another size."""

    _function = "interpolate"
    _options = {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": None}


class UpsamplingNearest2d(Module):
    """Images of another size by the nearest pixel."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__()
        self.size, self.scale_factor = size, scale_factor

    def forward(self, input: Tensor) -> Any:
        return F.interpolate(input, self.size, self.scale_factor, "nearest")


class UpsamplingBilinear2d(UpsamplingNearest2d):
    """Images of another size by bilinear interpolation with aligned corners."""

    def forward(self, input: Tensor) -> Any:
        return F.interpolate(input, self.size, self.scale_factor, "bilinear", True)


class Unfold(OfFunction):
    """The windows of images as columns."""

    _function = "unfold"
    _options = _UNFOLD


class Fold(OfFunction):
    """Images that are the sums of windows, which are columns."""

    _function = "fold"
    _options = {"output_size": ..., **_UNFOLD}


class PixelShuffle(OfFunction):
    """Channels as pixels of larger images (Shi et al. 2016)."""

    _function = "pixel_shuffle"
    _options = {"upscale_factor": ...}


class PixelUnshuffle(OfFunction):
    """Pixels as channels of smaller images."""

    _function = "pixel_unshuffle"
    _options = {"downscale_factor": ...}


class ChannelShuffle(OfFunction):
    """Channels of several groups in turn (Zhang et al. 2018)."""

    _function = "channel_shuffle"
    _options = {"groups": ...}

"""Dropout."""

from __future__ import annotations

from typing import Any

from .._keyway import Tensor
from . import functional as F
from .module import Module


class _Dropout(Module):
    """Dropout while training."""

    _function: str

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{type(self).__name__}: expected a probability from 0 to 1, got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Any:
        made = getattr(F, self._function)(input, self.p, self.training)
        return input.copy_(made) if self.inplace and made is not input else made

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Sets elements to 0 with probability ``p`` while training, and divides the others by ``1 - p``."""

    _function = "dropout"


class Dropout1d(_Dropout):
    """Dropout of whole channels of sequences."""

    _function = "dropout1d"


class Dropout2d(_Dropout):
    """Dropout of whole channels of images."""

    _function = "dropout2d"


class Dropout3d(_Dropout):
    """Dropout of whole channels of volumes."""

    _function = "dropout3d"


class AlphaDropout(_Dropout):
    """Dropout that preserves mean and variance behind ``SELU``."""

    _function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels."""

    _function = "feature_alpha_dropout"

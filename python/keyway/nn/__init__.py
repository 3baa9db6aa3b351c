"""Layers and losses with the names, arguments and parameter names of PyTorch."""

from . import functional
from .layers import (
    GELU,
    BatchNorm2d,
    Conv2d,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    LayerNorm,
    Linear,
    MaxPool2d,
    MSELoss,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from .module import Module, ModuleList, Parameter, Sequential

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("layers", "module")]

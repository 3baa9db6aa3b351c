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

__all__ = [
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "functional",
]

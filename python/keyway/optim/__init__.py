"""Optimisers and schedules of learning rates, with the names, arguments and update rules of PyTorch."""

from typing import NoReturn

from . import lr_scheduler
from .algorithms import SGD, Adagrad, Adam, AdamW, RMSprop, SparseAdam
from .optimizer import Optimizer

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "SparseAdam", "lr_scheduler"]

# Optimisers of PyTorch that are not here, and what comes nearest.
_OTHERS = {
    "ASGD": "SGD",
    "Adadelta": "RMSprop or Adagrad",
    "Adafactor": "AdamW",
    "Adamax": "Adam",
    "LBFGS": "Adam, or SGD with nesterov",
    "Muon": "AdamW",
    "NAdam": "Adam",
    "RAdam": "Adam with a schedule that begins low",
    "Rprop": "RMSprop",
}


def __getattr__(name: str) -> NoReturn:
    if name in _OTHERS:
        raise AttributeError(f"there is no optimiser `{name}`; use {_OTHERS[name]}, or derive a class from `optim.Optimizer`")
    raise AttributeError(f"module `keyway.optim` has no attribute `{name}`")

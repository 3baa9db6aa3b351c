"""Functions that draw random numbers, with PyTorch's argument ``generator``."""

from __future__ import annotations

import functools
from typing import Any, Callable

from . import _functions, _keyway
from ._keyway import Generator, Tensor


def drawn(generator: Generator | None, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function whose random numbers come from a generator."""
    if generator is None:
        return function(*args, **kwargs)
    if not isinstance(generator, Generator):
        raise TypeError(f"expected `generator` to be a Generator, got {type(generator).__name__}")
    return generator._call(function, *args, **kwargs)


def _with_generator(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, generator: Generator | None = None, **kwargs: Any) -> Any:
        return drawn(generator, function, *args, **kwargs)

    return called


FUNCTIONS = ("normal", "rand", "rand_like", "randint", "randn", "randn_like", "randperm")
METHODS = ("bernoulli_", "exponential_", "normal_", "random_", "uniform_")


def install(namespace: dict[str, Any]) -> None:
    """Adds the functions to ``namespace``, and the methods to ``Tensor``."""
    for name in FUNCTIONS:
        namespace[name] = _with_generator(getattr(_keyway, name))
    for name in ("bernoulli", "multinomial", "poisson"):
        namespace[name] = _with_generator(getattr(_functions, name))
    for name in METHODS:
        setattr(Tensor, name, _with_generator(getattr(Tensor, name)))
    for name in ("bernoulli", "multinomial"):
        setattr(Tensor, name, namespace[name])

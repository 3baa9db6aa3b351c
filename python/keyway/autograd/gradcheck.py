"""Derivatives checked against finite differences."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .._keyway import Tensor, _gradcheck


class GradcheckError(RuntimeError):
    """A derivative that differs from finite differences."""


def _check(
    func: Callable[..., Any], inputs: Any, eps: float, atol: float, rtol: float, raise_exception: bool, twice: bool
) -> bool:
    args = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    at = [index for index, arg in enumerate(args) if isinstance(arg, Tensor)]
    if not any(args[index].requires_grad for index in at):
        raise ValueError("gradcheck: expected an input that requires a gradient, got none; call `requires_grad_()` on one")

    def called(*tensors: Tensor) -> Any:
        all_args = list(args)
        for index, tensor in zip(at, tensors):
            all_args[index] = tensor
        made = func(*all_args)
        return [made] if isinstance(made, Tensor) else [one for one in made if isinstance(one, Tensor)]

    found = _gradcheck(called, [args[index] for index in at], eps, atol, rtol, twice)
    if found is not None and raise_exception:
        raise GradcheckError(found)
    return found is None


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Whether the derivative of a function agrees with finite differences, for inputs of float64 that require a gradient.

    Raises GradcheckError naming the first element that differs, unless ``raise_exception`` is False.
    """
    return _check(func, inputs, eps, atol, rtol, raise_exception, False)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """``gradcheck`` of the derivative itself."""
    return _check(func, inputs, eps, atol, rtol, raise_exception, True)

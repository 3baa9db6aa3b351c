"""Gradients held within bounds, and parameters as one vector."""

from __future__ import annotations

import math
from typing import Iterable

from ..._functions import cat
from ..._keyway import Tensor, _clip_grad_norm, _clip_grad_value
from ...autograd import no_grad


def _listed(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients such that their norm, over all of them as one vector, is at most ``max_norm``; returns the norm before."""
    if float(norm_type) != 2.0:
        raise NotImplementedError(f"clip_grad_norm_: expected the norm of order 2, got {norm_type}; use clip_grad_value_")
    tensors = _listed(parameters)
    if error_if_nonfinite:
        norms = [float(tensor.grad.norm()) for tensor in tensors if tensor.grad is not None]
        if not all(math.isfinite(norm) for norm in norms):
            raise RuntimeError("clip_grad_norm_: the norm of the gradients is not finite, so they cannot be clipped")
    return _clip_grad_norm(tensors, float(max_norm))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Sets elements of gradients beyond ``-clip_value`` or ``clip_value`` to these."""
    _clip_grad_value(_listed(parameters), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector."""
    made: Tensor = cat([parameter.reshape(-1) for parameter in parameters])
    return made


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copies the elements of a vector into parameters."""
    start = 0
    with no_grad():
        for parameter in parameters:
            count = parameter.numel()
            parameter.copy_(vec[start : start + count].reshape(parameter.shape))
            start += count

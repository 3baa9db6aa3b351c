"""Backward passes from several tensors."""

from __future__ import annotations

from typing import Sequence

from .._keyway import Tensor, _backward, grad
from .modes import no_grad


def _listed(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of tensors to ``grad`` of the leaves that they depend on, or of ``inputs`` alone.

    ``grad_tensors`` has the incoming gradients; ``None`` is 1, for a tensor of one element.
    """
    outputs = _listed(tensors)
    given = None
    if grad_tensors is not None:
        gradients = [grad_tensors] if isinstance(grad_tensors, Tensor) else list(grad_tensors)
        if any(gradient is not None for gradient in gradients):
            given = [
                output.detach() * 0 + 1 if gradient is None else gradient for output, gradient in zip(outputs, gradients, strict=True)
            ]
    if inputs is None:
        _backward(outputs, given, retain_graph, create_graph)
        return
    targets = _listed(inputs)
    if not targets:
        raise RuntimeError("backward: expected at least one tensor in `inputs`, got none")
    made = grad(outputs, targets, given, retain_graph, create_graph, True)
    with no_grad():
        for target, gradient in zip(targets, made):
            if gradient is not None:
                target.grad = gradient.clone() if target.grad is None else target.grad + gradient

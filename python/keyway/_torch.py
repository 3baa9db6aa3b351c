"""Tensors shared with PyTorch, without copies, and gradients that go from one graph on into the other.

PyTorch is imported at the first call.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ._keyway import Tensor, from_dlpack, tensor
from .autograd import Function, is_grad_enabled, once_differentiable


def _imported() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as missing:
        raise ImportError("expected PyTorch to be installed: `pip install torch`") from missing


def _plain(source: Any) -> Tensor:
    """A tensor over the memory of PyTorch's, outside its graph."""
    return from_dlpack(source.detach().resolve_conj().resolve_neg())


class _FromTorch(Function):
    """A tensor of PyTorch as the result of a call, whose derivative is a backward pass of PyTorch."""

    @staticmethod
    def forward(ctx: Any, source: Any, anchor: Tensor) -> Tensor:
        ctx.source = source
        return _plain(source)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        torch = _imported()
        # Another tensor of the same graph may follow.
        torch.autograd.backward([ctx.source], [torch.from_dlpack(grad.contiguous())], retain_graph=True)
        return None, None


@functools.cache
def _to_torch_function() -> Any:
    """The function of PyTorch whose derivative is a backward pass of this package."""
    torch = _imported()

    def forward(ctx: Any, source: Tensor, anchor: Any) -> Any:
        ctx.source = source
        return torch.from_dlpack(source.detach())

    def backward(ctx: Any, grad: Any) -> Any:
        ctx.source.backward(_plain(grad), retain_graph=True)
        return None, None

    members = {
        "forward": staticmethod(forward),
        "backward": staticmethod(torch.autograd.function.once_differentiable(backward)),
    }
    return type("ToTorch", (torch.autograd.Function,), members)


def from_torch(source: Any) -> Tensor:
    """A tensor over the memory of PyTorch's tensor.

    If it requires a gradient, ``backward`` of a result continues into PyTorch's graph and accumulates in ``grad`` there.
    """
    torch = _imported()
    if not isinstance(source, torch.Tensor):
        raise TypeError(f"from_torch: expected a tensor of PyTorch, got {type(source).__name__}")
    if not source.requires_grad or not is_grad_enabled():
        return _plain(source)
    # A leaf, without which no backward pass would come here.
    anchor = tensor(0.0, requires_grad=True)
    made: Tensor = _FromTorch.apply(source, anchor)
    return made


def to_torch(self: Tensor) -> Any:
    """A tensor of PyTorch over the memory of this one.

    If it requires a gradient, PyTorch's ``backward`` of a result continues into this package's graph and accumulates in ``grad`` here.
    """
    torch = _imported()
    if not self.requires_grad or not is_grad_enabled():
        return torch.from_dlpack(self.detach())
    return _to_torch_function().apply(self, torch.zeros((), requires_grad=True))

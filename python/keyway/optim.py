"""Optimisers with the arguments and update rules of PyTorch."""

from __future__ import annotations

import math
from typing import Any, Iterable

from ._keyway import Tensor, zeros
from .autograd import no_grad

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


class Optimizer:
    """Parameters, and for each the tensors that an update keeps."""

    def __init__(self, params: Iterable[Tensor], **options: Any) -> None:
        self.params = list(params)
        if not self.params:
            raise ValueError("expected at least one parameter, got none; is the model's list of parameters empty?")
        for param in self.params:
            if not isinstance(param, Tensor) or not param.is_leaf:
                raise TypeError("expected parameters that are tensors and leaves of the graph")
        if not options["lr"] >= 0.0:
            raise ValueError(f"expected a learning rate of at least 0, got {options['lr']}")
        self.options = options
        self.state: list[dict[str, Any]] = [{} for _ in self.params]

    def zero_grad(self) -> None:
        """Removes the gradients."""
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Changes each parameter that has a gradient."""
        with no_grad():
            for param, state in zip(self.params, self.state):
                if param.grad is not None:
                    self._update(param, param.grad, state)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        raise NotImplementedError


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al. 2013) and weight decay."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if nesterov and (momentum <= 0.0 or dampening != 0.0):
            raise ValueError("SGD: nesterov requires a momentum above 0 and no dampening")
        options = {"momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, lr=lr, **options)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        options = self.options
        if options["weight_decay"]:
            grad = grad.add(param, alpha=options["weight_decay"])
        if options["momentum"]:
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = grad.clone()
            else:
                state["momentum_buffer"].mul_(options["momentum"]).add_(grad, alpha=1.0 - options["dampening"])
            buffer = state["momentum_buffer"]
            grad = grad.add(buffer, alpha=options["momentum"]) if options["nesterov"] else buffer
        param.add_(grad, alpha=-options["lr"])


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015); weight decay is added to the gradient."""

    _decoupled = False

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"{type(self).__name__}: expected betas from 0 to 1, 1 excluded, got {betas}")
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        options = self.options
        (first, second), lr, decay = options["betas"], options["lr"], options["weight_decay"]
        if not state:
            state["step"] = 0
            state["exp_avg"] = zeros(param.shape, dtype=param.dtype, device=param.device)
            state["exp_avg_sq"] = zeros(param.shape, dtype=param.dtype, device=param.device)
        state["step"] += 1
        if decay and self._decoupled:
            param.mul_(1.0 - lr * decay)
        elif decay:
            grad = grad.add(param, alpha=decay)
        mean, square, step = state["exp_avg"], state["exp_avg_sq"], state["step"]
        mean.mul_(first).add_(grad, alpha=1.0 - first)
        square.mul_(second).addcmul_(grad, grad, value=1.0 - second)
        scale = lr / (1.0 - first**step)
        denominator = square.sqrt().div_(math.sqrt(1.0 - second**step)).add_(options["eps"])
        param.addcdiv_(mean, denominator, value=-scale)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

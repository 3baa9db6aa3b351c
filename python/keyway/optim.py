"""Optimisers with the arguments and update rules of PyTorch."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable

from ._keyway import Tensor, call_op, zeros
from .autograd import no_grad

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


class Optimizer:
    """Groups of parameters with their options, and for each parameter the tensors that an update keeps.

    ``params`` are tensors, or dicts with ``params`` and options that differ from the defaults. ``param_groups`` is the list of
    such dicts, and ``param_groups[0]["lr"] = 0.1`` changes an option.
    """

    def __init__(self, params: Iterable[Any], **defaults: Any) -> None:
        name = type(self).__name__
        if isinstance(params, Tensor):
            raise TypeError(f"{name}: expected a sequence of parameters, got one tensor; put it into a list")
        groups = list(params)
        if not groups:
            raise ValueError(f"{name}: expected at least one parameter, got none; is the model's list of parameters empty?")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[int, dict[str, Any]] = {}
        for group in groups:
            unknown = sorted(group.keys() - defaults.keys() - {"params"})
            if unknown:
                raise TypeError(f"{name}: unknown options {', '.join(unknown)}; there are {', '.join(defaults)}")
            members = group["params"]
            members = [members] if isinstance(members, Tensor) else list(members)
            for param in members:
                if not isinstance(param, Tensor):
                    got = "a pair; pass `parameters()`" if isinstance(param, tuple) else type(param).__name__
                    raise TypeError(f"{name}: expected parameters that are tensors, got {got}")
                if not param.is_leaf:
                    raise ValueError(f"{name}: expected leaves of the graph, got a result of `{param.grad_fn}`")
            self.param_groups.append({**defaults, **group, "params": members})
        for group in self.param_groups:
            if not group["lr"] >= 0.0:
                raise ValueError(f"{name}: expected a learning rate of at least 0, got {group['lr']}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients, or sets them to 0."""
        for param in self._ordered():
            gradient = param.grad
            param.grad = None if set_to_none or gradient is None else gradient.detach() * 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes each parameter that has a gradient; ``closure`` computes the loss and its gradients before, and is returned.

        Raises RuntimeError for a parameter that ``Module.to`` replaced.
        """
        loss = closure() if closure is not None else None
        with no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if getattr(param, "_replaced", False):
                        raise RuntimeError(
                            "a parameter of this optimiser was replaced by `Module.to`; create the optimiser after the conversion"
                        )
                    if param.grad is not None:
                        self._update(param, param.grad, self.state.setdefault(id(param), {}), group)
        return loss

    def _ordered(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def state_dict(self) -> dict[str, Any]:
        """The options, and what updates keep, by the parameters' indices."""
        params = self._ordered()
        indices = {id(param): index for index, param in enumerate(params)}
        groups = [{**group, "params": [indices[id(param)] for param in group["params"]]} for group in self.param_groups]
        return {"state": {indices[key]: dict(kept) for key, kept in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned, for as many parameters in the same order."""
        params = self._ordered()
        counts = [len(group["params"]) for group in state["param_groups"]]
        own = [len(group["params"]) for group in self.param_groups]
        if counts != own:
            raise ValueError(f"load_state_dict: expected groups of {own} parameters, got {counts}")
        for group, saved in zip(self.param_groups, state["param_groups"]):
            group.update({name: value for name, value in saved.items() if name != "params"})
        self.state = {}
        for index, kept in state["state"].items():
            copies = {name: value.clone() if isinstance(value, Tensor) else value for name, value in kept.items()}
            self.state[id(params[int(index)])] = copies

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], options: dict[str, Any]) -> None:
        raise NotImplementedError


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al. 2013) and weight decay."""

    def __init__(
        self,
        params: Iterable[Any],
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

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], options: dict[str, Any]) -> None:
        first = "momentum_buffer" not in state
        buffers = []
        if options["momentum"]:
            buffers = [state.setdefault("momentum_buffer", zeros(param.shape, dtype=param.dtype, device=param.device))]
        names = ("lr", "momentum", "dampening", "weight_decay", "nesterov")
        numbers = [options[name] for name in names]
        call_op("sgd_step", ([param], [grad], buffers, *numbers, first), {"out": [param, *buffers]})


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015); weight decay is added to the gradient."""

    _decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"{type(self).__name__}: expected betas from 0 to 1, 1 excluded, got {betas}")
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def _update(self, param: Tensor, grad: Tensor, state: dict[str, Any], options: dict[str, Any]) -> None:
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
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

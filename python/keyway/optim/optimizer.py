"""The base class of optimisers: groups of parameters, and their state."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Iterable

from .._keyway import Tensor
from ..autograd import enable_grad
from ..nn.hooks import Handle


class Optimizer:
    """Groups of parameters with their options, and the state of each parameter.

    ``params`` are tensors, pairs of a name and a tensor, or dicts with ``params`` and options that differ from ``defaults``.
    ``param_groups`` is the list of such dicts, and ``param_groups[0]["lr"] = 0.1`` changes an option. A subclass defines ``step``;
    it keeps values in ``state[param]``, which is a dict.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        name = type(self).__name__
        if isinstance(params, Tensor):
            raise TypeError(f"{name}: expected a sequence of parameters, got one tensor; put it into a list")
        groups = list(params)
        if not groups:
            raise ValueError(f"{name}: expected at least one parameter, got none; is the model's list of parameters empty?")
        self.defaults = dict(defaults)
        self.param_groups: list[dict[str, Any]] = []
        self.state: Any = defaultdict(dict)
        self._before_step: dict[int, Callable[..., Any]] = {}
        self._after_step: dict[int, Callable[..., Any]] = {}
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, such as those of layers that are trained from now on."""
        name = type(self).__name__
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(f'{name}: expected a group to be a dict with "params"')
        unknown = sorted(param_group.keys() - self.defaults.keys() - {"params", "param_names", "initial_lr"})
        if unknown:
            raise TypeError(f"{name}: unknown options {', '.join(unknown)}; there are {', '.join(self.defaults)}")
        members = param_group["params"]
        if isinstance(members, (set, frozenset)):
            raise TypeError(f"{name}: expected parameters in an order, got a set")
        members = [members] if isinstance(members, Tensor) else list(members)
        if members and isinstance(members[0], tuple):
            members = [member for _, member in members]
        for param in members:
            if not isinstance(param, Tensor):
                raise TypeError(f"{name}: expected parameters that are tensors, got {type(param).__name__}")
            if not param.is_leaf:
                raise ValueError(f"{name}: expected leaves of the graph, got a result of `{param.grad_fn}`")
        seen = {id(param) for group in self.param_groups for param in group["params"]}
        if len({id(param) for param in members}) < len(members) or any(id(param) in seen for param in members):
            raise ValueError(f"{name}: expected each parameter once, got one twice")
        group = {**self.defaults, **param_group, "params": members}
        lr = group.get("lr")
        if isinstance(lr, Tensor):
            group["lr"] = lr = lr.item()
        if lr is not None and not lr >= 0.0:
            raise ValueError(f"{name}: expected a learning rate of at least 0, got {lr}")
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients, or sets them to 0."""
        for param in self._ordered():
            gradient = param.grad
            param.grad = None if set_to_none or gradient is None else gradient.detach() * 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes each parameter that has a gradient; ``closure`` computes the loss and its gradients before, and is returned."""
        raise NotImplementedError(f"{type(self).__name__} defines no step")

    @staticmethod
    def _loss(closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _ordered(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def _check_replaced(self) -> None:
        if any(getattr(param, "_replaced", False) for param in self._ordered()):
            raise RuntimeError("a parameter of this optimiser was replaced by `Module.to`; create the optimiser after the conversion")

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls ``hook(optimizer, args, kwargs)`` before each step of an optimiser of this package."""
        return Handle.of(self._before_step, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Calls ``hook(optimizer, args, kwargs)`` after each step of an optimiser of this package."""
        return Handle.of(self._after_step, hook)

    def state_dict(self) -> dict[str, Any]:
        """The options, and what steps keep, by the parameters' indices; the form is PyTorch's."""
        params = self._ordered()
        indices = {id(param): index for index, param in enumerate(params)}
        groups = [{**group, "params": [indices[id(param)] for param in group["params"]]} for group in self.param_groups]
        return {"state": {indices[id(param)]: dict(kept) for param, kept in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned, for as many parameters in the same order."""
        params = self._ordered()
        counts = [len(group["params"]) for group in state_dict["param_groups"]]
        own = [len(group["params"]) for group in self.param_groups]
        if counts != own:
            raise ValueError(f"load_state_dict: expected groups of {own} parameters, got {counts}")
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            group.update({name: value for name, value in saved.items() if name not in ("params", "param_names")})
        # A number is the same index as its text, as in a file.
        self._load_state({params[int(index)]: dict(kept) for index, kept in state_dict["state"].items()})

    def _load_state(self, state: dict[Tensor, dict[str, Any]]) -> None:
        self.state = defaultdict(dict)
        for param, kept in state.items():
            copies = {name: value.clone() if isinstance(value, Tensor) else value for name, value in kept.items()}
            self.state[param] = copies

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])

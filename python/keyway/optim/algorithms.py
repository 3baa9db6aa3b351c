"""The optimisers, whose rules are those of the Rust side."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Iterable

from .._keyway import Tensor, _Optimizer, asarray, tensor
from .optimizer import Optimizer

# Options of PyTorch that choose an implementation, not a rule.
_OF_IMPLEMENTATION = ("foreach", "fused", "capturable", "differentiable")


class _Native(Optimizer):
    """An optimiser of the Rust side: it has the state, and follows the options of ``param_groups``."""

    # The names of the state tensors on the Rust side, where they differ.
    _renamed: dict[str, str] = {}
    # Whether PyTorch counts steps where the rule needs no count.
    _counts = False

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], others: dict[str, Any]) -> None:
        name = type(self).__name__
        for option, value in others.items():
            if option in _OF_IMPLEMENTATION:
                continue
            if option not in ("maximize", "amsgrad"):
                raise TypeError(f"{name}: unknown option `{option}`; there are {', '.join(defaults)}")
            if value:
                hint = "minimise the negative loss" if option == "maximize" else "use AdamW or RMSprop"
                raise NotImplementedError(f"{name}: `{option}` is not supported; {hint}")
        self._own: Any = None
        self._steps = 0
        self._sent: list[dict[str, float]] = []
        super().__init__(params, defaults)
        self._native()

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        """The options of a group by the names of the Rust side."""
        numbers: dict[str, float] = {}
        for option in self.defaults:
            value = group[option]
            if option == "betas":
                numbers["beta1"], numbers["beta2"] = (float(beta) for beta in value)
            else:
                numbers[option] = float(value)
        return numbers

    def _native(self) -> Any:
        """The optimiser of the Rust side, with the present groups and options."""
        numbers = [self._numbers(group) for group in self.param_groups]
        if self._own is None or len(self._sent) != len(numbers):
            state = self._own.state() if self._own is not None else {}
            self._own = _Optimizer(type(self).__name__, [group["params"] for group in self.param_groups], numbers)
            self._restore({name: value for name, value in state.items() if name.startswith("state.")})
        else:
            for index, (sent, present) in enumerate(zip(self._sent, numbers)):
                changed = {name: value for name, value in present.items() if sent[name] != value}
                if changed:
                    self._own.set_options(index, changed)
        self._sent = numbers
        return self._own

    def _restore(self, state: dict[str, Tensor]) -> None:
        """Sets what steps keep; the options stay."""
        if state:
            options = {name: value for name, value in self._own.state().items() if not name.startswith("state.")}
            self._own.load_state({**options, **state})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        if self._own is not None:
            self._native()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        self._check_replaced()
        for hook in tuple(self._before_step.values()):
            hook(self, (closure,), {})
        loss = self._loss(closure)
        self._native().step()
        self._steps += 1
        for hook in tuple(self._after_step.values()):
            hook(self, (closure,), {})
        return loss

    @property
    def state(self) -> Any:
        """Copies of the values that steps keep, by parameter."""
        params = self._ordered()
        made: Any = defaultdict(dict)
        for name, value in self._native().state().items() if self._own is not None else ():
            kind, index, *rest = name.split(".")
            if kind == "state":
                made[params[int(index)]][self._renamed.get(rest[0], rest[0])] = value
        for kept in made.values() if self._counts else ():
            kept["step"] = tensor(float(self._steps))
        return made

    @state.setter
    def state(self, state: Any) -> None:
        if state:
            self._load_state(state)

    def _load_state(self, state: dict[Tensor, dict[str, Any]]) -> None:
        own_names = {name: own for own, name in self._renamed.items()}
        indices = {id(param): index for index, param in enumerate(self._ordered())}
        self._own = None
        self._native()
        named = {}
        for param, kept in state.items():
            for name, value in kept.items():
                if self._counts and name == "step":
                    self._steps = int(value)
                elif value is not None:
                    value = asarray(value) if hasattr(value, "shape") else tensor(value)
                    named[f"state.{indices[id(param)]}.{own_names.get(name, name)}"] = value
        self._restore(named)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in ("_own", "_sent")}
        return {**kept, "_saved": dict(self.state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("_saved")
        vars(self).update(state, _own=None, _sent=[])
        self._load_state(saved)


class SGD(_Native):
    """Stochastic gradient descent with momentum (Sutskever et al. 2013) and weight decay."""

    _renamed = {"momentum": "momentum_buffer"}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **others: Any,
    ) -> None:
        options = {"momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, {"lr": lr, **options}, others)


class Adam(_Native):
    """Adam (Kingma and Ba 2015); weight decay is added to the gradient."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **others: Any,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}, others)


class AdamW(_Native):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        **others: Any,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}, others)


class SparseAdam(_Native):
    """Adam of the rows that a sparse gradient has; it needs a backend of sparse tensors."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        **others: Any,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps}, others)


class Adagrad(_Native):
    """Adagrad (Duchi et al. 2011)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        **others: Any,
    ) -> None:
        options = {
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
        }
        super().__init__(params, {"lr": lr, **options}, others)


class RMSprop(_Native):
    """RMSprop (Hinton 2012), with momentum, and with centred squares (Graves 2013)."""

    _counts = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        **others: Any,
    ) -> None:
        options = {"momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay}
        super().__init__(params, {"lr": lr, **options}, others)

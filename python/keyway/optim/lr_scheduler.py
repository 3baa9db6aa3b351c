"""Learning rates that change from epoch to epoch; the formulas are those of the Rust side."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, Callable, Iterable, NoReturn, Sequence

from .._keyway import Tensor, _Plateau, _Schedule
from .optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class LRScheduler:
    """Sets the learning rates of an optimiser's groups, one for each epoch; ``step`` goes to the next.

    A subclass of a program defines ``get_lr``, which returns the rates of ``last_epoch`` for all groups.
    """

    # Whether a rate that was changed elsewhere is overwritten; otherwise it is scaled by the same ratio.
    _absolute = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"{type(self).__name__}: expected an optimiser, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("initial_lr: expected in each group of the optimiser to go on from an epoch; load its state before")
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr = [float(group["lr"]) for group in optimizer.param_groups]
        self._begin()

    def _begin(self) -> None:
        """Sets the rates of the first epoch."""
        self.step()

    def _rates(self, epoch: int) -> list[float] | None:
        """The rates of an epoch by the schedule's formula, if it has one."""
        return None

    def get_lr(self) -> list[float]:
        """The learning rates of ``last_epoch``."""
        rates = self._rates(max(self.last_epoch, 0))
        if rates is None:
            raise NotImplementedError(f"{type(self).__name__} defines no get_lr")
        if self._absolute:
            return rates
        before = self._rates(self.last_epoch - 1) if self.last_epoch > 0 else self.base_lrs
        made = []
        for rate, was, group in zip(rates, before or rates, self.optimizer.param_groups, strict=True):
            now = float(group["lr"])
            scaled = now if rate == was else now * (rate / was) if was else rate
            made.append(rate if now == was else scaled)
        return made

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch, or of epoch ``epoch``."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self._rates(epoch) if epoch is not None else None
        self._set(self.get_lr() if rates is None else rates)

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The epoch and the numbers of the schedule."""
        return {name: value for name, value in vars(self).items() if name not in ("optimizer", "_own", "_momenta")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned; the optimiser's own state has its rates."""
        vars(self).update(state_dict)
        self._build()

    def _build(self) -> None:
        """Makes the schedule of the Rust side by the present numbers."""


_LRScheduler = LRScheduler


class _Native(LRScheduler):
    """A schedule of the Rust side by the class's name."""

    def __init__(self, optimizer: Optimizer, last_epoch: int, **options: Any) -> None:
        self._options = options
        self._own: Any = None
        vars(self).update(options)
        super().__init__(optimizer, last_epoch)

    def _build(self) -> None:
        self._own = _Schedule(type(self).__name__, self.base_lrs, self._options)

    def _begin(self) -> None:
        self._build()
        self.step()

    def _rates(self, epoch: int) -> list[float] | None:
        made: list[float] = self._own.rates(epoch)
        return made


class StepLR(_Native):
    """Multiplies the rates by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        super().__init__(optimizer, last_epoch, step_size=step_size, gamma=gamma)


class MultiStepLR(_Native):
    """Multiplies the rates by ``gamma`` at each of the epochs ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, last_epoch, milestones=sorted(milestones), gamma=gamma)


class ExponentialLR(_Native):
    """Multiplies the rates by ``gamma`` each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        super().__init__(optimizer, last_epoch, gamma=gamma)


class LinearLR(_Native):
    """Rates times a factor from ``start_factor`` to ``end_factor``, along a line of ``total_iters`` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        super().__init__(
            optimizer, last_epoch, start_factor=start_factor, end_factor=end_factor, total_iters=total_iters
        )


class PolynomialLR(_Native):
    """Rates that fall to 0 in ``total_iters`` epochs by a power of the share that is left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        super().__init__(optimizer, last_epoch, total_iters=total_iters, power=power)


class CosineAnnealingLR(_Native):
    """Rates along half a cosine to ``eta_min`` in ``T_max`` epochs (Loshchilov and Hutter 2017)."""

    _absolute = True

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        super().__init__(optimizer, last_epoch, T_max=T_max, eta_min=eta_min)


class CosineAnnealingWarmRestarts(_Native):
    """``CosineAnnealingLR`` that begins anew after ``T_0`` epochs, then after ``T_mult`` times as many (the same, 2017)."""

    _absolute = True

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, last_epoch, T_0=T_0, T_mult=T_mult, eta_min=eta_min)


class OneCycleLR(_Native):
    """Rates that rise to ``max_lr`` and fall to nearly 0 in all steps of a training (Smith and Topin 2018); a step is a batch.

    ``cycle_momentum`` lets the momentum, or the first of ``betas``, fall and rise against the rate.
    """

    _absolute = True

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: expected `total_steps`, or `epochs` and `steps_per_epoch`")
            total_steps = epochs * steps_per_epoch
        if cycle_momentum and not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ValueError("OneCycleLR: the optimiser has no momentum; pass `cycle_momentum=False`")
        count = len(optimizer.param_groups)
        self.max_lrs = [float(max_lr)] * count if isinstance(max_lr, (int, float)) else [float(rate) for rate in max_lr]
        if len(self.max_lrs) != count:
            raise ValueError(f"OneCycleLR: expected a `max_lr` for each of {count} groups, got {len(self.max_lrs)}")
        self._cycle = (base_momentum, max_momentum) if cycle_momentum else None
        super().__init__(
            optimizer,
            last_epoch,
            total_steps=total_steps,
            pct_start=pct_start,
            anneal_strategy=anneal_strategy,
            div_factor=div_factor,
            final_div_factor=final_div_factor,
            three_phase=three_phase,
        )

    def _build(self) -> None:
        self._own = [_Schedule("OneCycleLR", [1.0], {**self._options, "max_lr": rate}) for rate in self.max_lrs]
        # A cycle from 0 to 1 and back to 0.
        share = {**self._options, "max_lr": 1.0, "div_factor": 1e300, "final_div_factor": 1.0}
        self._momenta = _Schedule("OneCycleLR", [1.0], share)
        for group, rate in zip(self.optimizer.param_groups, self.max_lrs):
            group["max_lr"] = rate

    def _rates(self, epoch: int) -> list[float] | None:
        return [own.rates(epoch)[0] for own in self._own]

    def _set(self, rates: Sequence[float]) -> None:
        super()._set(rates)
        if self._cycle is None:
            return
        base, most = self._cycle
        momentum = most - self._momenta.rates(self.last_epoch)[0] * (most - base)
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum


class LambdaLR(LRScheduler):
    """The first rates times a function of the epoch, or one function for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        self._own = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self._own) != count:
            raise ValueError(f"{type(self).__name__}: expected a function for each of {count} groups, got {len(self._own)}")
        super().__init__(optimizer, last_epoch)

    _absolute = True

    def _rates(self, epoch: int) -> list[float] | None:
        return [base * float(factor(epoch)) for base, factor in zip(self.base_lrs, self._own)]


class MultiplicativeLR(LambdaLR):
    """Multiplies the rates by a function of the epoch, each epoch."""

    _absolute = False

    def _rates(self, epoch: int) -> list[float] | None:
        factors = [math.prod(float(factor(i)) for i in range(1, epoch + 1)) for factor in self._own]
        return [base * factor for base, factor in zip(self.base_lrs, factors)]


class ConstantLR(LRScheduler):
    """Rates times ``factor`` in the first ``total_iters`` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0.0 <= factor <= 1.0:
            raise ValueError(f"ConstantLR: expected a factor from 0 to 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self, epoch: int) -> list[float] | None:
        factor = self.factor if epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """Schedules one after another; each begins at its milestone with its epoch 0."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: expected {len(schedulers) - 1} milestones, got {len(milestones)}")
        if any(one.optimizer is not optimizer for one in schedulers):
            raise ValueError("SequentialLR: expected schedules of the same optimiser")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        super().__init__(optimizer, last_epoch)

    def _begin(self) -> None:
        for one in self._schedulers:
            one.last_epoch = -1
        self.last_epoch += 1
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        if epoch is not None:
            raise TypeError("SequentialLR.step takes no epoch")
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name not in ("optimizer", "_schedulers")}
        return {**own, "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        for one, saved in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            one.load_state_dict(saved)
        vars(self).update(state)


class ChainedScheduler:
    """Several schedules that each change the rates at every step."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: expected at least one schedule, got none")
        self.optimizer = schedulers[0].optimizer
        if any(one.optimizer is not self.optimizer for one in schedulers):
            raise ValueError("ChainedScheduler: expected schedules of the same optimiser")
        self._schedulers = list(schedulers)

    def step(self) -> None:
        """Goes to the next epoch of each schedule."""
        for one in self._schedulers:
            one.step()

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state of each schedule."""
        return {"_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned."""
        for one, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(saved)


class ReduceLROnPlateau:
    """Reduces the rates when a metric has not improved for ``patience`` epochs; ``step`` takes the metric."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.optimizer = optimizer
        self._own = _Plateau(mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps)
        self.last_epoch = 0

    @property
    def best(self) -> float:
        """The best metric."""
        return float(self._own.state()[0])

    @property
    def num_bad_epochs(self) -> int:
        """The number of epochs since the best metric."""
        return int(self._own.state()[1])

    def step(self, metrics: float | Tensor, epoch: int | None = None) -> None:
        """Takes the metric of an epoch."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        for group, rate in zip(self.optimizer.param_groups, self._own.step(float(metrics), rates)):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The present rates."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The best metric, and the epochs since it."""
        best, bad, cooldown = self._own.state()
        return {"best": best, "num_bad_epochs": bad, "cooldown_counter": cooldown, "last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned."""
        self.last_epoch = state_dict["last_epoch"]
        self._own.set_state(state_dict["best"], state_dict["num_bad_epochs"], state_dict["cooldown_counter"])


def __getattr__(name: str) -> NoReturn:
    others = {"CyclicLR": "OneCycleLR or LambdaLR", "SWALR": "LinearLR or CosineAnnealingLR"}
    if name in others:
        raise AttributeError(f"there is no schedule `{name}`; use {others[name]}")
    raise AttributeError(f"module `keyway.optim.lr_scheduler` has no attribute `{name}`")

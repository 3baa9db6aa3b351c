"""Mixed precision: ``autocast``, and ``GradScaler`` for float16."""

from __future__ import annotations

from typing import Any

from ._keyway import _GradScaler, Tensor, _enter_autocast, autocast_dtype, bfloat16, float16
from .autograd.modes import Block

__all__ = ["GradScaler", "autocast", "autocast_dtype", "is_autocast_enabled"]


class autocast(Block):
    """Products compute in ``dtype`` in the block, sums and losses in float32, on every device.

    The dtype is float16 by default for ``"cuda"``, bfloat16 otherwise. ``enabled=False`` switches mixed precision off.
    """

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        super().__init__()
        if not isinstance(device_type, str):
            raise TypeError(f'autocast: expected a device as a str, such as "cpu", got {device_type}; pass `dtype=` by name')
        self._options = device_type, dtype, enabled
        self._dtype = dtype if dtype is not None else float16 if device_type.startswith("cuda") else bfloat16

    def _begin(self) -> int | None:
        return _enter_autocast(self._dtype if self._options[2] else None)

    def _copy(self) -> Block:
        return autocast(*self._options)


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether mixed precision is on for this thread."""
    return autocast_dtype() is not None


class GradScaler:
    """Scales losses so that gradients of float16 do not become 0, and skips steps whose gradients are not finite."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._own = _GradScaler(init_scale, growth_factor, backoff_factor, growth_interval)
        self._enabled = enabled

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """A loss times the scale, or each of several."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return self._own.scale(outputs)
        return type(outputs)(self.scale(output) for output in outputs)

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimiser's parameters by the scale, as before clipping them."""
        if self._enabled:
            self._own.unscale(optimizer._ordered())

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes the optimiser's step if its gradients are finite, and returns its result."""
        if not self._enabled or self._own.step(optimizer._ordered()):
            return optimizer.step(*args, **kwargs)
        return None

    def update(self, new_scale: float | None = None) -> None:
        """Changes the scale by what the steps found, or sets it."""
        if not self._enabled:
            return
        self._own.update()
        if new_scale is not None:
            self._own.set_state(float(new_scale), 0)

    def get_scale(self) -> float:
        """The scale; 1 if it is switched off."""
        return self._own.state()[0] if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """The scale and the number of steps since it changed."""
        scale, tracker = self._own.state()
        return {"scale": scale, "_growth_tracker": tracker} if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned."""
        if self._enabled:
            self._own.set_state(float(state_dict["scale"]), int(state_dict["_growth_tracker"]))

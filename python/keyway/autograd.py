"""Gradients: ``grad``, and context managers that switch recording off and on, also as decorators."""

from __future__ import annotations

import contextlib
from typing import Any

from ._keyway import _set_grad_enabled, grad, is_grad_enabled

__all__ = ["enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]


class set_grad_enabled(contextlib.ContextDecorator):
    """Records calls on this thread, or does not, until the block ends."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_set_grad_enabled(self._mode))

    def __exit__(self, *raised: Any) -> None:
        _set_grad_enabled(self._before.pop())


class no_grad(set_grad_enabled):
    """Calls in the block or function are not recorded."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):
    """Calls in the block or function are recorded, also inside ``no_grad``."""

    def __init__(self) -> None:
        super().__init__(True)

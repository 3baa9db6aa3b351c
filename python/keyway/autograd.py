"""Gradients: ``grad``, and context managers that switch recording off and on, also as decorators."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from ._keyway import _set_grad_enabled, grad, is_grad_enabled

__all__ = ["enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]

F = TypeVar("F", bound=Callable[..., Any])


class _Mode:
    """Recording on or off for a block, or for each call of a function; an object may be entered by several threads."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before = True

    def __enter__(self) -> None:
        self._before = _set_grad_enabled(self._mode)

    def __exit__(self, *raised: Any) -> None:
        _set_grad_enabled(self._before)

    def __call__(self, function: F) -> F:
        # It takes a fifth of the package's import, so it is imported at the first use.
        import inspect

        mode = self._mode
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Any:
                values = function(*args, **kwargs)
                sent = None
                while True:
                    with _Mode(mode):
                        try:
                            value = values.send(sent)
                        except StopIteration as end:
                            return end.value
                    sent = yield value

            return generate  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _Mode(mode):
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


class set_grad_enabled(_Mode):
    """Records calls on this thread, or does not: at once, and until the block ends if it is a context manager."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._before = _set_grad_enabled(mode)

    def __enter__(self) -> None:
        _set_grad_enabled(self._mode)

    def __call__(self, function: F) -> F:
        _set_grad_enabled(self._before)
        return super().__call__(function)


class _Switch(_Mode):
    """A mode that is written with or without parentheses as a decorator."""

    _on: bool

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else _Mode(cls._on)(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__(self._on)


class no_grad(_Switch):
    """Calls in the block or function are not recorded."""

    _on = False


class enable_grad(_Switch):
    """Calls in the block or function are recorded, also inside ``no_grad``."""

    _on = True

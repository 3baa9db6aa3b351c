"""Modes of a thread, for a block or for each call of a function: recording off and on, inference, anomaly detection."""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import Any, Callable, TypeVar

from .._keyway import _enter_anomaly, _enter_grad, _enter_inference, _leave, _let_last

F = TypeVar("F", bound=Callable[..., Any])


class Block:
    """A mode that lasts as long as a block, or as each call of a decorated function; an object may be entered several times."""

    def __init__(self) -> None:
        self._entered: list[int | None] = []

    @abstractmethod
    def _begin(self) -> int | None:
        """Enters the mode, and returns its number; ``None`` if it is switched off."""

    def _copy(self) -> Block:
        """An equal block for one call of a function."""
        return type(self)()

    def __enter__(self) -> Any:
        self._entered.append(self._begin())
        return self

    def __exit__(self, *raised: Any) -> None:
        number = self._entered.pop()
        if number is not None:
            _leave(number)

    def __call__(self, function: F) -> F:
        # It takes a fifth of the package's import, so it is imported at the first use.
        import inspect

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Any:
                values = function(*args, **kwargs)
                sent = None
                while True:
                    with self._copy():
                        try:
                            value = values.send(sent)
                        except StopIteration as end:
                            return end.value
                    sent = yield value

            return generate  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._copy():
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


class _Mode(Block):
    """Recording on or off."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._mode = mode

    def _begin(self) -> int | None:
        return _enter_grad(self._mode)

    def _copy(self) -> Block:
        return _Mode(self._mode)


class set_grad_enabled(_Mode):
    """Records calls on this thread, or does not: at once, and until the block ends if it is a context manager."""

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._first: int | None = _enter_grad(self._mode)

    def _begin(self) -> int | None:
        number, self._first = self._first, None
        return super()._begin() if number is None else number

    def __call__(self, function: F) -> F:
        self._undo()
        return super().__call__(function)

    def _undo(self) -> None:
        if self._first is not None:
            _leave(self._first)
            self._first = None

    def __del__(self) -> None:
        if getattr(self, "_first", None) is not None:
            _let_last(self._first)


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


class inference_mode(Block):
    """As ``no_grad``; besides, tensors that are made in the block can never enter a graph. ``mode=False`` changes nothing."""

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if callable(mode):
            made.__init__()  # type: ignore[misc]
            return made(mode)
        return made

    def __init__(self, mode: Any = True) -> None:
        super().__init__()
        self._mode = bool(mode)

    def _begin(self) -> int | None:
        return _enter_inference() if self._mode else None

    def _copy(self) -> Block:
        made: Block = inference_mode(self._mode)
        return made


class detect_anomaly(Block):
    """Backward passes raise an error for a gradient that is NaN, with the stack of Python of the forward call. Slow."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self._check_nan = check_nan

    def _begin(self) -> int | None:
        return _enter_anomaly() if self._check_nan else None


class set_detect_anomaly(detect_anomaly):
    """``detect_anomaly`` on or off for a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode and check_nan)

    def _copy(self) -> Block:
        return set_detect_anomaly(self._check_nan)

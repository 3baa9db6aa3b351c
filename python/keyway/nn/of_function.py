"""The base class of modules that are one function with fixed arguments."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .module import Module


class OfFunction(Module):
    """A module that calls a function of ``nn.functional`` with options, by the names of their attributes."""

    _function: str
    # The options in the order of the constructor, with their defaults; the ellipsis marks those without.
    _options: dict[str, Any] = {}
    # Options that are tensors, which move with the module.
    _tensors: tuple[str, ...] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if len(values) > len(self._options):
            raise TypeError(f"{name}: expected at most {len(self._options)} arguments, got {len(values)}")
        for option, value in zip(self._options, values):
            if option in named:
                raise TypeError(f"{name}: multiple values for argument `{option}`")
            named[option] = value
        unknown = sorted(named.keys() - self._options.keys())
        if unknown:
            raise TypeError(f"{name}: unexpected arguments {', '.join(unknown)}; there are {', '.join(self._options) or 'none'}")
        for option, default in self._options.items():
            value = named.get(option, default)
            if value is ...:
                raise TypeError(f"{name}: missing argument `{option}`")
            if option in self._tensors:
                self.register_buffer(option, value)
            else:
                setattr(self, option, value)

    def _arguments(self) -> dict[str, Any]:
        return {option: getattr(self, option) for option in self._options}

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return getattr(F, self._function)(*inputs, **named, **self._arguments())

    def extra_repr(self) -> str:
        return ", ".join(f"{option}={value}" for option, value in self._arguments().items() if value is not None)

"""Ops by name, also those of plugins."""

from ._ops import call
from ._keyway import op_table

__all__ = ["call", "names", "schema"]


def names() -> list[str]:
    """The names of this build's own ops."""
    return [name for name, *_ in op_table()]


def schema(name: str) -> str:
    """The parameters, defaults and results of an op of this build."""
    for other, text, *_ in op_table():
        if other == name:
            return str(text)
    raise KeyError(f"there is no op named {name!r}")

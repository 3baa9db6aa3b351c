"""Ops by name, also those of plugins."""

from ._ops import TABLE, call

__all__ = ["call", "names", "schema"]


def names() -> list[str]:
    """The names of this build's own ops."""
    return list(TABLE)


def schema(name: str) -> str:
    """The parameters, defaults and results of an op of this build."""
    if name not in TABLE:
        raise KeyError(f"there is no op named {name!r}")
    return TABLE[name][0]

"""The ops as methods of ``Tensor`` and as functions, made from the table of definitions of the Rust side.

An op that is added there is here, without a line in this file.
"""

from __future__ import annotations

from typing import Any, Callable

from ._keyway import Tensor, call_op, op_table

# Parameters that the Rust side fills in: ops with one are called through other functions, such as `rand`.
_INTERNAL = ("int seed",)
# Ops of gradients and optimisers, and steps of others, are called by name alone: `keyway.ops.call`.
_HIDDEN_SUFFIXES = ("_backward", "_forward", "_grad", "_step", "_rows", "_values", "_sums")


def _is_public(name: str, schema: str) -> bool:
    return not name.endswith(_HIDDEN_SUFFIXES) and not any(part in schema for part in _INTERNAL)


def _function(name: str, in_place: bool, doc: str) -> Callable[..., Any]:
    if in_place:

        def function(*args: Any, **kwargs: Any) -> Any:
            return call_op(name, args, kwargs or None, True)

        function.__name__ = name + "_"
    else:

        def function(*args: Any, **kwargs: Any) -> Any:
            return call_op(name, args, kwargs or None)

        function.__name__ = name
    function.__qualname__ = function.__name__
    function.__module__ = "keyway"
    function.__doc__ = doc
    return function


def install(namespace: dict[str, Any]) -> list[str]:
    """Adds each public op to ``Tensor`` and to ``namespace``; what is there stays. Returns the names of the functions."""
    names = []
    for name, schema, text, has_in_place in op_table():
        if not _is_public(name, schema):
            continue
        doc = f"{schema}\n\n{text}"
        function = _function(name, False, doc)
        if name not in namespace:
            namespace[name] = function
            names.append(name)
        takes_self = schema[len(name) + 1 :].startswith("Tensor self")
        if takes_self and not hasattr(Tensor, name):
            setattr(Tensor, name, function)
        if takes_self and has_in_place and not hasattr(Tensor, name + "_"):
            setattr(Tensor, name + "_", _function(name, True, doc))
    return names


def install_only(namespace: dict[str, Any], names: tuple[str, ...]) -> None:
    """Adds the ops of these names to a namespace, as far as this build has them."""
    for name, schema, text, _ in op_table():
        if name in names:
            namespace[name] = _function(name, False, f"{schema}\n\n{text}")


def call(name: str, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """Calls the op of this name, also of a plugin: ``keyway.ops.call("vendor.name", x)``."""
    if out is not None:
        kwargs["out"] = out
    return call_op(name, args, kwargs or None)

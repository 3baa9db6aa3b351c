"""The ops as methods of ``Tensor`` and as functions, made from the table of definitions of the Rust side.

An op that is added there is here, without a line in this file.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Callable

from ._keyway import Tensor, call_op, op_table

# Parameters that the Rust side fills in: ops with one are called through other functions, such as `rand`.
_INTERNAL = ("int seed",)
# Ops of gradients and optimisers, and steps of others, are called by name alone: `keyway.ops.call`.
_HIDDEN_SUFFIXES = ("_backward", "_forward", "_grad", "_step", "_rows", "_values", "_sums")


def _is_public(name: str, schema: str) -> bool:
    return not name.endswith(_HIDDEN_SUFFIXES) and not any(part in schema for part in _INTERNAL)


def _results(*names: str) -> Any:
    return namedtuple("_".join(names), names)


_VALUES = _results("values", "indices")
# The names of the results of ops with several, as in PyTorch.
_RESULTS = {
    "cummax": _VALUES,
    "cummin": _VALUES,
    "eig": _results("eigenvalues", "eigenvectors"),
    "eigh": _results("eigenvalues", "eigenvectors"),
    "kthvalue": _VALUES,
    "lu_factor": _results("LU", "pivots"),
    "max": _VALUES,
    "median": _VALUES,
    "min": _VALUES,
    "mode": _VALUES,
    "nanmedian": _VALUES,
    "qr": _results("Q", "R"),
    "slogdet": _results("sign", "logabsdet"),
    "sort": _VALUES,
    "std_mean": _results("std", "mean"),
    "svd": _results("U", "S", "Vh"),
    "topk": _VALUES,
    "var_mean": _results("var", "mean"),
}
# Ops that compute in another dtype by PyTorch's argument `dtype`, which is a conversion before.
_CONVERTED = ("cumprod", "cumsum", "log_softmax", "mean", "nansum", "prod", "softmax", "sum")
# Ops of a list of tensors that PyTorch takes one by one.
_VARIADIC = ("einsum",)


def call_named(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an op whose several results have names."""
    made = call_op(name, args, kwargs or None)
    names = _RESULTS.get(name)
    if names is not None and isinstance(made, tuple) and len(made) == len(names._fields):
        return names(*made)
    return made


def _optional_results(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results that were asked for, of an op whose others are empty."""
    kwargs.pop("sorted", None)
    asked = [kwargs.get("return_inverse", False), kwargs.get("return_counts", False)]
    given = [value for value in args[1:] if isinstance(value, bool)]
    asked[: len(given)] = given[:2]
    made = call_op(name, args, kwargs or None)
    kept = (made[0], *(result for result, wanted in zip(made[1:], asked) if wanted))
    return kept if len(kept) > 1 else kept[0]


def _function(name: str, in_place: bool, doc: str) -> Callable[..., Any]:
    if in_place:

        def function(*args: Any, **kwargs: Any) -> Any:
            return call_op(name, args, kwargs or None, True)

        function.__name__ = name + "_"
    elif name.startswith("unique"):

        def function(*args: Any, **kwargs: Any) -> Any:
            return _optional_results(name, args, kwargs)

        function.__name__ = name
    elif name in _RESULTS:

        def function(*args: Any, **kwargs: Any) -> Any:
            return call_named(name, args, kwargs)

        function.__name__ = name
    elif name in _CONVERTED:

        def function(*args: Any, **kwargs: Any) -> Any:
            dtype = kwargs.pop("dtype", None)
            if dtype is not None and args:
                args = (args[0].to(dtype=dtype), *args[1:])
            return call_op(name, args, kwargs or None)

        function.__name__ = name
    elif name in _VARIADIC:

        def function(*args: Any, **kwargs: Any) -> Any:
            if len(args) > 1 and isinstance(args[1], Tensor):
                args = (args[0], list(args[1:]))
            return call_op(name, args, kwargs or None)

        function.__name__ = name
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


def function_of(name: str) -> Callable[..., Any] | None:
    """The function of a public op, or ``None``."""
    for other, schema, text, _ in op_table():
        if other == name and _is_public(name, schema):
            return _function(name, False, f"{schema}\n\n{text}")
    return None


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

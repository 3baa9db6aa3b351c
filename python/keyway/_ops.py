"""The ops as methods of ``Tensor`` and as functions, made from the table of definitions of the Rust side.

An op that is added there is here, without a line in this file.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Callable

from ._keyway import Tensor, call_op, op_table, tensors

# A parameter that the Rust side fills in: ops with it are called through other functions, such as `rand`.
_INTERNAL = "int seed"
# Ops of gradients and optimisers, and steps of others, are called by name alone: `keyway.ops.call`.
_HIDDEN_SUFFIXES = ("_backward", "_forward", "_grad", "_step", "_rows", "_values", "_sums")


# Schema, documentation, and whether there is a form in place, of each op by its name.
TABLE = {name: (schema, text, has_in_place) for name, schema, text, has_in_place in op_table()}


def is_public(name: str) -> bool:
    """Whether an op is a function of the package; the others are called by name."""
    return not name.endswith(_HIDDEN_SUFFIXES) and _INTERNAL not in TABLE[name][0]


def _results(*names: str) -> Any:
    return namedtuple("_".join(names), names)


_VALUES = _results("values", "indices")
# The names of the results of ops with several, as in PyTorch.
_RESULTS = {
    "cummax": _VALUES,
    "cummin": _VALUES,
    "eig": _results("eigenvalues", "eigenvectors"),
    "eigh": _results("eigenvalues", "eigenvectors"),
    "lu_factor": _results("LU", "pivots"),
    "max": _VALUES,
    "min": _VALUES,
    "qr": _results("Q", "R"),
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
    """A call of an op whose results have names."""
    return _RESULTS[name](*call_op(name, args, kwargs or None))


def _call_unique(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results that were asked for; the op returns empty tensors for the others."""
    kwargs.pop("sorted", None)
    asked = [kwargs.get("return_inverse", False), kwargs.get("return_counts", False)]
    asked[: len(args) - 1] = args[1:3]
    made = call_op(name, args, kwargs or None)
    kept = (made[0], *(result for result, wanted in zip(made[1:], asked) if wanted))
    return kept if len(kept) > 1 else kept[0]


def _call_converted(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with PyTorch's argument ``dtype``, which converts the tensor before; the result has that dtype, also of sums of narrow
    integers."""
    dtype = kwargs.pop("dtype", None)
    if dtype is None or not args:
        return call_op(name, args, kwargs or None)
    made = call_op(name, (args[0].to(dtype=dtype), *args[1:]), kwargs or None)
    return made if "out" in kwargs else made.to(dtype=dtype)


def _call_variadic(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an op of a list of tensors that are passed one by one."""
    if len(args) > 1 and isinstance(args[1], Tensor):
        args = (args[0], list(args[1:]))
    return call_op(name, args, kwargs or None)


# Ops whose divisor PyTorch's argument `unbiased` chooses.
_SPREADS = ("std", "std_mean", "var", "var_mean")


def _call_spread(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with ``unbiased``, also as the only argument after the tensor."""
    if len(args) == 2 and isinstance(args[-1], bool):
        kwargs["unbiased"] = args[-1]
        args = args[:1]
    if "unbiased" in kwargs:
        kwargs["correction"] = int(kwargs.pop("unbiased"))
    return call_named(name, args, kwargs) if name in _RESULTS else call_op(name, args, kwargs or None)


# The ops whose calls differ from those of their schema.
_CALLS: dict[str, Callable[[str, tuple[Any, ...], dict[str, Any]], Any]] = {
    **dict.fromkeys(_RESULTS, call_named),
    **dict.fromkeys(_CONVERTED, _call_converted),
    **dict.fromkeys(_VARIADIC, _call_variadic),
    **dict.fromkeys(_SPREADS, _call_spread),
    "unique": _call_unique,
}


def _function(name: str, in_place: bool = False) -> Callable[..., Any]:
    """The function of an op, or its form in place."""
    call = None if in_place else _CALLS.get(name)

    if call is not None:

        def function(*args: Any, **kwargs: Any) -> Any:
            return call(name, args, kwargs)

    else:

        def function(*args: Any, **kwargs: Any) -> Any:
            return call_op(name, args, kwargs or None, in_place)

    schema, text, _ = TABLE[name]
    function.__name__ = function.__qualname__ = name + "_" * in_place
    function.__module__ = "keyway"
    function.__doc__ = f"{schema}\n\n{text}"
    return function


def install(namespace: dict[str, Any]) -> None:
    """Adds each public op to ``Tensor`` and to ``namespace``; what is there stays."""
    for name, (schema, _, has_in_place) in TABLE.items():
        if not is_public(name):
            continue
        function = _function(name)
        namespace.setdefault(name, function)
        if not schema[len(name) + 1 :].startswith("Tensor self"):
            continue
        if not hasattr(Tensor, name):
            setattr(Tensor, name, function)
        if has_in_place and not hasattr(Tensor, name + "_"):
            setattr(Tensor, name + "_", _function(name, True))


_PAIRS = {**dict.fromkeys(("kthvalue", "median", "mode", "nanmedian"), _VALUES), "aminmax": _results("min", "max")}


def _composed(name: str) -> Callable[..., Any]:
    """A function of the Rust side that is no op."""
    own, pair = getattr(tensors, name), _PAIRS.get(name)

    def function(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        made = own(*args, **kwargs)
        return pair(*made) if pair is not None and isinstance(made, tuple) else made

    function.__name__ = function.__qualname__ = name
    function.__module__ = "keyway"
    function.__doc__ = f"{name}{own.__text_signature__}\n\n{own.__doc__}"
    return function


# Functions that are combinations of ops, which are methods of tensors too.
COMPOSED = sorted(name for name in vars(tensors) if not name.startswith("_"))


def install_composed(namespace: dict[str, Any]) -> None:
    """Adds the functions that are no ops to ``Tensor`` and to ``namespace``; what is there stays."""
    for name in COMPOSED:
        function = _composed(name)
        if not name.endswith("_"):
            namespace.setdefault(name, function)
        if not hasattr(Tensor, name):
            setattr(Tensor, name, function)


def function_of(name: str) -> Callable[..., Any] | None:
    """The function of a public op, or ``None``."""
    return _function(name) if name in TABLE and is_public(name) else None


def call(name: str, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """Calls the op of this name, also of a plugin: ``keyway.ops.call("vendor.name", x)``."""
    if out is not None:
        kwargs["out"] = out
    return call_op(name, args, kwargs or None)

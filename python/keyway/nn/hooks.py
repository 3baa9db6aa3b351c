"""Functions that modules and optimisers call around their own work."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Callable

from .._keyway import Tensor
from ..autograd import Function

if TYPE_CHECKING:
    from .module import Module

_NUMBERS = itertools.count()


class Handle:
    """A registered function; ``remove`` ends its calls, and so does the end of a ``with`` block."""

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self._hooks, self._number = hooks, number

    @classmethod
    def of(cls, hooks: dict[int, Any], hook: Any, first: bool = False) -> Handle:
        """Registers a hook, before the others if ``first``."""
        number = next(_NUMBERS)
        others = dict(hooks) if first else {}
        if first:
            hooks.clear()
        hooks[number] = hook
        hooks.update(others)
        return cls(hooks, number)

    def remove(self) -> None:
        """Ends the calls of the function."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.remove()


class Hooks:
    """The hooks of one module."""

    def __init__(self) -> None:
        # With each function, whether it takes keyword arguments too.
        self.before: dict[int, tuple[Callable[..., Any], bool]] = {}
        self.after: dict[int, tuple[Callable[..., Any], bool]] = {}
        self.before_backward: dict[int, Callable[..., Any]] = {}
        self.after_backward: dict[int, Callable[..., Any]] = {}

    def call(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a module, with its hooks."""
        for hook, keywords in tuple(self.before.values()):
            made = hook(module, args, kwargs) if keywords else hook(module, args)
            if made is not None and keywords:
                args, kwargs = made
            elif made is not None:
                args = made if isinstance(made, tuple) else (made,)
        watch = _Backward(module, self) if self.before_backward or self.after_backward else None
        if watch is not None:
            args = watch.inputs(args)
        result = module.forward(*args, **kwargs)
        for hook, keywords in tuple(self.after.values()):
            made = hook(module, args, kwargs, result) if keywords else hook(module, args, result)
            if made is not None:
                result = made
        return result if watch is None else watch.outputs(result)


class _Seen(Function):
    """Passes tensors on, and calls a function with their gradients, which it may replace."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return None, *ctx.seen(grads)


class _Backward:
    """The backward hooks of one call of a module."""

    def __init__(self, module: Module, hooks: Hooks) -> None:
        self._module, self._hooks = module, hooks
        self._of_outputs: tuple[Tensor | None, ...] = ()
        self._waiting = False

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments; their gradients are the ``grad_input`` of hooks."""
        at = [index for index, arg in enumerate(args) if isinstance(arg, Tensor)]
        self._waiting = any(args[index].requires_grad for index in at)
        if not self._waiting:
            return args

        def seen(grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
            whole: list[Tensor | None] = [None] * len(args)
            for index, grad in zip(at, grads):
                whole[index] = grad
            made = self._call(tuple(whole))
            return tuple(made[index] for index in at)

        passed = dict(zip(at, _Seen.apply(seen, *(args[index] for index in at))))
        return tuple(passed.get(index, arg) for index, arg in enumerate(args))

    def outputs(self, result: Any) -> Any:
        """The results; their gradients are the ``grad_output`` of hooks."""
        results = [result] if isinstance(result, Tensor) else list(result) if isinstance(result, (tuple, list)) else []
        at = [index for index, one in enumerate(results) if isinstance(one, Tensor)]
        if not any(results[index].requires_grad for index in at):
            return result

        def seen(grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
            for hook in tuple(self._hooks.before_backward.values()):
                made = hook(self._module, grads)
                if made is not None:
                    grads = made if isinstance(made, tuple) else (made,)
            self._of_outputs = grads
            if not self._waiting:
                # No input has a gradient, so the hooks would never be called.
                self._call((None,) * len(at))
            return grads

        passed = dict(zip(at, _Seen.apply(seen, *(results[index] for index in at))))
        made = [passed.get(index, one) for index, one in enumerate(results)]
        return made[0] if isinstance(result, Tensor) else type(result)(made)

    def _call(self, of_inputs: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        for hook in tuple(self._hooks.after_backward.values()):
            made = hook(self._module, of_inputs, self._of_outputs)
            if made is not None:
                of_inputs = made if isinstance(made, tuple) else (made,)
        return of_inputs

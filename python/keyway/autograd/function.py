"""Functions whose derivative is written by hand."""

from __future__ import annotations

import functools
from threading import get_ident
from typing import Any, Callable

from .._keyway import Tensor, _apply_function, is_grad_enabled
from .modes import no_grad


class FunctionCtx:
    """The state that a call of a ``Function`` saves in ``forward`` for ``backward``.

    Tensors are saved by ``save_for_backward``, which detects later changes in place; other values are attributes.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self.needs_input_grad = ()
        self._to_save: tuple[Tensor | None, ...] = ()
        self._present: tuple[bool, ...] = ()
        self._saved: dict[int, tuple[Tensor | None, ...]] = {}
        self._dirty: tuple[Tensor, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True
        # The number of each result among those that are tensors.
        self._outputs: list[int | None] = []

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves tensors for ``backward``, which reads them as ``saved_tensors``."""
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of ``save_for_backward``."""
        saved = self._saved.get(get_ident())
        if saved is not None:
            return saved
        if self._present and not self._to_save:
            raise RuntimeError("saved_tensors: expected a call inside `backward`, where the tensors are at hand")
        return self._to_save

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Names arguments that ``forward`` changes in place and returns."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Names results without a gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros for a result without a gradient, or ``None``."""
        self._materialize = value

    def _backward(self, function: Any, saved: tuple[Tensor | None, ...], grads: tuple[Any, ...]) -> Any:
        thread = get_ident()
        before = self._saved.get(thread)
        self._saved[thread] = saved
        try:
            return function.backward(self, *grads)
        finally:
            if before is None:
                del self._saved[thread]
            else:
                self._saved[thread] = before


class Function:
    """A function with a derivative of its own: static methods ``forward`` and ``backward``, called by ``apply``.

    ``forward(ctx, *args)`` computes the results without being recorded. ``backward(ctx, *grads)`` returns a gradient for each
    argument, ``None`` for one without; it is recorded itself if gradients of gradients are computed. ``forward(*args)`` without
    ``ctx`` goes with ``setup_context(ctx, inputs, output)``.
    """

    _separate = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise TypeError(f"{name}: a Function is not instantiated; call `{name}.apply(...)`")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._separate = cls.setup_context is not Function.setup_context

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results."""
        raise NotImplementedError("a subclass of Function defines the static method `forward(ctx, *args)`")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves values for ``backward``, where ``forward`` has no ``ctx``; called only if a subclass defines it."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Computes a gradient for each argument of ``forward``."""
        raise NotImplementedError("a subclass of Function defines the static method `backward(ctx, *grads)`")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls the function and records its derivative. A result is a tensor or a tuple."""
        return _apply_function(cls, FunctionCtx(), args)


class _Once(Function):
    """Passes gradients on, and refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, name: str, *tensors: Any) -> Any:
        ctx.name = name
        return tuple(tensor.clone() if isinstance(tensor, Tensor) else tensor for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(f"{ctx.name} is marked `once_differentiable`, so there is no gradient of its gradient")


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a ``backward`` that computes without the graph, so that differentiating it is an error."""

    @functools.wraps(backward)
    def called(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            made = backward(ctx, *grads)
        recorded = is_grad_enabled() and any(isinstance(grad, Tensor) and grad.requires_grad for grad in grads)
        if not recorded:
            return made
        results = made if isinstance(made, tuple) else (made,)
        at = [index for index, result in enumerate(results) if isinstance(result, Tensor)]
        marked = _Once.apply(backward.__qualname__, *(results[index].detach().requires_grad_() for index in at))
        named = dict(zip(at, marked))
        return tuple(named.get(index, result) for index, result in enumerate(results))

    return called

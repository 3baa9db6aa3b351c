"""Gradient checkpointing: results that the backward pass recomputes instead of saving."""

from __future__ import annotations

from typing import Any, Callable, Iterable

from .._keyway import Tensor, _checkpoint


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls a function without keeping what it computes; a backward pass calls it again, with the same random numbers.

    The results are a tensor, or a tuple or list of tensors. ``use_reentrant`` is accepted for programs of PyTorch; there is one
    implementation.
    """
    at = [index for index, arg in enumerate(args) if isinstance(arg, Tensor)]
    form: list[type] = []

    def called(*tensors: Tensor) -> list[Tensor]:
        all_args = list(args)
        for index, tensor in zip(at, tensors):
            all_args[index] = tensor
        made = function(*all_args, **kwargs)
        form[:] = [type(made)]
        results = [made] if isinstance(made, Tensor) else list(made)
        for result in results:
            if not isinstance(result, Tensor):
                raise TypeError(f"checkpoint: expected a function of tensors as results, got {type(result).__name__}")
        return results

    made = _checkpoint(called, [args[index] for index in at])
    if issubclass(form[0], Tensor):
        return made[0]
    return list(made) if form[0] is list else made


def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Calls functions one after another, in ``segments`` parts; all but the last are checkpoints."""
    all_functions = list(functions)
    size = max(len(all_functions) // segments, 1)
    starts = list(range(0, size * (segments - 1), size))

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def called(x: Any) -> Any:
            for function in all_functions[start:end]:
                x = function(x)
            return x

        return called

    for start in starts:
        input = checkpoint(part(start, start + size), input)
    return part(len(starts) * size, len(all_functions))(input)

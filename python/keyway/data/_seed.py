"""Seeds: the random numbers of a batch depend on the loader's seed, the epoch and the batch alone, not on the number of workers."""

from __future__ import annotations

import random
import sys
from typing import Any, Callable

from .._keyway import _with_seed, randint

_MASK = (1 << 64) - 1


def given(owner: str, seed: int | None, generator: Any = None) -> int:
    """The seed of the arguments ``seed`` and ``generator``, or one that is drawn from the default generator."""
    if seed is None:
        seed = generator
    if seed is None:
        return int(randint(1 << 62, (1,)).item())
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"{owner}: expected an int as the seed, got {type(seed).__name__}")
    return seed & _MASK


def mixed(*numbers: int) -> int:
    """A seed from several numbers (splitmix64, S. Vigna)."""
    state = 0
    for number in numbers:
        state = (state ^ (number & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state


def _set(seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


def run(seed: int, function: Callable[[], Any]) -> Any:
    """The result of a function whose random numbers, also of ``random`` and NumPy, come from a seed; their states are restored."""
    numpy = sys.modules.get("numpy")
    states = random.getstate(), numpy.random.get_state() if numpy is not None else None
    _set(seed)
    try:
        return _with_seed(seed, function)
    finally:
        random.setstate(states[0])
        if numpy is not None:
            numpy.random.set_state(states[1])


def run_in_worker(seed: int, function: Callable[[], Any]) -> Any:
    """As ``run``, in a process in which no one else draws numbers."""
    _set(seed)
    return _with_seed(seed, function)

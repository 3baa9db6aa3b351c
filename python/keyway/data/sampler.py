"""Samplers: the order in which a loader reads the samples."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Sequence, Sized

from .._keyway import _shuffled, _with_seed, rand, randint, tensor
from . import _seed


class Sampler:
    """Indices of samples. Subclasses define ``__iter__``, and ``__len__`` where it is known.

    A loader calls ``set_epoch``, if there is one, with the index of each epoch before it iterates.
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class _Seeded(Sampler):
    """A sampler whose order depends on a seed and on the epoch, which each iteration advances."""

    def __init__(self, seed: int | None, generator: int | None) -> None:
        self.seed = _seed.given(type(self).__name__, seed, generator)
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration."""
        self.epoch = epoch

    def _next(self) -> int:
        self.epoch += 1
        return self.epoch - 1

    def _drawn(self, draw: Any) -> list[Any]:
        epoch = self._next()
        return list(_with_seed(_seed.mixed(self.seed, epoch), lambda: draw().tolist()))


class SequentialSampler(Sampler):
    """The samples in their own order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(_Seeded):
    """The samples in random order, or ``num_samples`` draws with replacement. An order depends on the seed and the epoch alone."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed, generator)
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"RandomSampler: expected at least 1 sample, got {num_samples}")
        self.data_source, self.replacement, self._samples = data_source, replacement, num_samples

    @property
    def num_samples(self) -> int:
        """The number of samples of an epoch."""
        return len(self.data_source) if self._samples is None else self._samples

    def __iter__(self) -> Iterator[int]:
        length, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            if length:
                yield from self._drawn(lambda: randint(length, (wanted,)))
            return
        epoch, part = self._next(), 0
        while wanted > 0 and length:
            order = _shuffled(length, self.seed if part == 0 else _seed.mixed(self.seed, part), epoch)[:wanted]
            wanted, part = wanted - len(order), part + 1
            yield from order

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Seeded):
    """Some indices in random order."""

    def __init__(self, indices: Sequence[int], generator: int | None = None, *, seed: int | None = None) -> None:
        super().__init__(seed, generator)
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return (self.indices[at] for at in _shuffled(len(self.indices), self.seed, self._next()))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Seeded):
    """``num_samples`` indices, drawn with probabilities in proportion to weights."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed, generator)
        self.weights = tensor(list(weights), dtype="float64")
        available = int((self.weights > 0).sum().item())
        if num_samples < 1 or not replacement and num_samples > available:
            most = "" if replacement else f" to {available}, the number of weights above 0"
            raise ValueError(f"WeightedRandomSampler: expected num_samples from 1{most}, got {num_samples}")
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self) -> Iterator[int]:
        weights = self.weights / self.weights.sum()

        def draw() -> Any:
            if self.replacement:
                ends = weights.cumsum(0)
                drawn = rand(self.num_samples, dtype="float64") * ends[-1]
                return (drawn.unsqueeze(1) >= ends).sum(1).clamp(0, len(weights) - 1)
            # The largest of u^(1/w) are draws without replacement (Efraimidis and Spirakis 2006).
            keys = rand(len(weights), dtype="float64").log() / weights
            return keys.topk(self.num_samples)[1]

        return iter(self._drawn(draw))

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices of another sampler; the last is shorter, or is left out with ``drop_last``."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"BatchSampler: expected a batch size of at least 1, got {batch_size!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the sampler."""
        change = getattr(self.sampler, "set_epoch", None)
        if change is not None:
            change(epoch)

    def __iter__(self) -> Iterator[list[Any]]:
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        samples = len(self.sampler)  # type: ignore[arg-type]
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

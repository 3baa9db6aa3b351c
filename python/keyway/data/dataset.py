"""Data sets."""

from __future__ import annotations

import bisect
import math
from itertools import accumulate
from typing import Any, Iterator, Sequence

from .._keyway import Tensor, _digits, _shuffled, tensor
from . import _seed


class Dataset:
    """Samples by index. Subclasses define ``__getitem__``, and ``__len__`` for samplers.

    ``__getitems__``, if defined, returns the list of the samples of a list of indices at once.
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples in an order of their own. Subclasses define ``__iter__``.

    Each worker process iterates over a copy: ``get_worker_info`` tells the copies apart, so that each returns its own part.
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class TensorDataset(Dataset):
    """Samples that are the rows of tensors of the same length: a tuple of one row of each."""

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: expected at least one tensor, got none")
        lengths = [len(member) for member in tensors]
        if len(set(lengths)) > 1:
            raise ValueError(f"TensorDataset: expected tensors of one length, got {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(member[index] for member in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def _rows(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]] | None:
        """Each tensor and the indices of its rows, for one call per batch; ``None`` for indices that are not ints from 0."""
        length = len(self)
        if not all(type(index) is int and 0 <= index < length for index in indices):
            return None
        wanted = tensor(indices)
        return [(member, wanted) for member in self.tensors]


class Subset(Dataset):
    """The samples of a data set at some indices."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[one] for one in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        mapped = [self.indices[index] for index in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return list(several(mapped)) if several is not None else [self.dataset[index] for index in mapped]

    def __len__(self) -> int:
        return len(self.indices)

    def _rows(self, indices: Sequence[int]) -> list[tuple[Tensor, Tensor]] | None:
        rows = getattr(self.dataset, "_rows", None)
        if rows is None or not all(type(index) is int and 0 <= index < len(self) for index in indices):
            return None
        found: list[tuple[Tensor, Tensor]] | None = rows([self.indices[index] for index in indices])
        return found


class ConcatDataset(Dataset):
    """The samples of several data sets, one after the other."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: expected at least one data set, got none")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise TypeError("ConcatDataset: expected data sets with indices, got an IterableDataset; use ChainDataset")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"expected an index below {len(self)}, got {index}")
        member = bisect.bisect_right(self.cumulative_sizes, at)
        return self.datasets[member][at - (self.cumulative_sizes[member - 1] if member else 0)]


class ChainDataset(IterableDataset):
    """The samples of several ``IterableDataset``, one after the other."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset


def random_split(dataset: Any, lengths: Sequence[float], generator: int | None = None, *, seed: int | None = None) -> list[Subset]:
    """Parts of a data set with these lengths, or fractions of its length, each sample in one part.

    The order depends on the seed alone; without one it is drawn from the default generator.
    """
    total = len(dataset)
    counts = [int(length) for length in lengths]
    if lengths and math.isclose(sum(lengths), 1.0) and all(0 <= length <= 1 for length in lengths):
        counts = [math.floor(total * length) for length in lengths]
        for extra in range(total - sum(counts)):
            counts[extra % len(counts)] += 1
    if sum(counts) != total or any(count < 0 for count in counts):
        raise ValueError(f"random_split: expected lengths with the sum {total}, or fractions with the sum 1, got {list(lengths)}")
    order = _shuffled(total, _seed.given("random_split", seed, generator), 0)
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends)]


def digits(train: bool = True) -> TensorDataset:
    """The handwritten digits: images as rows of 64 floats from 0 to 1, and labels from 0 to 9; 1,437 for training, 360 for testing.

    Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, 1998), CC BY 4.0.
    """
    images, labels = _digits()[0 if train else 1]
    return TensorDataset(images, labels)

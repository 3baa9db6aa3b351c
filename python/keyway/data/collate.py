"""Batches from samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._keyway import Tensor, _zeros_shared, asarray, call_op, tensor
from ._worker import get_worker_info


def _array_like(value: Any) -> bool:
    return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def _stack(tensors: list[Tensor]) -> Tensor:
    first = tensors[0]
    same = all(member.shape == first.shape and member.dtype == first.dtype for member in tensors)
    if not same:
        shapes = sorted({member.shape for member in tensors})
        if len(shapes) > 1:
            raise ValueError(
                f"default_collate: expected samples of one shape, got {', '.join(map(str, shapes[:4]))}; "
                "pass a `collate_fn` that pads them, or resize them in the data set"
            )
    if same and get_worker_info() is not None and first.device == "cpu" and first.layout == "strided":
        # Stacked where the consumer reads it.
        out = _zeros_shared([len(tensors), *first.shape], first.dtype)
        call_op("stack", (tensors, 0), {"out": out})
        return out
    stacked: Tensor = call_op("stack", (tensors, 0))
    return stacked


def default_convert(sample: Any) -> Any:
    """A sample with its arrays as tensors."""
    if isinstance(sample, Tensor) or isinstance(sample, (str, bytes)):
        return sample
    if _array_like(sample):
        return asarray(sample)
    if isinstance(sample, Mapping):
        return _rebuilt(sample, {key: default_convert(value) for key, value in sample.items()})
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*(default_convert(value) for value in sample))
    if isinstance(sample, tuple):
        return [default_convert(value) for value in sample]
    if isinstance(sample, Sequence):
        return [default_convert(value) for value in sample]
    return sample


def _rebuilt(like: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    if type(like) is dict:
        return values
    try:
        return type(like)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch from a list of samples: tensors and arrays are stacked along a new first dimension, numbers become tensors.

    Dicts, tuples and lists are collated by key or position; text stays a list. Raises TypeError for other samples.
    """
    if not batch:
        raise ValueError("default_collate: expected at least one sample, got none")
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(list(batch))
    if isinstance(first, bool) or isinstance(first, (int, float, complex)):
        dtype = "float64" if isinstance(first, float) else None
        return tensor(list(batch), dtype=dtype)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if _array_like(first):
        return _stack([asarray(sample) for sample in batch])
    if isinstance(first, Mapping):
        return _rebuilt(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, (tuple, list)):
        lengths = {len(sample) for sample in batch}
        if len(lengths) > 1:
            raise ValueError(f"default_collate: expected samples with as many members each, got {sorted(lengths)}")
        members = [default_collate(members) for members in zip(*batch)]
        return type(first)(*members) if hasattr(first, "_fields") else members
    raise TypeError(
        "default_collate: expected samples of tensors, arrays, numbers, text, dicts, tuples or lists, "
        f"got {type(first).__name__}; pass a `collate_fn`"
    )


def rows(members: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    """The rows of each tensor, as ``default_collate`` of them would stack them."""
    shared = get_worker_info() is not None
    made = []
    for member, indices in members:
        if shared and member.device == "cpu" and member.layout == "strided":
            out = _zeros_shared([len(indices), *member.shape[1:]], member.dtype)
            made.append(call_op("index_select", (member, 0, indices), {"out": out}))
        else:
            made.append(call_op("index_select", (member, 0, indices)))
    return made

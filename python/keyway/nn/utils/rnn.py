"""Batches of sequences of several lengths."""

from __future__ import annotations

from typing import Any, Sequence

from ..._keyway import PackedSequence, Tensor, _pack_padded, _pad_packed, pad_sequence, tensor

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The steps of a padded batch, (length, batch, ...), without the padding.

    ``lengths`` is a tensor or a sequence of ints, in falling order unless ``enforce_sorted=False``.
    """
    counts = [int(length) for length in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if enforce_sorted and counts != sorted(counts, reverse=True):
        raise RuntimeError("pack_padded_sequence: expected lengths in falling order; pass `enforce_sorted=False` for others")
    return _pack_padded(input, counts, batch_first)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences without padding."""
    return pack_padded_sequence(pad_sequence(sequences), [len(one) for one in sequences], enforce_sorted=enforce_sorted)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded batch of packed sequences, and their lengths."""
    padded, counts = _pad_packed(sequence, batch_first, padding_value)
    dim = 1 if batch_first else 0
    if total_length is not None:
        missing = total_length - padded.shape[dim]
        if missing < 0:
            raise ValueError(f"pad_packed_sequence: expected a `total_length` of at least {padded.shape[dim]}, got {total_length}")
        from .. import functional as F

        padded = F.pad(padded, [0, 0] * (padded.ndim - 1 - dim) + [0, missing], "constant", padding_value)
    return padded, tensor(counts)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths)]

"""Sparse tensors; they need a backend of their layout, such as the wheel keyway-sparse."""

from __future__ import annotations

from ._keyway import Tensor, call_op, sparse_coo_tensor, sparse_csr_tensor

__all__ = ["mm", "sampled_addmm", "softmax", "sparse_coo_tensor", "sparse_csr_tensor", "sum"]


def mm(sparse: Tensor, dense: Tensor) -> Tensor:
    """The product of two matrices; either may be sparse."""
    made: Tensor = call_op("mm", (sparse, dense))
    return made


def sum(input: Tensor, dim: int | list[int] | None = None) -> Tensor:
    """The sum over dimensions, or of all entries."""
    made: Tensor = call_op("sum", (input,) if dim is None else (input, dim))
    return made


def softmax(input: Tensor, dim: int) -> Tensor:
    """The softmax over the entries of a dimension."""
    made: Tensor = call_op("softmax", (input, dim))
    return made


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the entries of ``input``."""
    product: Tensor = call_op("sparse_mask", (call_op("mm", (mat1, mat2)), input))
    return input * beta + product * alpha

"""Linear algebra with the names of ``torch.linalg``; factorisations need the library ``keyway-linalg``."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _functions, _ops
from ._functions import slogdet, tensordot
from ._keyway import Tensor, matrices

# The ops of this namespace have their own names, arguments and documentation.
_NAMES = (
    "cholesky",
    "cross",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lu_factor",
    "lu_solve",
    "matmul",
    "outer",
    "pinv",
    "qr",
    "solve_triangular",
    "svd",
    "svdvals",
    "trace",
)
globals().update({_name: _ops.function_of(_name) for _name in _NAMES})


def norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of all elements, or of vectors along ``dim``."""
    return _functions.norm(x, ord, dim, keepdim)


vector_norm = norm
matrix_norm, matrix_rank, vecdot = Tensor.matrix_norm, Tensor.matrix_rank, Tensor.vecdot
cond, householder_product, multi_dot, vander = (
    matrices.cond, matrices.householder_product, matrices.multi_dot, matrices.vander
)
det, matrix_exp, matrix_power = Tensor.det, Tensor.matrix_exp, Tensor.matrix_power


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution ``X`` of ``A @ X = B`` for square matrices, of ``X @ A = B`` if not ``left``.

    ``B`` is a matrix, a vector, or a batch of them: one vector if it has one dimension, vectors if its shape is that of ``A`` without the
    last dimension.
    """
    made: Tensor = matrices.solve(A, B, left)
    return made


def matrix_transpose(a: Tensor) -> Tensor:
    """The matrix with its last two dimensions exchanged."""
    return a.mT


class Lu(NamedTuple):
    """The result of ``lu``: ``A = P @ L @ U``."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu(A: Tensor) -> Lu:
    """The factors of each matrix with rows exchanged: a permutation, a lower and an upper triangular matrix."""
    return Lu(*matrices.lu(A))


class Lstsq(NamedTuple):
    """The result of ``lstsq``."""

    solution: Tensor


def lstsq(A: Tensor, B: Tensor) -> Lstsq:
    """The solution of least squares, (..., n, k), of the least norm if there are several.

    ``matrix_rank`` and ``svdvals`` compute the other results of PyTorch's function.
    """
    return Lstsq(matrices.lstsq(A, B))

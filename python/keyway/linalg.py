"""Linear algebra with the names of ``torch.linalg``; factorisations need the library ``keyway-linalg``."""

from __future__ import annotations

from typing import Any

from . import _ops
from ._keyway import Tensor, arange, call_op

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
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
)
_ops.install_only(globals(), _NAMES)


def norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of all elements, or of vectors along ``dim``."""
    made: Tensor = call_op("norm", (x, ord, dim, keepdim))
    return made


vector_norm = norm


def slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant, and the logarithm of its absolute value, by the LU factorisation."""
    factors, pivots = call_op("lu_factor", (a,))
    diagonal = factors.diagonal(0, -2, -1)
    # Rows that were exchanged, each with a factor of -1.
    moved = (pivots.long() != arange(1, pivots.size(-1) + 1)).long().sum(-1)
    signs = diagonal.sgn() if a.dtype.is_complex else diagonal.sign()
    sign = signs.prod(-1) * (1 - 2 * (moved % 2))
    return sign, diagonal.abs().log().sum(-1)


def det(a: Tensor) -> Tensor:
    """The determinant, by the LU factorisation."""
    sign, logarithm = slogdet(a)
    return sign * logarithm.exp()


def matrix_transpose(a: Tensor) -> Tensor:
    """The matrix with its last two dimensions exchanged."""
    return a.mT

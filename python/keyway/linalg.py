"""Linear algebra with the names of ``torch.linalg``; factorisations need the library ``keyway-linalg``."""

from __future__ import annotations

from typing import Any

from . import _ops
from ._keyway import Tensor, call_op

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
globals().update({_name: _ops.function_of(_name) for _name in _NAMES})


def norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of all elements, or of vectors along ``dim``."""
    made: Tensor = call_op("norm", (x, ord, dim, keepdim))
    return made


vector_norm = norm
det, matrix_exp, matrix_power, slogdet = Tensor.det, Tensor.matrix_exp, Tensor.matrix_power, Tensor.slogdet


def matrix_transpose(a: Tensor) -> Tensor:
    """The matrix with its last two dimensions exchanged."""
    return a.mT

"""Functions that are combinations of ops, with the names and semantics of PyTorch or NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple, Sequence

from ._keyway import Tensor, asarray, call_op, composed, get_default_dtype, matrices, meshgrid, randint


def as_tensor(data: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """``asarray`` with PyTorch's arguments."""
    return asarray(data, dtype=dtype, device=device)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def concatenate(tensors: Sequence[Tensor], axis: int | None = 0) -> Tensor:
    """``cat`` with NumPy's arguments; all elements in one dimension if ``axis`` is ``None``."""
    if axis is None:
        tensors, axis = [tensor.reshape(-1) for tensor in tensors], 0
    made: Tensor = call_op("cat", (tensors, axis))
    return made


def broadcast_to(input: Tensor, shape: Sequence[int]) -> Tensor:
    """A view of a shape, in which sizes of 1 are repeated."""
    made: Tensor = call_op("expand", (input, list(shape)))
    return made


def is_tensor(obj: object) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The elements with those below ``min`` or above ``max`` set to these, which are numbers or tensors that broadcast."""
    made: Tensor
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        made = input if min is None else call_op("maximum", (input, min))
        return made if max is None else call_op("minimum", (made, max))
    made = call_op("clamp", (input, min, max))
    return made


def clip(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``clamp`` by NumPy's name."""
    return clamp(input, min, max)


def real(input: Tensor) -> Tensor:
    """A view of the real parts; a real tensor itself."""
    return input.real


def imag(input: Tensor) -> Tensor:
    """A view of the imaginary parts of a complex tensor."""
    return input.imag


def conj(input: Tensor) -> Tensor:
    """The complex conjugates; a real tensor itself."""
    made: Tensor = call_op("conj", (input,)) if input.dtype.is_complex else input
    return made


def sgn(input: Tensor) -> Tensor:
    """The signs: of a complex number the number divided by its absolute value, 0 of 0."""
    made: Tensor = call_op("sgn" if input.dtype.is_complex else "sign", (input,))
    return made


def norm(input: Tensor, p: float = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of all elements, or of vectors along ``dim``; of complex numbers that of their absolute values."""
    magnitudes = call_op("abs", (input,)) if input.dtype.is_complex else input
    made: Tensor = call_op("norm", (magnitudes, p, dim, keepdim))
    return made


def isin(elements: Any, test_elements: Any, invert: bool = False) -> Tensor:
    """Whether each element is one of ``test_elements``, or with ``invert`` is none of them; one of both may be a number."""
    if not isinstance(elements, Tensor):
        elements = asarray(elements, dtype=test_elements.dtype)
    if not isinstance(test_elements, Tensor):
        test_elements = asarray(test_elements, dtype=elements.dtype)
    made: Tensor = call_op("isin", (elements, test_elements, invert))
    return made


class Slogdet(NamedTuple):
    """The result of ``slogdet``."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(input: Tensor) -> Slogdet:
    """The sign of each determinant, and the logarithm of its absolute value."""
    return Slogdet(*input._slogdet())


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The solution ``X`` of ``A @ X = input`` by the Cholesky factor ``L`` of ``A``, the lower one unless ``upper``."""
    made: Tensor = matrices.cholesky_solve(input, L, upper)
    return made


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix by its Cholesky factor, the lower one unless ``upper``."""
    made: Tensor = matrices.cholesky_inverse(L, upper)
    return made


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along a dimension, ``n`` times, after joining ``prepend`` and ``append`` to the tensor."""
    parts = [part for part in (prepend, input, append) if part is not None]
    made: Tensor = call_op("diff", (call_op("cat", (parts, dim)) if len(parts) > 1 else input, n, dim))
    return made


def searchsorted(
    sorted_sequence: Tensor, values: Any, right: bool = False, side: str | None = None, sorter: Tensor | None = None
) -> Tensor:
    """The first insertion index of each value that preserves the order of the sequence's last dimension, or with ``right`` or
    ``side="right"`` the last one. ``sorter`` has the indices that sort the sequence, as ``argsort`` returns them."""
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: expected side to be 'left' or 'right', got {side!r}")
    if right and side == "left":
        raise ValueError("searchsorted: expected `right` and `side` to agree, got right=True with side='left'")
    if sorter is not None:
        sorted_sequence = call_op("take_along_dim", (sorted_sequence, sorter, -1))
    made: Tensor = call_op("searchsorted", (sorted_sequence, values, right or side == "right"))
    return made


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero: a row for each, or with ``as_tuple`` a tensor for each dimension."""
    found: Tensor = call_op("nonzero", (input,))
    return call_op("unbind", (found, 1)) if as_tuple else found


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """The sum of products over the last ``dims`` dimensions of ``a`` and the first of ``b``, or over pairs of dimensions: a
    sequence of those of ``a``, and one of those of ``b``."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: expected at most {min(a.ndim, b.ndim)} dimensions, got {dims}")
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    made: Tensor = call_op("tensordot", (a, b, list(dims[0]), list(dims[1])))
    return made


def bernoulli(input: Tensor) -> Tensor:
    """Ones with the probabilities of the input, and zeros."""
    made: Tensor = composed.bernoulli(input)
    return made


def multinomial(input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Indices that are drawn with the weights of each row."""
    made: Tensor = composed.multinomial(input, num_samples, replacement)
    return made


def poisson(input: Tensor) -> Tensor:
    """Counts of Poisson distributions with the rates of the input."""
    made: Tensor = composed.poisson(input)
    return made


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after another along a dimension."""
    made: Tensor = call_op("cat", (list(tensors), dim))
    return made


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension."""
    made: Tensor = call_op("stack", (list(tensors), dim))
    return made


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products over the last dimensions of both tensors; the product if one has no dimension."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return tensordot(input, other, ([input.ndim - 1], [other.ndim - 1]))


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order ``p`` of the difference."""
    return norm(input - other, p)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``; with ``beta=0`` the input is not read."""
    product = alpha * (mat @ vec)
    return product if beta == 0 else beta * input + product


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; with ``beta=0`` the input is not read."""
    product: Tensor = alpha * call_op("outer", (vec1, vec2))
    return product if beta == 0 else beta * input + product


def adjoint(input: Tensor) -> Tensor:
    """A view with the last two dimensions exchanged; of complex numbers the conjugates."""
    made: Tensor = input.mH
    return made


def _parts(name: str, input: Tensor, indices_or_sections: Any, dim: int, least: int) -> tuple[Tensor, ...]:
    if input.ndim < least:
        raise ValueError(f"{name}: expected a tensor of at least {least} dimensions, got {input.ndim}")
    sections = indices_or_sections
    if isinstance(sections, int) and (sections < 1 or input.shape[dim] % sections):
        raise ValueError(f"{name}: expected a number of sections that divides {input.shape[dim]}, got {sections}; `tensor_split` makes unequal ones")
    return input.tensor_split(sections, dim)


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Views of equal parts, or of those between indices, along the second dimension, of a vector along its only one."""
    return _parts("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Views of equal parts, or of those between indices, along the first dimension of at least two."""
    return _parts("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Views of equal parts, or of those between indices, along the third dimension."""
    return _parts("dsplit", input, indices_or_sections, 2, 3)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along the second dimension, vectors as columns."""
    return cat([tensor.reshape(-1, 1) if tensor.ndim < 2 else tensor for tensor in tensors], 1)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements of the input on a diagonal."""
    return input.reshape(-1).diag_embed(offset)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of an element of each vector, as rows."""
    grids = meshgrid(*tensors, indexing="ij")
    return stack([grid.reshape(-1) for grid in grids], 1) if len(tensors) > 1 else tensors[0]


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a vector in their order, as rows."""
    if input.ndim != 1:
        raise ValueError(f"combinations: expected a vector, got a tensor of {input.ndim} dimensions")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if r == 0:
        return input[:0]
    rows = list(choose(range(len(input)), r))
    return input[asarray(rows, dtype="int64").reshape(len(rows), r)]


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """The tensor between elements of one value, ``pad`` of them before and after, from the last dimension on."""
    made: Tensor = call_op("pad", (input, list(pad), "constant", value))
    return made


def scalar_tensor(s: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of one number without dimensions."""
    return asarray(s, dtype=dtype, device=device)


def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """``input * 2 ** other``, without overflow between; in the dtype of the input if that is a floating-point one."""
    scale = other.to(dtype=input.dtype if input.dtype.is_floating_point else get_default_dtype())
    half = (scale / 2).trunc()
    return input * half.exp2() * (scale - half).exp2()


def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """``log2(2 ** input + 2 ** other)``, without overflow."""
    made: Tensor = call_op("logaddexp", (input * math.log(2), other * math.log(2))) / math.log(2)
    return made


def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part of each element is 0."""
    return input.imag == 0 if input.dtype.is_complex else input.isnan() | True


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are computed immediately."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negated elements are computed immediately."""
    return input


def msort(input: Tensor) -> Tensor:
    """The elements sorted along the first dimension."""
    made: Tensor = call_op("sort", (input, 0))[0]
    return made


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of these sizes along a dimension."""
    made: tuple[Tensor, ...] = input.split(list(split_sizes), dim)
    return made


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The indices in each dimension of elements of a row-major tensor of a shape, by their indices in the flattened one."""
    made: list[Tensor] = []
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype.name == "bool":
        raise TypeError(f"unravel_index: expected indices of integers, got {indices.dtype.name}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index: expected sizes of 0 or more, got {tuple(sizes)}")
    indices = indices.to(dtype="int64")
    for size in reversed(sizes):
        made.append(indices % size)
        indices = indices // size
    return tuple(reversed(made))


def chain_matmul(*matrices_: Tensor) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications."""
    made: Tensor = matrices.multi_dot(matrices_)
    return made


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not 0."""
    return bool(input.item())


def randint_like(input: Tensor, low: int, high: int | None = None, *, dtype: Any = None) -> Tensor:
    """Random integers from ``low``, or from 0, below ``high``, in the shape and dtype of the input."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, tuple(input.shape), dtype=dtype or input.dtype, device=input.device)

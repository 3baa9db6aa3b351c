"""Products of vectors and matrices. PyTorch rounds each product of an equation."""

from stepwise import in_f64


def scaled(name):
    return lambda torch, x, a, b, beta, alpha: getattr(torch, name)(x, a, b, beta=beta, alpha=alpha)


def einsum(torch, equation, operands):
    if not operands[0].is_floating_point():
        # Where it sums over a label of one operand alone it gives i64, or multiplies that by another dtype and
        # fails. In NumPy, as here, the result has the operands' dtype.
        raise TypeError("equations of integers are not supported")
    return torch.einsum(equation, *operands)


def numpy_scaled(numpy, x, a, b, beta, alpha):
    return alpha * (a @ b) + (beta * x if beta else 0)


def linear(torch, x, weight, bias):
    return torch.nn.functional.linear(x, weight, bias)


def product(numpy, a, b):
    return a @ b


def numpy_tensordot(numpy, a, b, dims, other):
    for i, j in zip(dims, other):
        # NumPy repeats no dimension of size 1.
        n = max(a.shape[i], b.shape[j]) if 0 not in (a.shape[i], b.shape[j]) else 0
        a, b = (numpy.repeat(t, n, axis=d) if t.shape[d] == 1 else t for t, d in ((a, i), (b, j)))
    return numpy.tensordot(a, b, (dims, other)).astype(a.dtype)


def lu_solve(torch, lu, pivots, b, left, adjoint):
    # PyTorch broadcasts the factors, but not the pivots.
    return torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint)


def signed(x):
    """1 or -1 for each column, by which its first component that is not negligible becomes positive."""
    large = x.abs() > x.abs().amax(-2, keepdim=True) / 1024
    first = large.int().argmax(-2, keepdim=True)
    return x.gather(-2, first).sign()


def qr(torch, a, mode):
    q, r = torch.linalg.qr(a, mode=mode)
    signs = torch.ones(q.shape[:-2] + q.shape[-1:], dtype=a.dtype)
    diagonal = r.diagonal(dim1=-2, dim2=-1)
    signs[..., :diagonal.shape[-1]] = torch.where(diagonal < 0, -1.0, 1.0)
    return q * signs[..., None, :], r * signs[..., :, None]


def symmetric(a):
    return (a + a.mT) / 2


def eigh(torch, a):
    values, vectors = torch.linalg.eigh(symmetric(a))
    return values, vectors * signed(vectors) if a.numel() else vectors


def svd(torch, a, full):
    u, s, vt = torch.linalg.svd(a, full_matrices=full)
    if not s.numel() or (full and a.shape[-1] != a.shape[-2]):
        # The vectors beyond the singular values are any basis.
        raise TypeError("vectors that are not unique")
    signs = signed(u)
    return u * signs, s, vt * signs.mT


OPS = {
    "cholesky": lambda torch, a, upper: torch.linalg.cholesky(symmetric(a), upper=upper),
    "solve_triangular": lambda torch, a, b, upper, left, unit: torch.linalg.solve_triangular(
        a, b, upper=upper, left=left, unitriangular=unit),
    "lu_factor": lambda torch, a: tuple(torch.linalg.lu_factor_ex(a))[:2],
    "lu_solve": lu_solve,
    "solve": lambda torch, a, b, left: torch.linalg.solve(a, b, left=left),
    "inv": lambda torch, a: torch.linalg.inv(a),
    "qr": qr, "eigh": eigh, "svd": svd,
    "eigvalsh": lambda torch, a: torch.linalg.eigvalsh(symmetric(a)),
    "svdvals": lambda torch, a: torch.linalg.svdvals(a),
    "pinv": lambda torch, a, atol, rtol: torch.linalg.pinv(a, atol=atol, rtol=rtol),
    "einsum": in_f64(einsum),
    "tensordot": lambda torch, a, b, dims, other: torch.tensordot(a, b, dims=(dims, other)),
    "cross": in_f64(lambda torch, a, b, dim: torch.linalg.cross(a, b, dim=dim)),
    "trace": lambda torch, a: a.diagonal().sum(),
    "addmm": scaled("addmm"), "baddbmm": scaled("baddbmm"),
    **{name: (lambda name: lambda torch, a, b: getattr(torch, name)(a, b))(name)
       for name in ("bmm", "dot", "matmul", "mm", "mv", "outer")},
    "linear": linear,
}

NUMPY = {
    "cross": lambda numpy, a, b, dim: numpy.cross(a, b, axis=dim),
    "einsum": lambda numpy, equation, operands: numpy.einsum(equation, *operands),
    "tensordot": numpy_tensordot,
    "trace": lambda numpy, a: numpy.trace(a, dtype=numpy.int64),
    "addmm": numpy_scaled, "baddbmm": numpy_scaled,
    **{name: product for name in ("bmm", "dot", "matmul", "mm", "mv")},
    "outer": lambda numpy, a, b: numpy.outer(a, b),
    "linear": lambda numpy, x, weight, bias: x @ weight.T + (0 if bias is None else bias),
}

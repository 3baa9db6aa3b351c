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


OPS = {
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

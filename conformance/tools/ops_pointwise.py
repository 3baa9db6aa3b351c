"""Calls of the element-wise ops."""

OPS = {
    "add": lambda torch, a, b, alpha: torch.add(a, b, alpha=alpha),
}

NUMPY = {
    "add": lambda numpy, a, b, alpha: a + a.dtype.type(alpha) * b,
}

EXPLAINED = {}

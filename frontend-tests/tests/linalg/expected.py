"""Losses of factorisations of fixed matrices and their gradients, computed by PyTorch. Writes `expected.txt`: the name of a case, the
loss, and the elements of the gradient, real and imaginary parts. The losses do not depend on the phases of vectors.

    python3 expected.py > expected.txt
"""

import torch

torch.set_default_dtype(torch.float64)


def values(*sizes, first=0):
    count = 1
    for size in sizes:
        count *= size
    i = torch.arange(first, first + count)
    return (((i * i * 37 + i * 101 + 13) % 199) / 99.5 - 1.0).reshape(sizes)


def complexes(*sizes, first=0):
    return torch.complex(values(*sizes, first=first), values(*sizes, first=first + 70))


def weighted(x, first=40):
    """A real function of all elements."""
    x = x.to(torch.complex128)
    return (x * complexes(*x.shape, first=first)).sum().real


def squares(x, first=60):
    return (x.abs().square() * values(*x.shape, first=first)).sum()


def definite(a):
    n = a.shape[-1]
    return a @ a.mH + n * torch.eye(n)


def eig(a):
    w, v = torch.linalg.eig(a)
    rows = values(a.shape[-1], 1, first=60)
    return (w.abs() ** 3).sum() + (v.abs().square() * rows * w.abs().unsqueeze(-2)).sum()


def eigh(a):
    w, v = torch.linalg.eigh(definite(a))
    return weighted(w) + squares(v)


def svd(a):
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return weighted(s) + squares(u) + squares(vh, 70) + weighted((u * s.square().unsqueeze(-2)) @ vh)


def qr(a):
    q, r = torch.linalg.qr(a)
    return squares(q) + squares(r, 70)


def slogdet(a):
    sign, log = torch.linalg.slogdet(a)
    return log + weighted(sign)


def columns(a):
    return complexes(a.shape[-2], 2, first=110).to(a.dtype) if a.is_complex() else values(a.shape[-2], 2, first=110)


CASES = {
    "cholesky": lambda a: weighted(torch.linalg.cholesky(definite(a))),
    "solve": lambda a: weighted(torch.linalg.solve(a, columns(a))),
    "inv": lambda a: weighted(torch.linalg.inv(a)),
    "det": lambda a: weighted(torch.linalg.det(a)),
    "slogdet": slogdet,
    "qr": qr,
    "eigh": eigh,
    "svd": svd,
    "pinv": lambda a: weighted(torch.linalg.pinv(a)),
    "lstsq": lambda a: weighted(torch.linalg.pinv(a) @ columns(a)),
    "matrix_exp": lambda a: weighted(torch.linalg.matrix_exp(a)),
    "nuclear": lambda a: torch.linalg.matrix_norm(a, "nuc"),
    "cond": lambda a: torch.linalg.cond(a),
    "eig": eig,
    "eigvals": lambda a: (torch.linalg.eigvals(a).abs() ** 3).sum(),
    "matrix_power": lambda a: weighted(torch.linalg.matrix_power(a, -2)),
    "cholesky_solve": lambda a: weighted(torch.cholesky_solve(columns(a), torch.linalg.cholesky(definite(a)))),
}
OF_ANY_SIZES = ["qr", "svd", "pinv", "lstsq", "nuclear"]

for kind in ["complex", "real"]:
    for sizes in [(3, 3), (4, 2), (2, 3)]:
        for name, case in CASES.items():
            if sizes != (3, 3) and name not in OF_ANY_SIZES:
                continue
            a = (complexes if kind == "complex" else values)(*sizes).requires_grad_(True)
            loss = case(a)
            loss.backward()
            grad = torch.view_as_real(a.grad) if a.is_complex() else a.grad
            numbers = " ".join(repr(x) for x in [loss.item(), *grad.flatten().tolist()])
            print(f"{kind} {sizes[0]}x{sizes[1]} {name} {numbers}")

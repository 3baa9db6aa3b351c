"""Ops of sparse tensors, on what these stand for."""


def to_sparse(torch, x, sparse_dim):
    return x.to_sparse(sparse_dim).to_dense() if sparse_dim else x.clone()


def coalesce(torch, x):
    return x.to_sparse().coalesce().to_dense() if x.ndim else x.clone()


OPS = {
    "coalesce": coalesce,
    "sampled_mm": lambda torch, pattern, a, b: torch.where(pattern != 0, a @ b, 0),
    "sparse_mask": lambda torch, x, mask: torch.where(mask != 0, x, 0),
    "to_sparse": to_sparse,
    "to_sparse_csr": lambda torch, x: x.to_sparse_csr().to_dense(),
}

NUMPY = {
    "coalesce": lambda numpy, x: x.copy(),
    "sampled_mm": lambda numpy, pattern, a, b: numpy.where(pattern != 0, a @ b, 0),
    "sparse_mask": lambda numpy, x, mask: numpy.where(mask != 0, x, 0),
    "to_sparse": lambda numpy, x, sparse_dim: x.copy(),
    "to_sparse_csr": lambda numpy, x: x.copy(),
}

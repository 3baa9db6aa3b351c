"""Views."""

OPS = {
    "as_strided": lambda torch, x, size, stride, offset: torch.as_strided(x, size, stride, offset),
    "diagonal": lambda torch, x, offset, dim1, dim2: x.diagonal(offset, dim1, dim2),
    "expand": lambda torch, x, size: x.expand(size),
    "permute": lambda torch, x, dims: x.permute(dims),
    "reshape": lambda torch, x, shape: x.reshape(shape),
    "select": lambda torch, x, dim, index: x.select(dim, index),
    "slice": lambda torch, x, dim, start, end, step: torch.ops.aten.slice(x, dim, start, end, step),
    "split": lambda torch, x, sizes, dim: x.split(sizes, dim),
    "squeeze": lambda torch, x, dim: x.squeeze() if dim is None else x.squeeze(tuple(dim)),
    "transpose": lambda torch, x, dim0, dim1: x.transpose(dim0, dim1),
    "unbind": lambda torch, x, dim: x.unbind(dim),
    "unfold": lambda torch, x, dim, size, step: x.unfold(dim, size, step),
    "unsqueeze": lambda torch, x, dim: x.unsqueeze(dim),
    "view": lambda torch, x, size: x.view(size),
}

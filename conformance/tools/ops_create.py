"""Calls of the ops that make, copy and draw values."""


def drawn(why="a random stream of its own; its generator is checked by the known answers of Random123"):
    return {op: why for op in ("bernoulli", "dropout", "exponential", "normal", "poisson", "random_int", "uniform")}


def arange(torch, like, start, step):
    count = like.numel()
    return torch.arange(start, start + count * step, step, dtype=like.dtype).reshape(like.shape)


def linspace(torch, like, start, end):
    return torch.linspace(start, end, like.numel(), dtype=like.dtype).reshape(like.shape)


def memory_format_of(torch, a, name):
    """PyTorch's name of a memory format. Its channels_last is for four dimensions; five have one of their own, three
    none, but the values are the same in each."""
    if name == "channels_last":
        return {4: torch.channels_last, 5: torch.channels_last_3d}.get(a.dim(), torch.contiguous_format)
    return {"preserve": torch.preserve_format, "contiguous": torch.contiguous_format}[name]


OPS = {
    "arange": arange,
    "eye": lambda torch, like: torch.eye(*like.shape, dtype=like.dtype),
    "linspace": linspace,
    "tril": lambda torch, a, diagonal: torch.tril(a, diagonal),
    "triu": lambda torch, a, diagonal: torch.triu(a, diagonal),
    "clone": lambda torch, a, memory_format: a.clone(memory_format=memory_format_of(torch, a, memory_format)),
    "copy": lambda torch, a, source: a.clone().copy_(source),
    "fill": lambda torch, a, value: a.clone().fill_(value),
    "to_device": lambda torch, a, device, non_blocking=False: a.to(device, non_blocking=non_blocking),
    "to_dtype": lambda torch, a, dtype: a.to(dtype),
    "to_layout": lambda torch, a, layout, options="": a.to_sparse().to_dense() if a.ndim and layout != "strided" else a.clone(),
}

NUMPY = {
    "arange": lambda numpy, like, start, step: (
        int(start) + numpy.arange(like.size) * int(step)).astype(like.dtype).reshape(like.shape),
    "eye": lambda numpy, like: numpy.eye(*like.shape, dtype=like.dtype),
    "linspace": lambda numpy, like, start, end: (
        numpy.linspace(int(start), int(end), like.size).astype(numpy.int64).astype(like.dtype).reshape(like.shape)),
    "tril": lambda numpy, a, diagonal: numpy.tril(a, diagonal),
    "triu": lambda numpy, a, diagonal: numpy.triu(a, diagonal),
}

EXPLAINED = {
    "linspace/u*/error": "PyTorch refuses a start that the dtype lacks; the oracle lets those elements be anything",
}

NO_COUNTERPART = {
    **drawn(),
    "pin_memory": "of values it changes nothing",
    "sparse_mask_like": "it is about composite layouts",
}

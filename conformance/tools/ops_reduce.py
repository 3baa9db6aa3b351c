"""Reductions."""

from stepwise import in_f64


def reduction(name, **fixed):
    """`name(self, dim, keepdim)`; no dims means all."""

    def call(torch, x, dim, keepdim):
        dim = dim or list(range(x.dim()))
        return getattr(torch, name)(x, dim=dim, keepdim=keepdim, **fixed)

    return call


def one_by_one(name):
    """As `reduction`, for ops that take a single dim."""

    def call(torch, x, dim, keepdim):
        for d in sorted((d % max(x.dim(), 1) for d in dim or range(x.dim())), reverse=True):
            x = getattr(torch, name)(x, dim=d, keepdim=keepdim)
        return x

    return call


def prod(torch, x, dim, keepdim):
    if x.dim() == 0:
        return torch.prod(x)
    return one_by_one("prod")(torch, x, dim, keepdim)


def extreme(name):
    return lambda torch, x, dim, keepdim: tuple(getattr(torch, name)(x, dim=dim, keepdim=keepdim))


def numpy_reduction(name, **fixed):
    def call(numpy, x, dim, keepdim):
        axes = tuple(dim) if dim else None
        return getattr(numpy, name)(x, axis=axes, keepdims=keepdim, **fixed)

    return call


def numpy_place(name):
    return lambda numpy, x, dim, keepdim: getattr(numpy, name)(x, axis=dim, keepdims=keepdim and dim is not None)


def numpy_extreme(value, place):
    def call(numpy, x, dim, keepdim):
        if x.ndim == 0:
            return [x, numpy.zeros((), numpy.int64)]
        return [getattr(numpy, f)(x, axis=dim, keepdims=keepdim) for f in (value, place)]

    return call


def spread(name):
    def call(torch, x, dim, correction, keepdim):
        return getattr(torch, name)(x, dim=dim or None, correction=correction, keepdim=keepdim)

    return call


def cumsum(torch, x, dim, reverse):
    if reverse and x.dim() > 0:
        return x.flip(dim).cumsum(dim).flip(dim)
    return x.cumsum(dim)


def numpy_cumsum(numpy, x, dim, reverse):
    if x.ndim == 0:
        return x
    order = numpy.flip if reverse else (lambda a, axis: a)
    return order(numpy.cumsum(order(x, dim), axis=dim, dtype=numpy.int64), dim)


def numpy_cumprod(numpy, x, dim):
    return x if x.ndim == 0 else numpy.cumprod(x, axis=dim, dtype=numpy.int64)


def logsumexp(torch, x, dim, keepdim):
    return torch.logsumexp(x, dim or list(range(x.dim())), keepdim=keepdim)


def numpy_logsumexp(numpy, x, dim, keepdim):
    axes = tuple(dim) if dim else None
    return numpy.log(numpy.sum(numpy.exp(x.astype(numpy.float64)), axis=axes, keepdims=keepdim))


def norm(torch, x, p, dim, keepdim):
    return torch.linalg.vector_norm(x, p, dim=dim or None, keepdim=keepdim)


def truth(name):
    def call(torch, x, dim, keepdim):
        return getattr(torch, name)(x, dim=dim or list(range(x.dim())), keepdim=keepdim)

    return call


OPS = {
    "all": truth("all"), "any": truth("any"),
    "amax": reduction("amax"), "amin": reduction("amin"),
    "argmax": lambda torch, x, dim, keepdim: torch.argmax(x, dim=dim, keepdim=keepdim and dim is not None),
    "argmin": lambda torch, x, dim, keepdim: torch.argmin(x, dim=dim, keepdim=keepdim and dim is not None),
    "count_nonzero": lambda torch, x, dim: torch.count_nonzero(x, dim=dim or None),
    "cumprod": lambda torch, x, dim: x.cumprod(dim),
    "cumsum": cumsum,
    "diff": in_f64(lambda torch, x, n, dim: torch.diff(x, n=n, dim=dim)),
    "logsumexp": logsumexp,
    "max": extreme("max"), "min": extreme("min"),
    "mean": reduction("mean"),
    "nanmean": reduction("nanmean"), "nansum": reduction("nansum"),
    "norm": norm,
    "prod": prod,
    "std": spread("std"), "var": spread("var"),
    "std_mean": spread("std_mean"), "var_mean": spread("var_mean"),
    "sum": reduction("sum"),
}

NUMPY = {
    "diff": lambda numpy, x, n, dim: numpy.diff(x, n=n, axis=dim),
    "count_nonzero": lambda numpy, x, dim: numpy.count_nonzero(x, axis=tuple(dim) if dim else None),
    "nansum": lambda numpy, x, dim, keepdim: numpy_reduction("sum", dtype=numpy.int64)(numpy, x, dim, keepdim),
    "all": numpy_reduction("all"), "any": numpy_reduction("any"),
    "amax": numpy_reduction("max"), "amin": numpy_reduction("min"),
    "argmax": numpy_place("argmax"), "argmin": numpy_place("argmin"),
    "max": numpy_extreme("max", "argmax"), "min": numpy_extreme("min", "argmin"),
    "logsumexp": numpy_logsumexp,
    "prod": lambda numpy, x, dim, keepdim: numpy_reduction("prod", dtype=numpy.int64)(numpy, x, dim, keepdim),
    "sum": lambda numpy, x, dim, keepdim: numpy_reduction("sum", dtype=numpy.int64)(numpy, x, dim, keepdim),
    "cumsum": numpy_cumsum, "cumprod": numpy_cumprod,
}

EXPLAINED = {
    "all/u8/dtype": "PyTorch gives u8 for u8, and bool for every other dtype; here it is always bool",
    "any/u8/dtype": "PyTorch gives u8 for u8, and bool for every other dtype; here it is always bool",
}

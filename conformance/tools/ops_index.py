"""Ops that join, move and choose elements by their place. PyTorch rounds sums after each element."""

from stepwise import in_f64


def full_indices(x, indices, dims):
    """An index for each dimension; None where there is none."""
    given = dict(zip(dims, indices))
    return [given.get(d) for d in range(x.ndim)]


def index(torch, x, indices, dims):
    return torch.ops.aten.index(x, full_indices(x, indices, dims)) if indices else x.clone()


def numpy_key(x, indices, dims):
    return tuple(slice(None) if i is None else i for i in full_indices(x, indices, dims))


def as_tensor(torch, x, value):
    return value.to(x.dtype) if torch.is_tensor(value) else torch.tensor(value).to(x.dtype)


def index_put(torch, x, indices, dims, values, accumulate):
    return torch.ops.aten.index_put(x, full_indices(x, indices, dims), as_tensor(torch, x, values), accumulate)


def numpy_index_put(numpy, x, indices, dims, values, accumulate):
    made, key = x.copy(), numpy_key(x, indices, dims)
    values = numpy.asarray(values).astype(x.dtype)
    if accumulate:
        numpy.add.at(made, key, values)
    else:
        made[key] = values
    return made


def index_copy(torch, x, dim, at, source):
    if torch.is_tensor(source):
        return x.index_copy(dim, at, source)
    return x.index_fill(dim, at, as_tensor(torch, x, source))


def scatter(torch, x, dim, at, src):
    if torch.is_tensor(src) and not (src.dim() == 0 and at.dim() > 0):
        return x.scatter(dim, at, src)
    return x.scatter(dim, at, as_tensor(torch, x, src).item())


def numpy_scatter(numpy, x, dim, at, src, join=None):
    own, at = numpy.atleast_1d(x).copy(), numpy.atleast_1d(at)
    src = numpy.broadcast_to(numpy.asarray(src).astype(x.dtype), at.shape) if numpy.ndim(src) == 0 else src
    for place in numpy.ndindex(at.shape):
        target = list(place)
        target[dim] = at[place]
        value = src[place]
        own[tuple(target)] = value if join is None else join(own[tuple(target)], value)
    return own.reshape(x.shape)


def slices(numpy, x, dim, at, source, join):
    made = numpy.moveaxis(x.copy(), dim, 0)
    for k, i in enumerate(at):
        value = numpy.moveaxis(source, dim, 0)[k] if numpy.ndim(source) else numpy.asarray(source).astype(x.dtype)
        made[i] = join(made[i], value)
    return numpy.moveaxis(made, 0, dim)


def numpy_sort(numpy, x, dim, descending):
    if x.ndim == 0:
        return [x, numpy.zeros((), numpy.int64)]
    # Reversed before and after, so that equal elements keep their order.
    turn = (lambda a: numpy.flip(a, dim)) if descending else (lambda a: a)
    places = turn(numpy.argsort(turn(x), axis=dim, kind="stable"))
    if descending:
        places = x.shape[dim] - 1 - places
    return [numpy.take_along_axis(x, places, dim), places]


def topk(torch, x, k, dim, largest, sorted):
    return tuple(x.topk(k, dim, largest, sorted))


def numpy_topk(numpy, x, k, dim, largest, sorted):
    if x.ndim == 0:
        return [x, numpy.zeros((), numpy.int64)]
    return [numpy.take(a, range(k), axis=dim) for a in numpy_sort(numpy, x, dim, largest)]


def unique(torch, x, inverse, counts):
    return torch.ops.aten._unique2(x, True, inverse, counts)


def numpy_unique(numpy, x, inverse, counts):
    values, places, count = numpy.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    return [values, places.reshape(x.shape) if inverse else places[:0], count if counts else count[:0]]


def repeated(numpy, x, repeats):
    return numpy.tile(x, repeats)


def pad(torch, x, widths, mode, value):
    if mode == "constant":
        return torch.nn.functional.pad(x, widths, value=value)
    if x.numel() == 0:
        raise TypeError("a border of nothing is not supported")
    # PyTorch wants a batch and channels, and no more padded dimensions than it has loops for.
    dims = len(widths) // 2
    lead = max(0, dims + 2 - x.dim())
    inner = x.reshape([1] * lead + list(x.shape))
    made = torch.nn.functional.pad(inner, widths, mode=mode)
    return made.reshape(made.shape[lead:])


def numpy_pad(numpy, x, widths, mode, value):
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2) + list(zip(widths[0::2], widths[1::2]))[::-1]
    grown = [(max(a, 0), max(b, 0)) for a, b in pairs]
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    extra = {"constant_values": numpy.asarray(value).astype(x.dtype)} if mode == "constant" else {}
    made = numpy.pad(x, grown, mode=modes[mode], **extra)
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, made.shape))
    return made[cut]


def constant_pad(torch, x, widths, value):
    return torch.constant_pad_nd(x, widths, value) if widths else x.clone()


def searchsorted(torch, sequence, values, right):
    return torch.searchsorted(sequence, values, right=right)


def numpy_searchsorted(numpy, sequence, values, right):
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return numpy.searchsorted(sequence, values, side)
    lines = zip(sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1]))
    return numpy.stack([numpy.searchsorted(s, v, side) for s, v in lines]).reshape(values.shape)


def take_along(numpy, x, at, dim):
    return numpy.take(x.reshape(-1), at.reshape(-1)) if dim is None else numpy.take_along_axis(x, at, dim)


def numpy_gather(numpy, x, dim, at):
    own, places = numpy.atleast_1d(x), numpy.atleast_1d(at)
    made = numpy.empty(places.shape, x.dtype)
    for place in numpy.ndindex(places.shape):
        source = list(place)
        source[dim] = places[place]
        made[place] = own[tuple(source)]
    return made.reshape(at.shape)


def embedding_bag(torch, weight, indices, offsets, mode, factors, with_end, padding):
    return torch.nn.functional.embedding_bag(
        indices, weight, offsets, mode=mode, per_sample_weights=factors, include_last_offset=with_end,
        padding_idx=padding)


def adam_rows(torch, p, m, v, at, grad, beta1, beta2, eps, rate, decay, shrink):
    rows, inverse = at.unique(return_inverse=True)
    own = p[rows]
    grad = torch.zeros_like(own).index_add(0, inverse, grad)
    grad = grad + decay * own if decay else grad
    mean = beta1 * m[rows] + (1 - beta1) * grad
    square = beta2 * v[rows] + (1 - beta2) * grad * grad
    moved = shrink * own - rate * mean / (square.sqrt() + eps)
    return tuple(t.index_copy(0, rows, made) for t, made in ((p, moved), (m, mean), (v, square)))


def masked_fill(torch, x, mask, value):
    return torch.masked_fill(x, mask, value)


def numpy_masked_fill(numpy, x, mask, value):
    return numpy.where(mask, numpy.asarray(value).astype(x.dtype), x)


def masked_select(numpy, x, mask):
    shape = numpy.broadcast_shapes(x.shape, mask.shape)
    return numpy.broadcast_to(x, shape)[numpy.broadcast_to(mask, shape)]


OPS = {
    "adam_rows": in_f64(adam_rows),
    "argsort": lambda torch, x, dim, descending, stable: torch.argsort(x, dim=dim, descending=descending, stable=True),
    "cat": lambda torch, tensors, dim: torch.cat(tensors, dim),
    "constant_pad": constant_pad,
    "embedding": lambda torch, weight, at, padding: torch.nn.functional.embedding(at, weight, padding_idx=padding),
    "embedding_sparse": lambda torch, weight, at, padding: torch.nn.functional.embedding(at, weight, padding_idx=padding),
    "embedding_bag": in_f64(embedding_bag),
    "flip": lambda torch, x, dims: x.flip(dims),
    "gather": lambda torch, x, dim, at: x.gather(dim, at),
    "index": index,
    "index_add": in_f64(lambda torch, x, dim, at, source, alpha: x.index_add(dim, at, source, alpha=alpha)),
    "index_copy": index_copy,
    "index_put": in_f64(index_put),
    "index_select": lambda torch, x, dim, at: x.index_select(dim, at),
    "masked_fill": masked_fill,
    "masked_select": lambda torch, x, mask: x.masked_select(mask),
    "nonzero": lambda torch, x: x.nonzero(),
    "one_hot": lambda torch, at, classes: torch.nn.functional.one_hot(at, classes),
    "pad": pad,
    "repeat": lambda torch, x, repeats: x.repeat(repeats),
    "roll": lambda torch, x, shifts, dims: x.roll(shifts, dims),
    "scatter": scatter,
    "scatter_add": in_f64(lambda torch, x, dim, at, src: x.scatter_add(dim, at, src)),
    "isin": lambda torch, a, among, invert: torch.isin(a, among, invert=invert),
    "searchsorted": searchsorted,
    "sort": lambda torch, x, dim, descending, stable: tuple(torch.sort(x, dim=dim, descending=descending, stable=True)),
    "stack": lambda torch, tensors, dim: torch.stack(tensors, dim),
    "take_along_dim": lambda torch, x, at, dim: torch.take_along_dim(x, at, dim),
    "tile": lambda torch, x, dims: x.tile(dims),
    "topk": topk,
    "unique": unique,
}

NUMPY = {
    "argsort": lambda numpy, x, dim, descending, stable: numpy_sort(numpy, x, dim, descending)[1],
    "cat": lambda numpy, tensors, dim: numpy.concatenate(tensors, dim),
    "constant_pad": lambda numpy, x, widths, value: numpy_pad(numpy, x, widths, "constant", value),
    "embedding": lambda numpy, weight, at, padding: weight[at],
    "embedding_sparse": lambda numpy, weight, at, padding: weight[at],
    "flip": lambda numpy, x, dims: numpy.flip(x, tuple(dims)),
    "gather": numpy_gather,
    "index": lambda numpy, x, indices, dims: x[numpy_key(x, indices, dims)],
    "index_add": lambda numpy, x, dim, at, source, alpha:
        slices(numpy, x, dim, at, source, lambda a, b: (a + b * numpy.asarray(alpha).astype(x.dtype)).astype(x.dtype)),
    "index_copy": lambda numpy, x, dim, at, source: slices(numpy, x, dim, at, source, lambda a, b: b),
    "index_put": numpy_index_put,
    "index_select": lambda numpy, x, dim, at: numpy.take(x, at, axis=dim if x.ndim else None),
    "masked_fill": numpy_masked_fill,
    "masked_select": masked_select,
    "nonzero": lambda numpy, x: numpy.argwhere(x),
    "pad": numpy_pad,
    "repeat": repeated,
    "tile": repeated,
    "roll": lambda numpy, x, shifts, dims: numpy.roll(x, shifts, tuple(dims)),
    "scatter": numpy_scatter,
    "scatter_add": lambda numpy, x, dim, at, src:
        numpy_scatter(numpy, x, dim, at, src, lambda a, b: (a + b).astype(x.dtype)),
    "isin": lambda numpy, a, among, invert: numpy.isin(a, among, invert=invert),
    "searchsorted": numpy_searchsorted,
    "sort": lambda numpy, x, dim, descending, stable: numpy_sort(numpy, x, dim, descending),
    "stack": lambda numpy, tensors, dim: numpy.stack(tensors, dim),
    "take_along_dim": take_along,
    "topk": numpy_topk,
    "unique": numpy_unique,
}

EXPLAINED = {
    "masked_fill/u8/error": "PyTorch refuses -0.5 for u8, though not for the signed integers; here it is cast to 0",
    "embedding_bag/*/error": "PyTorch refuses bags of no indices in a matrix, though not among offsets",
    "roll/*/error": "PyTorch refuses dimension 0 of a tensor without dimensions here, though in no other op",
    "topk/u8/values": "PyTorch promises no order of equal elements; here the first come first",
}

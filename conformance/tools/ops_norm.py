"""Normalisations."""

from stepwise import in_f64


def layer_norm(torch, x, shape, weight, bias, eps):
    return torch.nn.functional.layer_norm(x, shape, weight, bias, eps)


def layer_norm_backward(torch, grad, x, shape, weight, eps):
    given = torch.ones(shape, dtype=x.dtype) if weight is None else weight
    leaves = [x.clone().requires_grad_(), given.clone().requires_grad_(), torch.zeros_like(given).requires_grad_()]
    layer_norm(torch, leaves[0], shape, leaves[1], leaves[2], eps).backward(grad)
    return [leaf.grad for leaf in leaves]


def along(name):
    """Integers and bool become f32, which PyTorch has to be asked for."""

    def call(torch, x, dim):
        dtype = x.dtype if x.is_floating_point() else torch.float32
        return getattr(torch, name)(x, dim, dtype=dtype)

    return call


def running(name):
    """The running statistics in the input's dtype: PyTorch casts nothing here."""

    def call(torch, x, mean, var, *rest):
        mean, var = (None if t is None else t.to(x.dtype) for t in (mean, var))
        return getattr(torch.nn.functional, name)(x, mean, var, *rest)

    return call


def wide(torch, t):
    """Statistics of f16 and bf16, and gradients of weights by them, are f32."""
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def channel_norm(torch, x, weight, bias, per_sample, eps):
    dims = [d for d in range(x.dim()) if d > 1 or (d == 0 and not per_sample)]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    name = "instance_norm" if per_sample else "batch_norm"
    made = getattr(torch.nn.functional, name)(x, None, None, weight, bias, True, 0.0, eps)
    return [made, wide(torch, mean), wide(torch, var)]


def channel_norm_backward(torch, grad, x, mean, var, weight, per_sample, eps):
    dims = [d for d in range(x.dim()) if d > 1 or (d == 0 and not per_sample)]
    inner = grad if not dims else grad - grad.mean(dims, keepdim=True)
    if not dims:
        inner = torch.zeros_like(grad)
    channels = [1, -1] + [1] * (x.dim() - 2)
    inner = inner if weight is None else inner * weight.reshape(channels)
    hat = (x - mean) * (var + eps).rsqrt()
    along = (inner * hat).mean(dims, keepdim=True) if dims else inner * hat
    others = [d for d in range(x.dim()) if d != 1]
    of_x = ((inner - hat * along) * (var + eps).rsqrt()).to(x.dtype)
    return [of_x, wide(torch, (grad * hat).sum(others)), wide(torch, grad.sum(others))]


def frozen_norm(torch, x, mean, var, weight, bias, eps):
    return running("batch_norm")(torch, x, mean, var, weight, bias, False, 0.0, eps)


def channel_sums(torch, grad, x, mean):
    others = [d for d in range(x.dim()) if d != 1]
    apart = x - mean.to(x.dtype).reshape([1, -1] + [1] * (x.dim() - 2))
    return [wide(torch, (grad * apart).sum(others)), wide(torch, grad.sum(others))]


def group_norm(torch, x, groups, weight, bias, eps):
    return torch.nn.functional.group_norm(x, groups, weight, bias, eps)


def group_norm_backward(torch, grad, x, groups, weight, eps):
    given = torch.ones(x.shape[1], dtype=x.dtype) if weight is None else weight
    leaves = [x.clone().requires_grad_(), given.clone().requires_grad_(), torch.zeros_like(given).requires_grad_()]
    group_norm(torch, leaves[0], groups, leaves[1], leaves[2], eps).backward(grad)
    of_x, *others = [leaf.grad for leaf in leaves]
    return [of_x, *(wide(torch, t) for t in others)]


def rms_norm(torch, x, shape, weight, eps):
    return torch.nn.functional.rms_norm(x, shape, weight, eps)


def rms_norm_backward(torch, grad, x, shape, weight, eps):
    given = torch.ones(shape, dtype=x.dtype) if weight is None else weight
    leaves = [x.clone().requires_grad_(), given.clone().requires_grad_()]
    rms_norm(torch, leaves[0], shape, leaves[1], eps).backward(grad)
    return [leaf.grad for leaf in leaves]


OPS = {
    "batch_norm": in_f64(running("batch_norm")),
    "channel_norm": in_f64(channel_norm),
    "channel_norm_backward": in_f64(channel_norm_backward),
    "channel_sums": in_f64(channel_sums),
    "frozen_norm": in_f64(frozen_norm),
    "group_norm": in_f64(group_norm),
    "group_norm_backward": in_f64(group_norm_backward),
    "instance_norm": in_f64(running("instance_norm")),
    "local_response_norm": in_f64(
        lambda torch, x, *rest: torch.nn.functional.local_response_norm(x, *rest)),
    "rms_norm": rms_norm,
    "rms_norm_backward": in_f64(rms_norm_backward),
    "layer_norm": in_f64(layer_norm),
    "layer_norm_backward": in_f64(layer_norm_backward),
    "log_softmax": along("log_softmax"),
    "log_softmax_backward": lambda torch, g, y, dim: torch.ops.aten._log_softmax_backward_data(g, y, dim, y.dtype),
    "cosine_similarity": in_f64(lambda torch, a, b, dim, eps: torch.nn.functional.cosine_similarity(
        a, b, dim=dim, eps=eps)),
    "normalize": lambda torch, x, p, dim, eps: torch.nn.functional.normalize(
        x, p, dim=tuple(dim) or tuple(range(x.dim())), eps=eps),
    "softmax": along("softmax"),
    "softmax_backward": lambda torch, g, y, dim: torch.ops.aten._softmax_backward_data(g, y, dim, y.dtype),
}

EXPLAINED = {
    "instance_norm/*/error": "PyTorch refuses an empty batch with running statistics, though `batch_norm` takes it",
}

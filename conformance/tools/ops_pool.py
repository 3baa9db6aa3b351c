"""Pooling."""

from stepwise import in_f64


def of_rank(torch, name, spatial):
    return getattr(torch.nn.functional, f"{name}_pool{spatial}d")


def max_pool(torch, x, kernel, stride, padding, dilation, ceil):
    return of_rank(torch, "max", x.dim() - 2)(
        x, kernel, stride, padding, dilation, ceil_mode=ceil, return_indices=True)


def max_pool_backward(torch, grad, indices, sizes):
    flat = torch.zeros(*grad.shape[:2], torch.Size(sizes).numel(), dtype=grad.dtype)
    flat.scatter_add_(2, indices.flatten(2), grad.flatten(2))
    return flat.reshape(*grad.shape[:2], *sizes)


def avg_pool(torch, x, kernel, stride, padding, ceil, include, divisor):
    pool = of_rank(torch, "avg", x.dim() - 2)
    if x.dim() == 3:
        # It takes no divisor; the samples have none of that rank.
        assert divisor is None
        return pool(x, kernel, stride, padding, ceil, include)
    return pool(x, kernel, stride, padding, ceil, include, divisor)


def avg_pool_backward(torch, grad, sizes, *rest):
    x = torch.zeros(*grad.shape[:2], *sizes, dtype=grad.dtype, requires_grad=True)
    avg_pool(torch, x, *rest).backward(grad)
    return x.grad


def lp_pool(torch, x, norm_type, kernel, stride, padding, ceil):
    assert not any(padding)
    if x.dim() == 3:
        # It takes no lists; the samples' have one number.
        kernel, stride = kernel[0], stride[0]
    return of_rank(torch, "lp", x.dim() - 2)(x, norm_type, kernel, stride, ceil)


def adaptive(name):
    def call(torch, x, size):
        rest = [True] if name == "adaptive_max" else []
        return of_rank(torch, name, x.dim() - 2)(x, size, *rest)

    return call


def adaptive_avg_pool_backward(torch, grad, sizes):
    x = torch.zeros(*grad.shape[:2], *sizes, dtype=grad.dtype, requires_grad=True)
    adaptive("adaptive_avg")(torch, x, grad.shape[2:]).backward(grad)
    return x.grad


def max_unpool(torch, x, indices, size):
    # The window only gives the size, which is stated.
    flat = torch.zeros(*x.shape[:2], torch.Size(size).numel(), dtype=x.dtype)
    flat.scatter_(2, indices.flatten(2), x.flatten(2))
    return flat.reshape(*x.shape[:2], *size)


OPS = {
    "adaptive_avg_pool": in_f64(adaptive("adaptive_avg")),
    "adaptive_avg_pool_backward": in_f64(adaptive_avg_pool_backward),
    "adaptive_max_pool": adaptive("adaptive_max"),
    "max_unpool": max_unpool,
    "lp_pool": in_f64(lp_pool),
    "max_pool": max_pool,
    "max_pool_values": lambda *args: max_pool(*args)[0],
    "max_pool_backward": in_f64(max_pool_backward),
    "avg_pool": in_f64(avg_pool),
    "avg_pool_backward": in_f64(avg_pool_backward),
}

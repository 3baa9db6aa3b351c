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


OPS = {
    "max_pool": max_pool,
    "max_pool_backward": in_f64(max_pool_backward),
    "avg_pool": in_f64(avg_pool),
    "avg_pool_backward": in_f64(avg_pool_backward),
}

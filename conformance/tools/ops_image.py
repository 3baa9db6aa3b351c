"""Images rearranged and resampled."""

from stepwise import in_f64


def resized(torch, x, size, mode, align, scales, name=""):
    """By PyTorch's own ops, which take the factors beside the sizes."""
    rank = x.dim() - 2
    kind = {"nearest": "nearest", "nearest-exact": "_nearest_exact", "cubic": "bicubic",
            "linear": ("linear", "bilinear", "trilinear")[rank - 1]}[mode]
    prefix = "_upsample" if kind.startswith("_") else "upsample_"
    call = getattr(torch.ops.aten, f"{prefix}{kind}{rank}d")
    corners = [] if "nearest" in mode else [align]
    factors = list(scales) if scales else [None] * rank
    return call(x, size, *corners, *factors)


def interpolate(torch, x, size, mode, align, scales):
    return resized(torch, x, size, mode, align, scales)


def interpolate_backward(torch, grad, sizes, mode, align, scales):
    x = torch.zeros(*grad.shape[:2], *sizes, dtype=grad.dtype, requires_grad=True)
    resized(torch, x, grad.shape[2:], mode, align, scales).backward(grad)
    return x.grad


def fold(torch, x, size, kernel, dilation, padding, stride):
    return torch.nn.functional.fold(x, size, kernel, dilation, padding, stride)


def unfold(torch, x, kernel, dilation, padding, stride):
    return torch.nn.functional.unfold(x, kernel, dilation, padding, stride)


def grid_sample_input_grad(torch, grad, grid, sizes, *rest):
    x = torch.zeros(*grad.shape[:2], *sizes, dtype=grad.dtype, requires_grad=True)
    torch.nn.functional.grid_sample(x, grid, *rest).backward(grad)
    return x.grad


def grid_sample_grid_grad(torch, grad, x, grid, *rest):
    grid = grid.detach().clone().requires_grad_()
    torch.nn.functional.grid_sample(x, grid, *rest).backward(grad)
    return grid.grad


OPS = {
    "affine_grid": in_f64(lambda torch, theta, size, align: torch.nn.functional.affine_grid(theta, size, align)),
    "channel_shuffle": lambda torch, x, groups: torch.nn.functional.channel_shuffle(x, groups),
    "col2im": in_f64(fold),
    "grid_sample": in_f64(lambda torch, x, grid, *rest: torch.nn.functional.grid_sample(x, grid, *rest)),
    "grid_sample_grid_grad": in_f64(grid_sample_grid_grad),
    "grid_sample_input_grad": in_f64(grid_sample_input_grad),
    "im2col": unfold,
    "interpolate": in_f64(interpolate),
    "interpolate_backward": in_f64(interpolate_backward),
    "pixel_shuffle": lambda torch, x, factor: torch.nn.functional.pixel_shuffle(x, factor),
    "pixel_unshuffle": lambda torch, x, factor: torch.nn.functional.pixel_unshuffle(x, factor),
}

EXPLAINED = {
    "affine_grid/*/error": "PyTorch refuses an empty batch",
    "pixel_unshuffle/*/shape": "PyTorch gives an image without elements back in the shape that it had",
}

"""Losses. PyTorch rounds those that it composes of other ops after each of them."""

import warnings

from stepwise import in_f64


def as_input(x, weight):
    """Class weights in the input's dtype: PyTorch casts nothing here."""
    return None if weight is None else weight.to(x.dtype)


def cross_entropy(torch, x, target, weight, ignore_index, smoothing, reduction):
    return torch.nn.functional.cross_entropy(
        x, target, as_input(x, weight), ignore_index=ignore_index, label_smoothing=smoothing, reduction=reduction)


def nll_loss(torch, x, target, weight, ignore_index, reduction):
    return torch.nn.functional.nll_loss(
        x, target, as_input(x, weight), ignore_index=ignore_index, reduction=reduction)


def nll_loss_forward(torch, x, target, weight, ignore_index):
    """The losses, and the weights as the losses of an input of -1 everywhere."""
    return [nll_loss(torch, t, target, weight, ignore_index, "none") for t in (x, torch.full_like(x, -1))]


def nll_loss_backward(torch, grad, target, weights, classes, ignore_index):
    x = torch.zeros((*target.shape[:1], classes, *target.shape[1:]), dtype=grad.dtype, requires_grad=True)
    losses = nll_loss(torch, x, target, None, ignore_index, "none")
    (losses * weights.to(grad.dtype)).backward(grad)
    return x.grad


def kl_div(torch, x, target, log_target, reduction):
    with warnings.catch_warnings():
        # That "mean" divides by all elements is what is asked for.
        warnings.simplefilter("ignore")
        return torch.nn.functional.kl_div(x, target, reduction=reduction, log_target=log_target)


def plain(name):
    return lambda torch, x, target, reduction: getattr(torch.nn.functional, name)(x, target, reduction=reduction)


OPS = {
    "binary_cross_entropy": lambda torch, x, target, weight, reduction:
        torch.nn.functional.binary_cross_entropy(x, target, weight, reduction=reduction),
    "binary_cross_entropy_with_logits": in_f64(
        lambda torch, x, target, weight, pos_weight, reduction:
        torch.nn.functional.binary_cross_entropy_with_logits(
            x, target, weight, pos_weight=pos_weight, reduction=reduction)),
    "cross_entropy": in_f64(cross_entropy),
    "kl_div": in_f64(kl_div),
    "l1_loss": plain("l1_loss"),
    "mse_loss": in_f64(plain("mse_loss")),
    "nll_loss": in_f64(nll_loss),
    "nll_loss_backward": nll_loss_backward,
    "nll_loss_forward": nll_loss_forward,
    "smooth_l1_loss": lambda torch, x, target, beta, reduction:
        torch.nn.functional.smooth_l1_loss(x, target, reduction=reduction, beta=beta),
    "smooth_l1_loss_backward": lambda torch, g, x, target, beta, reduction:
        torch.ops.aten.smooth_l1_loss_backward(g, x, target, ["none", "mean", "sum"].index(reduction), beta),
}

EXPLAINED = {
    "binary_cross_entropy/*/error": "PyTorch refuses what is no probability; here its loss is NaN",
    "smooth_l1_loss_backward/*/values": "at a difference of 0 with `beta` 0 PyTorch's kernel takes the slope -1; its "
    "`smooth_l1_loss` is `l1_loss` there, whose slope is 0",
}

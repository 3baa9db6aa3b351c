"""Convolutions."""

from stepwise import in_f64


def functions(torch, spatial):
    return {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}[spatial]


def conv(torch, x, weight, bias, stride, padding, dilation, groups):
    return functions(torch, x.dim() - 2)(x, weight, bias, stride, padding, dilation, groups)


def conv_act(torch, x, weight, bias, stride, padding, dilation, groups, add, activation):
    made = conv(torch, x, weight, bias, stride, padding, dilation, groups)
    made = made if add is None else made + add
    return made if activation == "none" else getattr(torch.nn.functional, activation)(made)


def conv_input_grad(torch, grad, weight, sizes, stride, padding, dilation, groups):
    x = torch.zeros(grad.shape[0], weight.shape[1] * groups, *sizes, dtype=grad.dtype, requires_grad=True)
    conv(torch, x, weight, None, stride, padding, dilation, groups).backward(grad)
    return x.grad


def conv_weight_grad(torch, grad, x, kernel, stride, padding, dilation, groups):
    weight = torch.zeros(grad.shape[1], x.shape[1] // groups, *kernel, dtype=grad.dtype, requires_grad=True)
    conv(torch, x, weight, None, stride, padding, dilation, groups).backward(grad)
    return weight.grad


OPS = {
    "conv": in_f64(conv),
    "conv_act": in_f64(conv_act),
    "conv_input_grad": in_f64(conv_input_grad),
    "conv_weight_grad": in_f64(conv_weight_grad),
}

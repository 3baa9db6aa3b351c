"""Calls of the element-wise ops."""

from stepwise import in_f64


def operand(torch, value, other):
    """A number as a tensor of the dtype that it is promoted to beside `other`."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.full((), value, dtype=torch.result_type(other, value))


def unary(name):
    return lambda torch, a: getattr(torch, name)(a)


def binary(name):
    def call(torch, a, b):
        return getattr(torch, name)(operand(torch, a, b), operand(torch, b, a))
    return call


def signed(torch):
    return (torch.int8, torch.int16, torch.int32, torch.int64)


def dividing(quotient, by_minus_one):
    """A division, with -1 among integer divisors left out: the least integer divided by it ends the process."""
    def call(torch, a, b, *rest):
        a, b = operand(torch, a, b), operand(torch, b, a)
        if not (torch.result_type(a, b) in signed(torch) and (b == -1).any()):
            return quotient(torch, a, b, *rest)
        return torch.where(b == -1, by_minus_one(torch, a), quotient(torch, a, torch.where(b == -1, 1, b), *rest))
    return call


def quotient(torch, a, b, mode):
    return torch.div(a, b, rounding_mode=mode)


def isclose(torch, a, b, rtol, atol, equal_nan):
    """PyTorch promotes nothing here."""
    a, b = operand(torch, a, b), operand(torch, b, a)
    dtype = torch.result_type(a, b)
    return torch.isclose(a.to(dtype), b.to(dtype), rtol=rtol, atol=atol, equal_nan=equal_nan)


def functional(name):
    return lambda torch, *args: getattr(torch.nn.functional, name)(*args)


UNARY = """abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf erfc exp expm1 floor isfinite isinf isnan
log log10 log1p log2 logical_not neg reciprocal round rsqrt sigmoid sign sin sinh sqrt square tan tanh
trunc""".split()
BINARY = """atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign eq gcd ge gt hypot lcm le
logaddexp logical_and logical_or logical_xor lt maximum minimum mul ne xlogy""".split()

OPS = {
    **{name: unary(name) for name in UNARY},
    **{name: binary(name) for name in BINARY},
    "add": lambda torch, a, b, alpha: torch.add(a, b, alpha=alpha),
    "addcdiv": lambda torch, a, b, c, value: torch.addcdiv(a, b, c, value=value),
    "addcmul": lambda torch, a, b, c, value: torch.addcmul(a, b, c, value=value),
    "celu": functional("celu"),
    "clamp": lambda torch, a, low, high: torch.clamp(a, low, high),
    "div": lambda torch, a, b, mode: (
        quotient(torch, operand(torch, a, b), b, None) if mode is None
        else dividing(quotient, lambda torch, a: -a)(torch, a, b, mode)),
    "elu": functional("elu"),
    "floor_divide": dividing(lambda torch, a, b: torch.floor_divide(a, b), lambda torch, a: -a),
    "fmod": in_f64(dividing(lambda torch, a, b: torch.fmod(a, b), lambda torch, a: torch.zeros_like(a))),
    "gelu": lambda torch, a, approximate: torch.nn.functional.gelu(a, approximate=approximate),
    "gelu_backward": lambda torch, g, a, approximate: torch.ops.aten.gelu_backward(g, a, approximate=approximate),
    "hardswish": functional("hardswish"),
    "hardswish_backward": lambda torch, g, x: torch.ops.aten.hardswish_backward(g, x),
    "isclose": isclose,
    "leaky_relu": functional("leaky_relu"),
    "lerp": lambda torch, a, b, weight: torch.lerp(a, b, weight),
    "mish": functional("mish"),
    "nan_to_num": lambda torch, a, nan, above, below: torch.nan_to_num(a, nan, above, below),
    "pow": in_f64(lambda torch, a, b: torch.pow(a, b)),
    "relu": functional("relu"),
    "relu_backward": lambda torch, g, y: torch.ops.aten.threshold_backward(g, y, 0),
    "remainder": in_f64(dividing(lambda torch, a, b: torch.remainder(a, b), lambda torch, a: torch.zeros_like(a))),
    "selu": functional("selu"),
    "sigmoid_backward": in_f64(lambda torch, g, x: g * torch.sigmoid(x) * torch.sigmoid(-x)),
    "silu": functional("silu"),
    "silu_backward": lambda torch, g, x: torch.ops.aten.silu_backward(g, x),
    "softplus": functional("softplus"),
    "softplus_backward": lambda torch, g, x, beta, threshold: torch.ops.aten.softplus_backward(g, x, beta, threshold),
    "softshrink": functional("softshrink"),
    "softshrink_backward": lambda torch, g, x, lambd: torch.ops.aten.softshrink_backward(g, x, lambd),
    "sub": lambda torch, a, b, alpha: torch.sub(operand(torch, a, b), operand(torch, b, a), alpha=alpha),
    "tanh_backward": in_f64(lambda torch, g, x: g * 4 * torch.sigmoid(2 * x) * torch.sigmoid(-2 * x)),
    "where": lambda torch, c, a, b: torch.where(c, a, b),
}


def numpy_operand(numpy, value, other):
    """A number as NumPy takes it beside an array: an integer of the array's dtype, a float as it is."""
    if isinstance(value, numpy.ndarray) or isinstance(value, float):
        return value
    return other.dtype.type(value)


def numpy_binary(name):
    def call(numpy, a, b):
        return getattr(numpy, name)(numpy_operand(numpy, a, b), numpy_operand(numpy, b, a))
    return call


def numpy_unary(name):
    """Through f32 for integers, as the op itself."""
    return lambda numpy, a: getattr(numpy, name)(a.astype(numpy.float32) if a.dtype.kind in "iub" else a)


def numpy_div(numpy, a, b, mode):
    a, b = numpy_operand(numpy, a, b), numpy_operand(numpy, b, a)
    if mode == "floor":
        return numpy.floor_divide(a, b)
    return numpy.true_divide(a, b).astype(numpy.float32) if mode is None else a // b  # unsigned


def numpy_clamp(numpy, a, low, high):
    if isinstance(low, float) or isinstance(high, float):
        a = a.astype(numpy.float32)
    return numpy.clip(a, low, high)


NUMPY = {
    "add": lambda numpy, a, b, alpha: a + a.dtype.type(alpha) * numpy_operand(numpy, b, a),
    "sub": lambda numpy, a, b, alpha: (
        numpy_operand(numpy, a, b) - numpy_operand(numpy, alpha, b if hasattr(b, "dtype") else a)
        * numpy_operand(numpy, b, a)),
    "addcmul": lambda numpy, a, b, c, value: a + a.dtype.type(value) * b * c,
    "clamp": numpy_clamp,
    "div": numpy_div,
    "relu": lambda numpy, a: numpy.maximum(a, a.dtype.type(0)),
    "neg": lambda numpy, a: numpy.negative(a),
    "pow": lambda numpy, a, b: numpy.power(numpy_operand(numpy, a, b), numpy_operand(numpy, b, a)),
    "eq": numpy_binary("equal"), "ne": numpy_binary("not_equal"), "lt": numpy_binary("less"),
    "le": numpy_binary("less_equal"), "gt": numpy_binary("greater"), "ge": numpy_binary("greater_equal"),
    "mul": numpy_binary("multiply"),
    "atan2": lambda numpy, a, b: numpy.arctan2(
        numpy.asarray(a, numpy.float32), numpy.asarray(b, numpy.float32)),
    "bitwise_left_shift": numpy_binary("left_shift"), "bitwise_right_shift": numpy_binary("right_shift"),
    "bitwise_not": lambda numpy, a: numpy.invert(a),
    "where": lambda numpy, c, a, b: numpy.where(c, numpy_operand(numpy, a, b), numpy_operand(numpy, b, a)),
    **{name: numpy_binary(name) for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "fmod", "logical_and", "logical_or",
        "logical_xor", "maximum", "minimum", "remainder")},
    **{name: (lambda numpy, a, name=name: getattr(numpy, name)(a)) for name in (
        "abs", "ceil", "floor", "isfinite", "isinf", "isnan", "logical_not", "round", "sign", "square", "trunc")},
    **{name: numpy_unary(name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p",
        "log2", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh")},
    "rsqrt": lambda numpy, a: 1 / numpy.sqrt(a.astype(numpy.float32)),
    "sigmoid": lambda numpy, a: 1 / (1 + numpy.exp(-a.astype(numpy.float32))),
}

EXPLAINED = {
    **{f"{name}/*/values/extremes": "the remainder of a large number shows each bit of the divisor, a number that is "
       "rounded to f32 here and taken as f64 there" for name in ("fmod", "remainder")},
    "pow/f32/values/extremes": "a large power shows each bit of the exponent, a number that is rounded to f32 here",
    "gelu_backward/*/values/extremes": "PyTorch's `1 + erf` and `1 - tanh^2` lose digits that a large gradient shows",
    "gelu_backward/*/zero/extremes": "the same: what is left of the derivative has the other sign",
    "hardswish_backward/*/values/extremes": "the derivative of NaN is NaN here, 1 in PyTorch",
    "softplus_backward/*/values/extremes": "PyTorch multiplies by the exponential before it divides, and overflows",
    "softshrink_backward/*/values": "with `lambd` 0 the op is the identity, at 0 too, where PyTorch's derivative is 0",
    "softshrink_backward/*/zero/extremes": "the same of a gradient of -0",
    "softshrink/*/zero": "PyTorch's vectors give 0 where its last elements give 0 with the sign of the element",
    "lerp/f64/zero/extremes": "a product below the least f64, which PyTorch does not round by itself",
}

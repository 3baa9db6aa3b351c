"""Elementwise functions: those of ``keyway`` under the names of the standard."""

from __future__ import annotations

from typing import Any

import keyway

from .. import (
    Tensor,
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    conj,
    copysign,
    cos,
    cosh,
    exp,
    expm1,
    floor,
    floor_divide,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    nextafter,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)

divide, multiply, negative, subtract = keyway.div, keyway.mul, keyway.neg, keyway.sub
equal, not_equal = keyway.eq, keyway.ne
greater, greater_equal, less, less_equal = keyway.gt, keyway.ge, keyway.lt, keyway.le
bitwise_invert = keyway.bitwise_not


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """The elements with those below ``min`` or above ``max`` set to these, in the dtype of ``x``."""
    if min is None and max is None:
        return x.clone()
    return keyway.clip(x, min, max).to(dtype=x.dtype)


def positive(x: Tensor, /) -> Tensor:
    """A copy of a tensor of numbers."""
    return x.clone()


def sign(x: Tensor, /) -> Tensor:
    """The signs: NaN of NaN, and of a complex number the number divided by its absolute value."""
    made = keyway.sgn(x)
    return keyway.where(x != x, x, made) if x.dtype.is_floating_point else made

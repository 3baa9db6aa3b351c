"""Writes values of elementary functions of complex numbers to stdout, one a line: the function, the parts of its arguments, the
parts of its result. `src/oracle/complex/facts.txt` is its output.

Finite values are computed by mpmath with 60 digits. A zero stands for the limit from the side of its sign, which also determines the
side of a branch cut. Values of infinities and NaN are those of C17, Annex G, and those of asin, atan, sin, cos and tan follow from
the hyperbolic functions, as the standard says. A part that begins with `~` has an unspecified sign. Arguments are values of f32
where their magnitude permits, so that a value holds for c64 and c128.

    pip install mpmath numpy
    python conformance/tools/complex_facts.py > conformance/src/oracle/complex/facts.txt
"""

import math
import random

import mpmath as mp
import numpy as np

mp.mp.dps = 60
TINY = mp.mpf("1e-600")
PI = math.pi
INF, NAN = math.inf, math.nan

FUNCTIONS = {
    "acos": mp.acos, "acosh": mp.acosh, "asin": mp.asin, "asinh": mp.asinh, "atan": mp.atan, "atanh": mp.atanh,
    "cos": mp.cos, "cosh": mp.cosh, "exp": mp.exp, "expm1": None, "log": mp.log, "log10": lambda z: mp.log(z) / mp.log(10),
    "log1p": None, "log2": lambda z: mp.log(z) / mp.log(2), "reciprocal": lambda z: 1 / z, "rsqrt": lambda z: 1 / mp.sqrt(z),
    "sgn": lambda z: z / abs(z), "sigmoid": lambda z: 1 / (1 + mp.exp(-z)), "sin": mp.sin, "sinh": mp.sinh, "sqrt": mp.sqrt,
    "tan": mp.tan, "tanh": mp.tanh,
}
# Of these no standard specifies the signs of zeros.
UNSIGNED = {"expm1", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sgn", "sigmoid", "div", "pow"}
# Cuts along the reals, as (from, to) of the real part, and along the imaginary numbers.
REAL_CUTS = {
    "acos": [(1, None), (None, -1)], "asin": [(1, None), (None, -1)], "atanh": [(1, None), (None, -1)], "acosh": [(None, 1)],
    "log": [(None, 0)], "log2": [(None, 0)], "log10": [(None, 0)], "sqrt": [(None, 0)], "rsqrt": [(None, 0)],
    "log1p": [(None, -1)],
}
IMAGINARY_CUTS = {"asinh": [(1, None), (None, -1)], "atan": [(1, None), (None, -1)]}


def f32(x):
    return float(np.float32(x)) if 1e-37 < abs(x) < 1e37 else x


def exact(part):
    """The part as mpmath sees it: a signed zero as a tiny number of its sign."""
    return math.copysign(1, part) * TINY if part == 0 else mp.mpf(part)


def back(part):
    if abs(part) < mp.mpf("1e-500"):
        return math.copysign(0.0, float(mp.sign(part)))
    return float(part)


def evaluate(name, args):
    z = [mp.mpc(exact(a.real), exact(a.imag)) for a in args]
    # A tiny part must not be lost in a sum with the other: more digits than it has zeros.
    digits = mp.mp.dps
    mp.mp.dps = 2000 if any(min(abs(a.real), abs(a.imag)) < 1e-20 or abs(a) > 1e20 for a in args) else digits
    try:
        if name == "div":
            w = z[0] / z[1]
        elif name == "pow":
            w = mp.exp(z[1] * mp.log(z[0]))
        elif name == "expm1":
            w = 2 * mp.exp(z[0] / 2) * mp.sinh(z[0] / 2)
        elif name == "log1p":
            w = mp.log(1 + z[0])
        else:
            w = FUNCTIONS[name](z[0])
    finally:
        mp.mp.dps = digits
    return back(w.real), back(w.imag)


def text(part):
    return repr(float(part)).replace("nan", "nan") if not isinstance(part, str) else part


def line(name, args, result):
    parts = [text(p) for a in args for p in (a.real, a.imag)] + [text(p) for p in result]
    print(name, *parts)


def finite(name, args):
    re, im = evaluate(name, args)
    if not (math.isfinite(re) and math.isfinite(im)) or max(abs(re), abs(im)) > 1e307:
        return
    if name in UNSIGNED:
        re, im = [("~0.0" if p == 0 else p) for p in (re, im)]
    line(name, args, (re, im))


def points(name, draw):
    for nth in range(12):
        modulus, angle = 10 ** draw.uniform(-2, 1.5), math.radians(draw.uniform(3, 87) + 90 * (nth % 4))
        yield complex(f32(modulus * math.cos(angle)), f32(modulus * math.sin(angle)))
    for nth, scale in enumerate([1e-300, 1e-30, 1e-12, 1e-5, 1e6, 1e15, 1e30, 1e300]):
        a, b = (-1) ** nth * f32(1.5 * scale), (-1) ** (nth // 2) * f32(0.75 * scale)
        yield complex(a, b)
        yield complex(f32(0.625), b)
        yield complex(a, f32(-1.25))
    for real, cuts in ((True, REAL_CUTS.get(name, [])), (False, IMAGINARY_CUTS.get(name, []))):
        for low, high in cuts:
            for distance in (1e-6, 0.5, 3.0, 1e9):
                along = f32(low + distance if low is not None else high - distance)
                for across in (0.0, -0.0, 1e-30, -1e-30):
                    yield complex(along, f32(across)) if real else complex(f32(across), along)
    # On the axes and near branch points.
    for x in (0.5, -0.5):
        yield complex(x, 0.0)
        yield complex(x, -0.0)
        yield complex(0.0, x)
        yield complex(-0.0, x)
    for z in (1 + 1e-4 + 1e-5j, -1 + 1e-4 - 1e-5j, 1e-5 + 1j - 1e-4j, -1e-5 - 1j - 1e-4j, 1.5707963 + 1e-4j, 3.1415927 + 1e-3j):
        yield complex(f32(z.real), f32(z.imag))


def pairs(name, draw):
    for nth in range(16):
        def one(turn, low, high):
            modulus, angle = 10 ** draw.uniform(low, high), math.radians(draw.uniform(3, 87) + 90 * turn)
            return complex(f32(modulus * math.cos(angle)), f32(modulus * math.sin(angle)))
        yield one(nth % 4, -1, 1), one(nth // 4, -1, 0.7)
    if name == "pow":
        for exponent in (-3, -1, -0.5, 0.5, 1, 2, 3, 7, 64, 1.5):
            yield complex(-1.25, 0.75), complex(exponent, 0.0)
        yield complex(-2.0, 0.0), complex(0.5, 0.0)
        yield complex(-2.0, -0.0), complex(0.5, 0.0)
        yield complex(1e-20, 1e-20), complex(1.5, 0.5)
    else:
        for scale, by in ((1e30, 1e30), (1e-30, 1e-30), (1e30, 1e-5), (1e300, 1e300), (1e-300, 1e-300), (1e300, 1e10), (1e-290, 1e10), (1, 1e300), (1e307, 1e307)):
            yield complex(f32(1.5 * scale), f32(-scale)), complex(f32(by), f32(0.5 * by))
            yield complex(f32(1.5 * scale), f32(-scale)), complex(f32(-0.25 * by), f32(by))
            yield complex(f32(1.5 * scale), f32(scale)), complex(f32(by), f32(1e-9 * by))


FINITE = (0.0, 0.75)
# Annex G: (re, im) -> (re, im) with a positive imaginary part, and a positive real one of odd and even functions. "x" and "y" are
# nonzero finite numbers.
X, Y = 0.75, 1.25
G = {
    "acosh": [((X, INF), (INF, PI / 2)), ((-INF, Y), (INF, PI)), ((INF, Y), (INF, 0.0)), ((-INF, INF), (INF, 3 * PI / 4)),
              ((INF, INF), (INF, PI / 4)), ((INF, NAN), (INF, NAN)), ((-INF, NAN), (INF, NAN)), ((NAN, Y), (NAN, NAN)),
              ((NAN, INF), (INF, NAN)), ((X, NAN), (NAN, NAN)), ((0.0, 0.0), (0.0, PI / 2)), ((-0.0, 0.0), (0.0, PI / 2))],
    "acos": [((0.0, 0.0), (PI / 2, -0.0)), ((-0.0, 0.0), (PI / 2, -0.0)), ((0.0, NAN), (PI / 2, NAN)), ((X, INF), (PI / 2, -INF)),
             ((X, NAN), (NAN, NAN)), ((-INF, Y), (PI, -INF)), ((INF, Y), (0.0, -INF)), ((-INF, INF), (3 * PI / 4, -INF)),
             ((INF, INF), (PI / 4, -INF)), ((INF, NAN), (NAN, "~inf")), ((-INF, NAN), (NAN, "~inf")), ((NAN, Y), (NAN, NAN)),
             ((NAN, INF), (NAN, -INF))],
    "asinh": [((0.0, 0.0), (0.0, 0.0)), ((X, INF), (INF, PI / 2)), ((X, NAN), (NAN, NAN)), ((INF, Y), (INF, 0.0)),
              ((INF, INF), (INF, PI / 4)), ((INF, NAN), (INF, NAN)), ((NAN, 0.0), (NAN, 0.0)), ((NAN, Y), (NAN, NAN)),
              ((NAN, INF), ("~inf", NAN))],
    "atanh": [((0.0, 0.0), (0.0, 0.0)), ((0.0, NAN), (0.0, NAN)), ((1.0, 0.0), (INF, 0.0)), ((X, INF), (0.0, PI / 2)),
              ((X, NAN), (NAN, NAN)), ((INF, Y), (0.0, PI / 2)), ((INF, INF), (0.0, PI / 2)), ((INF, NAN), (0.0, NAN)),
              ((NAN, Y), (NAN, NAN)), ((NAN, INF), ("~0.0", PI / 2))],
    "cosh": [((0.0, 0.0), (1.0, 0.0)), ((0.0, INF), (NAN, "~0.0")), ((0.0, NAN), (NAN, "~0.0")), ((X, INF), (NAN, NAN)),
             ((X, NAN), (NAN, NAN)), ((INF, 0.0), (INF, 0.0)), ((INF, Y), (INF, INF)), ((INF, 2.5), (-INF, INF)),
             ((INF, INF), ("~inf", NAN)), ((INF, NAN), (INF, NAN)), ((NAN, 0.0), (NAN, "~0.0")), ((NAN, Y), (NAN, NAN))],
    "sinh": [((0.0, 0.0), (0.0, 0.0)), ((0.0, INF), ("~0.0", NAN)), ((0.0, NAN), ("~0.0", NAN)), ((X, INF), (NAN, NAN)),
             ((X, NAN), (NAN, NAN)), ((INF, 0.0), (INF, 0.0)), ((INF, Y), (INF, INF)), ((INF, 2.5), (-INF, INF)),
             ((INF, INF), ("~inf", NAN)), ((INF, NAN), ("~inf", NAN)), ((NAN, 0.0), (NAN, 0.0)), ((NAN, Y), (NAN, NAN))],
    "tanh": [((0.0, 0.0), (0.0, 0.0)), ((X, INF), (NAN, NAN)), ((X, NAN), (NAN, NAN)), ((INF, Y), (1.0, 0.0)),
             ((INF, 2.5), (1.0, -0.0)), ((INF, INF), (1.0, "~0.0")), ((INF, NAN), (1.0, "~0.0")), ((NAN, 0.0), (NAN, 0.0)),
             ((NAN, Y), (NAN, NAN)), ((0.0, INF), (0.0, NAN)), ((0.0, NAN), (0.0, NAN))],
    "exp": [((0.0, 0.0), (1.0, 0.0)), ((-0.0, 0.0), (1.0, 0.0)), ((X, INF), (NAN, NAN)), ((X, NAN), (NAN, NAN)),
            ((INF, 0.0), (INF, 0.0)), ((-INF, Y), (0.0, 0.0)), ((-INF, 2.5), (-0.0, 0.0)), ((INF, Y), (INF, INF)),
            ((INF, 2.5), (-INF, INF)), ((-INF, INF), ("~0.0", "~0.0")), ((INF, INF), ("~inf", NAN)),
            ((-INF, NAN), ("~0.0", "~0.0")), ((INF, NAN), ("~inf", NAN)), ((NAN, 0.0), (NAN, 0.0)), ((NAN, Y), (NAN, NAN))],
    "log": [((-0.0, 0.0), (-INF, PI)), ((0.0, 0.0), (-INF, 0.0)), ((X, INF), (INF, PI / 2)), ((X, NAN), (NAN, NAN)),
            ((-INF, Y), (INF, PI)), ((INF, Y), (INF, 0.0)), ((-INF, INF), (INF, 3 * PI / 4)), ((INF, INF), (INF, PI / 4)),
            ((INF, NAN), (INF, NAN)), ((-INF, NAN), (INF, NAN)), ((NAN, Y), (NAN, NAN)), ((NAN, INF), (INF, NAN))],
    "sqrt": [((0.0, 0.0), (0.0, 0.0)), ((-0.0, 0.0), (0.0, 0.0)), ((X, INF), (INF, INF)), ((-X, INF), (INF, INF)),
             ((INF, INF), (INF, INF)), ((-INF, INF), (INF, INF)), ((NAN, INF), (INF, INF)), ((X, NAN), (NAN, NAN)),
             ((-INF, Y), (0.0, INF)), ((INF, Y), (INF, 0.0)), ((-INF, NAN), (NAN, "~inf")), ((INF, NAN), (INF, NAN)),
             ((NAN, Y), (NAN, NAN))],
}
ODD, EVEN = {"asinh", "atanh", "sinh", "tanh"}, {"cosh"}


def negative(part):
    if isinstance(part, str):
        return part
    return -part


def special(name):
    """All entries of a function, with those that its symmetries give."""
    for (re, im), (u, v) in G[name]:
        all_signs = {}
        def add(z, w):
            all_signs[tuple(map(repr, z))] = (z, w)
        add((re, im), (u, v))
        add((re, -im), (u, negative(v)))
        if name in ODD:
            add((-re, -im), (negative(u), negative(v)))
            add((-re, im), (negative(u), v))
        if name in EVEN:
            add((-re, -im), (u, v))
            add((-re, im), (u, negative(v)))
        yield from all_signs.values()


def of_parts(z, w, name):
    # The part of an argument that is NaN has no sign: each entry once.
    line(name, [complex(*z)], w)


def write():
    draw = random.Random(1)
    for name in FUNCTIONS:
        seen = set()
        for z in points(name, draw):
            if repr(z) not in seen and z not in (1, -1):
                seen.add(repr(z))
                finite(name, [z])
    for name in ("div", "pow"):
        for args in pairs(name, draw):
            finite(name, list(args))
    for name in G:
        done = set()
        for z, w in special(name):
            if repr(z) not in done:
                done.add(repr(z))
                of_parts(z, w, name)
    # f(z) = -i g(iz) and f(z) = g(iz).
    for name, base, rotated in (("asin", "asinh", True), ("atan", "atanh", True), ("sin", "sinh", True), ("tan", "tanh", True), ("cos", "cosh", False)):
        done = set()
        for (re, im), (u, v) in special(base):
            # iz = (re, im), so z = (im, -re).
            z, w = (im, -re), ((v, negative(u)) if rotated else (u, v))
            if repr(z) not in done:
                done.add(repr(z))
                of_parts(z, w, name)


write()

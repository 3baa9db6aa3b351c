"""Keyway: tensors whose kernels come from backends that are found at run time.

>>> import keyway as kw
>>> x = kw.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad.tolist()
[2.0, 4.0, 6.0]
"""

import builtins
import sys
from math import e, inf, nan, pi

from . import _ops, _tensor
from ._errors import (
    AutogradError,
    BackendError,
    DTypeError,
    ElementError,
    Error,
    FileError,
    MissingKernelError,
    OutOfMemoryError,
    ReadOnlyError,
    ShapeError,
)
from ._functions import as_tensor, broadcast_to, clip, concatenate, is_tensor, numel
from ._keyway import (
    Tensor,
    __version__,
    _dtype,
    arange,
    asarray,
    backends,
    bfloat16,
    bool,
    complex128,
    complex64,
    dtype,
    empty,
    empty_like,
    eye,
    float16,
    float32,
    float64,
    from_dlpack,
    full,
    full_like,
    get_default_dtype,
    get_num_threads,
    hstack,
    int16,
    int32,
    int64,
    int8,
    linspace,
    load,
    manual_seed,
    meshgrid,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    save,
    set_default_dtype,
    set_num_threads,
    tensor,
    uint16,
    uint32,
    uint64,
    uint8,
    vstack,
    zeros,
    zeros_like,
)
if sys.platform == "linux":
    from ._keyway import from_file, open_shared
from . import autograd, fft, linalg, nn, ops, optim
from .autograd import enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled

_tensor.install()
_ops.install(globals())

newaxis = None
from_numpy = asarray
# Methods that are functions too.
allclose, chunk, det, diag, equal, flatten = (
    Tensor.allclose, Tensor.chunk, Tensor.det, Tensor.diag, Tensor.equal, Tensor.flatten
)
matrix_exp, matrix_power, max, min, movedim = (
    Tensor.matrix_exp, Tensor.matrix_power, Tensor.max, Tensor.min, Tensor.movedim
)
narrow, slogdet, split, t = Tensor.narrow, Tensor.slogdet, Tensor.split, Tensor.t
concat = cat  # noqa: F821  # an op
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble = complex64, complex128


def __getattr__(name: str) -> object:
    # Imported at first use: they need the modules of the standard library for processes.
    if name in ("data", "multiprocessing"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise builtins.AttributeError(f"module `keyway` has no attribute `{name}`")

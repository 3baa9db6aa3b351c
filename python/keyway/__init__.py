"""Keyway: tensors whose kernels come from backends that are found at run time.

>>> import keyway as kw
>>> x = kw.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad.tolist()
[2.0, 4.0, 6.0]
"""

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
from ._functions import (
    allclose,
    as_tensor,
    broadcast_to,
    clip,
    concatenate,
    diag,
    empty_like,
    equal,
    full_like,
    hstack,
    is_tensor,
    meshgrid,
    numel,
    ones_like,
    rand_like,
    randn_like,
    vstack,
    zeros_like,
)
from ._keyway import (
    Tensor,
    __version__,
    _dtype,
    arange,
    asarray,
    backends,
    bfloat16,
    bool,
    complex64,
    complex128,
    dtype,
    empty,
    eye,
    float16,
    float32,
    float64,
    from_dlpack,
    full,
    get_default_dtype,
    get_num_threads,
    int8,
    int16,
    int32,
    int64,
    linspace,
    load,
    manual_seed,
    ones,
    rand,
    randint,
    randn,
    randperm,
    save,
    set_default_dtype,
    set_num_threads,
    tensor,
    uint8,
    uint16,
    uint32,
    uint64,
    zeros,
)
from . import autograd, fft, linalg, nn, ops, optim
from .autograd import enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled

_tensor.install()
_ops.install(globals())

newaxis = None
from_numpy = asarray
max, min, split = _tensor.max, _tensor.min, _tensor.split
chunk, flatten, movedim, narrow, t = _tensor.chunk, _tensor.flatten, _tensor.movedim, _tensor.narrow, _tensor.t
concat = cat  # noqa: F821  # an op
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble = complex64, complex128

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

from . import _device, _names, _ops, _random, _tensor
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
from ._dtypes import finfo, iinfo
from ._functions import (
    addmv,
    addr,
    adjoint,
    as_tensor,
    bernoulli,
    broadcast_to,
    cartesian_prod,
    chain_matmul,
    cholesky_inverse,
    cholesky_solve,
    clamp,
    clip,
    column_stack,
    combinations,
    concatenate,
    conj,
    constant_pad_nd,
    diagflat,
    diff,
    dist,
    dsplit,
    hsplit,
    imag,
    inner,
    is_nonzero,
    is_tensor,
    isin,
    isreal,
    ldexp,
    logaddexp2,
    msort,
    multinomial,
    nonzero,
    norm,
    numel,
    poisson,
    positive,
    randint_like,
    real,
    resolve_conj,
    resolve_neg,
    scalar_tensor,
    searchsorted,
    sgn,
    slogdet,
    split_with_sizes,
    tensordot,
    unravel_index,
    vsplit,
)
from ._keyway import (
    Generator,
    Tensor,
    __version__,
    _dtype,
    arange,
    asarray,
    backends,
    bfloat16,
    block_diag,
    bool,
    broadcast_shapes,
    broadcast_tensors,
    can_cast,
    complex128,
    complex64,
    devices,
    dstack,
    dtype,
    empty,
    empty_like,
    eye,
    float16,
    float32,
    float64,
    from_arrow,
    from_dlpack,
    full,
    full_like,
    get_default_dtype,
    get_num_threads,
    get_rng_state,
    hstack,
    initial_seed,
    int16,
    int32,
    int64,
    int8,
    linspace,
    logspace,
    manual_seed,
    meshgrid,
    normal,
    ones,
    ones_like,
    promote_types,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    result_type,
    set_default_dtype,
    set_num_threads,
    set_printoptions,
    set_rng_state,
    sparse_coo_tensor,
    sparse_csr_tensor,
    tensor,
    tril_indices,
    triu_indices,
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
from . import amp, autograd, cuda, fft, linalg, nn, ops, optim, profiler, sparse, utils
from ._device import device
from ._files import load, safe_open, save
from ._torch import from_torch
from .amp import autocast
from .autograd import (
    enable_grad,
    grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

_device.install()
_tensor.install()
_ops.install(globals())
_ops.install_composed(globals())
_random.install(globals())

newaxis = None
from_numpy = asarray
# Methods that are functions too.
allclose, chunk, det, diag, equal, flatten = (
    Tensor.allclose, Tensor.chunk, Tensor.det, Tensor.diag, Tensor.equal, Tensor.flatten
)
matrix_exp, matrix_power, max, min, movedim = (
    Tensor.matrix_exp, Tensor.matrix_power, Tensor.max, Tensor.min, Tensor.movedim
)
narrow, split, t = Tensor.narrow, Tensor.split, Tensor.t
repeat_interleave, take = Tensor.repeat_interleave, Tensor.take
globals().update({_name: getattr(nn.functional, _name) for _name in _names.OF_LAYERS})
_names.install(globals())
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble = complex64, complex128

# Names of PyTorch that are not here, and what to write.
_OTHERS = {
    "FloatTensor": "kw.tensor(data, dtype=kw.float32)",
    "DoubleTensor": "kw.tensor(data, dtype=kw.float64)",
    "LongTensor": "kw.tensor(data, dtype=kw.int64)",
    "IntTensor": "kw.tensor(data, dtype=kw.int32)",
    "BoolTensor": "kw.tensor(data, dtype=kw.bool)",
    "compile": "the function itself",
    "jit": "the function itself",
    "vmap": "an op with a batch dimension, or a loop",
    "func": "kw.autograd.functional",
    "is_autocast_enabled": "kw.amp.is_autocast_enabled",
    "backends": "kw.backends()",
}

from . import array_api  # noqa: E402  # its functions are those above


def __getattr__(name: str) -> object:
    """A method of ``Tensor`` as a function; a name of PyTorch that is missing is an error that names another."""
    # Imported at first use: they need the modules of the standard library for processes.
    if name in ("data", "multiprocessing"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    method = getattr(Tensor, name, None) if not name.startswith("__") else None
    if callable(method):
        return method
    hint = f"; use {_OTHERS[name]}" if name in _OTHERS else ""
    raise builtins.AttributeError(f"module `keyway` has no attribute `{name}`{hint}")

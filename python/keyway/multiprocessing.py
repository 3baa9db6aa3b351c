"""``multiprocessing``, with tensors that share their memory between processes.

A tensor that goes through a ``Queue``, a ``Pipe`` or the arguments of a ``Process`` is moved to shared memory, and the receiver has a
tensor over the same memory: each sees the other's changes. With every start method; a child of ``fork`` has besides all tensors that
were in shared memory before. Tensors whose memory others use, such as views of a tensor that is not shared yet, arrive as copies.

>>> import keyway as kw
>>> from keyway import multiprocessing as mp
>>> x = kw.zeros(3).share_memory_()
>>> def work(x):
...     x += 1
>>> process = mp.get_context("fork").Process(target=work, args=(x,))
>>> process.start(); process.join()
>>> x.tolist()
[1.0, 1.0, 1.0]
"""

from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _names

from ._shared import release_unreceived  # registers the tensors' form

__all__ = [*_names, "release_unreceived"]  # noqa: PLE0604

"""Tensors in messages between processes: the memory is shared, the message has its name.

Importing this module registers the tensors' form with ``multiprocessing``. A name is valid as long as the sender has the memory, so
the sender keeps each tensor that it sent until the receiver reports in a page of shared memory that it has opened it. Nothing has a
name in a folder: when processes are killed, the kernel frees their memory.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ._errors import ShapeError
from ._keyway import Tensor, _zeros_shared, open_shared

SLOTS = 65_536
# Sent tensors above which a send looks for received ones.
_FEW = 64
# Pages of other processes that stay mapped.
_PAGES = 64
# Seconds between two looks for received tensors while there are sent ones.
_PERIOD = 0.1


class _Sent:
    """The tensors of this process that were sent and not received yet, by their index in a page of flags."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tensors: dict[int, Tensor] = {}
        self.free: list[int] = []
        self.used = 0
        self.limit = _FEW
        self.name = ""
        self.flags: Any = None
        self.watched = False

    def add(self, tensor: Tensor) -> tuple[str, int]:
        """Keeps a tensor until it is received; returns the name of the page and the index of its flag."""
        with self.lock:
            if self.flags is None:
                page = _zeros_shared([SLOTS], "uint8")
                self.name = page.shared_name()
                self.flags = memoryview(page)  # type: ignore[arg-type]
            if len(self.tensors) >= self.limit:
                self._sweep()
                self.limit = max(_FEW, 2 * len(self.tensors))
            if not self.free and self.used == SLOTS:
                self._sweep()
                if not self.free:
                    raise OSError(f"{SLOTS} tensors were sent and not received; receive some, or send one large tensor")
            if self.free:
                slot = self.free.pop()
            else:
                slot, self.used = self.used, self.used + 1
            self.flags[slot] = 0
            self.tensors[slot] = tensor
            if not self.watched:
                self.watched = True
                threading.Thread(target=self._watch, name="keyway-sent-tensors", daemon=True).start()
            return self.name, slot

    def _sweep(self) -> None:
        for slot in [slot for slot in self.tensors if self.flags[slot]]:
            del self.tensors[slot]
            self.free.append(slot)

    def release(self) -> int:
        """Drops the tensors that were not received; returns their number."""
        with self.lock:
            if self.flags is not None:
                self._sweep()
            dropped = len(self.tensors)
            # Their flags may still be set by a late receiver, so the slots are not used again.
            self.tensors.clear()
            return dropped

    def _watch(self) -> None:
        while True:
            time.sleep(_PERIOD)
            with self.lock:
                self._sweep()
                if not self.tensors:
                    self.watched = False
                    return


_sent = _Sent()
_pages: OrderedDict[str, Any] = OrderedDict()


def _after_fork() -> None:
    # The parent keeps what it sent, and a child has none of its threads.
    global _sent, _pages
    _sent, _pages = _Sent(), OrderedDict()


os.register_at_fork(after_in_child=_after_fork)


def release_unreceived() -> int:
    """Frees the memory of tensors that this process sent and nobody received, and returns their number.

    After a receiver was killed, this process keeps what it had been sent until it ends, since another process may read the same
    queue. A process that reads such a message afterwards gets a FileError.
    """
    return _sent.release()


def _is_alive(name: str) -> bool:
    """Whether the process of a name exists."""
    return os.path.exists(f"/proc/{name.split(':')[1]}")


def _received(name: str, slot: int) -> None:
    flags = _pages.get(name)
    if flags is None:
        try:
            flags = memoryview(open_shared(name))  # type: ignore[arg-type]
        except OSError:
            # The sender has ended, and its memory is open here by now.
            return
        for known in [known for known in _pages if not _is_alive(known)]:
            del _pages[known]
        if len(_pages) == _PAGES:
            _pages.popitem(last=False)
        _pages[name] = flags
    if 0 <= slot < len(flags):
        flags[slot] = 1


def _receive(name: str, page: str, slot: int, requires_grad: bool, attributes: dict[str, Any]) -> Tensor:
    tensor = open_shared(name)
    _received(page, slot)
    if requires_grad:
        tensor.requires_grad_(True)
    tensor.__dict__.update(attributes)
    return tensor


def in_shared_memory(tensor: Tensor) -> Tensor:
    """The tensor after it was moved to shared memory, or a copy there if other tensors use its memory."""
    if tensor.is_shared():
        return tensor
    try:
        return tensor._share()
    except ShapeError:
        return tensor._to_shared()


def can_share(tensor: Tensor) -> bool:
    """Whether a tensor can be in shared memory. Raises for one whose history would be lost."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise ValueError(
            f"expected a tensor without history to send to another process, got the result of `{tensor.grad_fn}`; "
            "call `detach()` first"
        )
    return tensor.device == "cpu" and tensor.layout == "strided"


def _reduce(tensor: Tensor) -> Any:
    if not can_share(tensor):
        return tensor.__reduce__()
    shared = in_shared_memory(tensor).detach()
    page, slot = _sent.add(shared)
    return _receive, (shared.shared_name(), page, slot, tensor.requires_grad, tensor.__dict__)


ForkingPickler.register(Tensor, _reduce)

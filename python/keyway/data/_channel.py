"""Messages over a Unix socket whose tensors are in shared memory: their descriptors go along, so no message outlives its memory."""

from __future__ import annotations

import io
import os
import pickle
import socket
import threading
from array import array
from collections import deque
from typing import Any

from .._keyway import Tensor, _from_shared_parts, _zeros_shared
from .._shared import can_share

# The most descriptors that Linux passes with one message (SCM_MAX_FD).
_MOST_FILES = 253
# Bytes of tensors that are cheaper to copy than to map.
_SMALL = 2048
# Bytes of a message; longer ones go through shared memory.
_INLINE = 16_384
_ANCILLARY = socket.CMSG_SPACE(_MOST_FILES * array("i").itemsize)

# The first byte of a message: its content follows, or is in the last file.
_HERE, _LAST = b"\0", b"\1"

class _Reading(threading.local):
    """The descriptors of the message that a thread is reading."""

    files: list[int] = []


_reading = _Reading()


def _tensor(index: int, parts: tuple[Any, ...], requires_grad: bool, attributes: dict[str, Any] | None) -> Tensor:
    tensor = _from_shared_parts(_reading.files[index], *parts)
    if requires_grad:
        tensor.requires_grad_(True)
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


class _Pickler(pickle.Pickler):
    """A pickler that collects the descriptors of the shared tensors of a message."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.files: list[int] = []

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not Tensor or not can_share(obj):
            return NotImplemented
        few, small = len(self.files) < _MOST_FILES - 1, obj.nbytes <= _SMALL
        if not few or small and (not obj.is_shared() or obj.storage_offset() == 0):
            reduced: Any = obj.__reduce__()
            rebuild, (values, shape, dtype, device, requires_grad), attributes = reduced
            return rebuild, (values, shape, dtype.name, device, requires_grad), attributes or None
        number, *parts = (obj if obj.is_shared() else obj._to_shared())._shared_parts()
        self.files.append(number)
        return _tensor, (len(self.files) - 1, tuple(parts), obj.requires_grad, obj.__dict__ or None)


def _packed(message: Any) -> tuple[bytes, list[int]]:
    """The bytes and the descriptors of a message."""
    file = io.BytesIO()
    file.write(_HERE)
    pickler = _Pickler(file)
    try:
        pickler.dump(message)
        body = file.getvalue()
        if len(body) > _INLINE:
            long = _zeros_shared([len(body)], "uint8")
            memoryview(long)[:] = body  # type: ignore[arg-type]
            pickler.files.append(long._shared_parts()[0])
            body = _LAST + len(body).to_bytes(8, "little")
        return body, pickler.files
    except BaseException:
        for number in pickler.files:
            os.close(number)
        raise


def _unpacked(data: Any, files: list[int]) -> Any:
    content: Any = data[1:]
    if data[:1] == _LAST:
        size = int.from_bytes(data[1:9], "little")
        content = memoryview(_from_shared_parts(files[-1], "uint8", 0, [size], [1]))[1:]  # type: ignore[arg-type]
    _reading.files = files
    try:
        return pickle.loads(content)
    finally:
        _reading.files = []


class Channel:
    """One end of a connection; each message is received whole. A peer that has ended is an EOFError."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.received: deque[Any] = deque()
        self.buffer = memoryview(bytearray(2 * _INLINE))

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        """The two ends."""
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return Channel(first), Channel(second)

    def __reduce__(self) -> Any:
        return Channel, (self.socket,)

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self.socket.fileno()

    def close(self) -> None:
        """Closes the connection: the peer's next call is an EOFError."""
        self.socket.close()

    def send(self, message: Any) -> None:
        """Sends a message, waiting until the peer has room for it."""
        self._send(message, 0)

    def send_or_receive(self, message: Any) -> None:
        """Sends a message; while the peer has no room for it, its own messages are read, so that two peers never wait for another."""
        self._send(message, socket.MSG_DONTWAIT)

    def _send(self, message: Any, flags: int) -> None:
        data, files = _packed(message)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", files))] if files else []
        try:
            while True:
                try:
                    self.socket.sendmsg([data], control, flags)
                    return
                except BlockingIOError:
                    self._wait_for_room()
        except (BrokenPipeError, ConnectionResetError):
            raise EOFError("the peer has ended") from None
        finally:
            for number in files:
                os.close(number)

    def _wait_for_room(self) -> None:
        import select

        poll = select.poll()
        poll.register(self.socket, select.POLLIN | select.POLLOUT)
        for _, events in poll.poll():
            if events & select.POLLIN:
                self.received.append(self._read(0))

    def receive(self, wait: bool = True) -> Any:
        """The next message; BlockingIOError if there is none and ``wait`` is false."""
        if self.received:
            return self.received.popleft()
        return self._read(0 if wait else socket.MSG_DONTWAIT)

    def _read(self, flags: int) -> Any:
        try:
            size, control, received_flags, _ = self.socket.recvmsg_into([self.buffer], _ANCILLARY, flags | socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            raise EOFError("the peer has ended") from None
        files = array("i")
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(content[: len(content) - len(content) % files.itemsize])
        try:
            if not size:
                raise EOFError("the peer has ended")
            if received_flags & socket.MSG_CTRUNC:
                raise OSError(
                    "a message lost descriptors of its tensors: this process has too many open files; drop batches, or raise the "
                    "limit with `ulimit -n`"
                )
            return _unpacked(self.buffer[:size], list(files))
        finally:
            for number in files:
                os.close(number)

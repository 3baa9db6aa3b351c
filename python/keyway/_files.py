"""Files: those of the Rust side for tensors, and pickles for checkpoints of other values."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from . import _keyway

# A pickle may hold any object of these modules, and no other.
_PLAIN = {
    ("builtins", name) for name in ("complex", "frozenset", "set")
} | {
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("builtins", "dict"),
    ("builtins", "list"),
    ("builtins", "tuple"),
    ("keyway._keyway", "_rebuild"),
    ("keyway._keyway", "_dtype"),
    ("keyway._device", "device"),
}
_PICKLES = (".pt", ".pth", ".ckpt", ".pkl")


class _Unpickler(pickle.Unpickler):
    """Reads tensors, numbers, texts and containers, and calls no other code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(
            f"load: expected tensors, numbers, texts and containers, got an object of `{module}.{name}`; "
            "save `model.state_dict()` instead of the model, or read the file with `weights_only=False` if you trust it"
        )


def _is_pickle(path: Any) -> bool:
    return isinstance(path, (str, PathLike)) and os.fspath(path).endswith(_PICKLES)


def save(obj: Any, path: Any) -> None:
    """Writes a tensor to a ``.npy`` file, a dict of tensors to a ``.safetensors`` or ``.npz`` file, other values to a pickle.

    Files named ``.pt``, ``.pth``, ``.ckpt`` or ``.pkl`` are pickles, for dicts of states, numbers and texts. The file is replaced
    when all is written.
    """
    if hasattr(path, "write"):
        pickle.dump(obj, path)
        return
    if not _is_pickle(path):
        _keyway.save(obj, path)
        return
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            pickle.dump(obj, file)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def load(path: Any, map_location: Any = None, weights_only: bool = True) -> Any:
    """Reads what ``save`` wrote: a tensor, a dict of tensors, or the values of a pickle.

    A pickle may hold tensors, numbers, texts and containers. ``weights_only=False`` reads any object, which may run any code.
    ``map_location`` moves dicts of tensors to a device.
    """
    if hasattr(path, "read"):
        made = _unpickled(path.read(), weights_only, "the file")
    elif _is_pickle(path):
        with open(path, "rb") as file:
            made = _unpickled(file.read(), weights_only, os.fspath(path))
    else:
        made = _keyway.load(path)
    return made if map_location is None else _moved(made, map_location)


class safe_open(Mapping[str, _keyway.Tensor]):
    """A ``.safetensors`` file whose tensors are loaded one at a time; a mapping of names to tensors.

    Opening reads the header alone. On Linux a tensor of floating-point or complex numbers is a view of the mapped file: its pages
    are read when they are used, and writes to it do not reach the file. Tensors of one name share these pages, so a write to one is
    seen by the others: take ``.clone()`` to change one. Integers, bools and tensors that are not aligned in the file are read whole.

    ``framework`` exists for programs written for the package ``safetensors``; the tensors are Keyway's. If another program
    truncates the file while a view of it is used, the process ends with SIGBUS.

    Raises ``ValueError`` for a damaged file, ``OSError`` for one that cannot be read.
    """

    def __init__(self, filename: str | PathLike[str], framework: str = "keyway", device: Any = "cpu") -> None:
        if framework != "keyway":
            raise ValueError(
                f"safe_open: expected framework='keyway', got {framework!r}; convert a tensor by `.to_torch()` or `.numpy()`"
            )
        self._file: Any = _keyway._MappedFile(filename)
        self._name = os.fspath(filename)
        self._device = "cpu" if device is None else device
        # The header does not change, and a state dict asks for each name.
        self._keys: list[str] = self._file.keys()
        # An unknown device is an error now, not at the first tensor.
        _moved(_keyway.zeros(0), self._device)

    def _opened(self) -> Any:
        if self._file is None:
            raise ValueError(f"safe_open: {self._name} was closed; use tensors of it inside the `with` block, or keep them")
        return self._file

    def keys(self) -> list[str]:  # type: ignore[override]
        """The names of the tensors, sorted."""
        self._opened()
        return list(self._keys)

    def metadata(self) -> dict[str, str]:
        """The metadata that the file's writer added."""
        data: dict[str, str] = self._opened().metadata()
        return data

    def get_tensor(self, name: str) -> _keyway.Tensor:
        """The tensor of a name, on the device of the file; ``KeyError`` for a name that is not there."""
        if name not in self:
            names = ", ".join(f"`{key}`" for key in self._keys[:8])
            raise KeyError(f"{self._name} has no tensor `{name}`; there are {names or 'none'}")
        made: _keyway.Tensor = _moved(self._opened().tensor(name), self._device)
        return made

    def get_slice(self, name: str) -> Slice:
        """The tensor of a name before any of it is read; indexing reads a part."""
        return Slice(self._opened(), name, self._device)

    def __getitem__(self, name: str) -> _keyway.Tensor:
        return self.get_tensor(name)

    def __contains__(self, name: object) -> bool:
        self._opened()
        return name in self._keys

    # Two open files are equal if they are one object: their tensors are not read.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __enter__(self) -> safe_open:
        self._opened()
        return self

    def __exit__(self, *error: object) -> None:
        self._file = None


class Slice:
    """A tensor of a file of ``safe_open`` of which parts are loaded by indexing."""

    def __init__(self, file: Any, name: str, device: Any) -> None:
        self._file, self._name, self._device = file, name, device
        self._dtype, self._shape = file.describe(name)

    def get_shape(self) -> list[int]:
        """The sizes."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """The dtype's name in the file, such as ``F32``."""
        dtype: str = self._dtype
        return dtype

    def __getitem__(self, index: Any) -> _keyway.Tensor:
        made: _keyway.Tensor = _moved(self._file.tensor(self._name)[index], self._device)
        return made


def _unpickled(data: bytes, weights_only: bool, name: str) -> Any:
    if data[:4] == b"PK\x03\x04":
        raise ValueError(f"load: {name} was written by PyTorch; write it with `safetensors.torch.save_file` and read that here")
    file = io.BytesIO(data)
    return _Unpickler(file).load() if weights_only else pickle.load(file)


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, _keyway.Tensor):
        return value.to(device=device)
    if isinstance(value, dict):
        return type(value)((key, _moved(one, device)) for key, one in value.items())
    if type(value) in (list, tuple):
        return type(value)(_moved(one, device) for one in value)
    return value

"""Files: those of the Rust side for tensors, and pickles for checkpoints of other values."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
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

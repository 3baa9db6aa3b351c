"""``keyway.data`` by the path that it has in PyTorch."""

from .. import data as _data
from ..data import *  # noqa: F403

__all__ = list(_data.__all__)

"""``keyway.data`` by the path that it has in PyTorch."""

from ..data import *  # noqa: F403

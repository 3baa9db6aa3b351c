"""GPUs of NVIDIA, if a backend of them is installed."""

from ._device import count


def is_available() -> bool:
    """Whether there is a GPU and a backend for it."""
    return count("cuda") > 0


def device_count() -> int:
    """The number of GPUs."""
    return count("cuda")

"""Exceptions. Each is a subclass of the built-in exceptions that NumPy or PyTorch raise for the same mistake."""

import builtins


class Error(Exception):
    """The base class of all exceptions of this package."""


class ShapeError(Error, ValueError, RuntimeError):
    """Sizes or values that do not fit, as NumPy's ValueError and PyTorch's RuntimeError."""


class ElementError(Error, builtins.IndexError, ValueError, RuntimeError):
    """An element that a function does not take: an index out of range among the elements, a singular matrix."""


class DTypeError(Error, TypeError, RuntimeError):
    """A dtype that a function does not take."""


class IndexError(Error, builtins.IndexError):
    """An index or dimension out of range."""


class AttributeError(Error, builtins.AttributeError):
    """An op that does not exist."""


class MissingKernelError(Error, NotImplementedError):
    """No installed backend serves the call for this device, layout and dtype."""


class BackendError(Error, RuntimeError):
    """A backend, device or library failed."""


class AutogradError(Error, RuntimeError):
    """A mistake in the use of gradients."""


class ReadOnlyError(Error, ValueError, RuntimeError):
    """A change of read-only memory."""


class OutOfMemoryError(Error, MemoryError, RuntimeError):
    """Memory of the host or of a device ran out."""


class FileError(Error, OSError, ValueError):
    """A file that cannot be read or written, or is damaged."""

"""DLPack's C functions, called through ctypes, and types of other libraries that offer them."""

import ctypes
import gc
import sys

import keyway as kw
import pytest


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Api(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(
                ctypes.c_int,
                ctypes.POINTER(DLTensor),
                ctypes.POINTER(ctypes.c_void_p),
                ctypes.c_void_p,
                SET_ERROR,
            ),
        ),
        ("from_object", FROM_OBJECT),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))),
        ("view", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))),
        (
            "stream",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)),
        ),
    ]


NAME = b"dlpack_exchange_api"
python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
API = Api.from_address(python.PyCapsule_GetPointer(kw.Tensor.__dlpack_c_exchange_api__, NAME))


def exported(x):
    out = ctypes.c_void_p()
    assert API.from_object(x, ctypes.byref(out)) == 0
    return out.value


def test_a_tensor_is_exported_without_a_copy():
    assert tuple(API.version) == (1, 3)
    x = kw.arange(6.0).reshape(2, 3).t()
    managed = Managed.from_address(exported(x))
    tensor = managed.tensor
    assert (tensor.data, tensor.shape[:2], tensor.strides[:2]) == (x.data_ptr(), [3, 2], [1, 3])
    assert (tensor.code, tensor.bits, managed.flags) == (2, 32, 0)
    managed.deleter(ctypes.addressof(managed))


def test_a_struct_becomes_a_tensor_that_frees_it():
    x = kw.arange(4.0)
    out = ctypes.c_void_p()
    assert API.to_object(exported(x), ctypes.byref(out)) == 0
    y = ctypes.cast(out, ctypes.py_object).value
    # The function returns a new reference.
    python.Py_DecRef(ctypes.py_object(y))
    assert sys.getrefcount(y) == sys.getrefcount(x)
    x += 1
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_view_needs_no_owner():
    x = kw.zeros(2, 3)
    tensor = DLTensor()
    assert API.view(x, ctypes.byref(tensor)) == 0
    assert (tensor.data, tensor.ndim, tensor.shape[:2], tensor.strides[:2]) == (x.data_ptr(), 2, [2, 3], [3, 1])
    stream = ctypes.c_void_p(1)
    assert API.stream(1, 0, ctypes.byref(stream)) == 0
    assert stream.value is None


def test_memory_is_allocated_for_a_prototype():
    errors = []
    report = SET_ERROR(lambda context, kind, message: errors.append((kind, message)))
    prototype = DLTensor(ndim=2, code=2, bits=64, lanes=1, device_type=1)
    sizes = (ctypes.c_int64 * 2)(3, 4)
    prototype.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    out = ctypes.c_void_p()
    assert API.allocate(ctypes.byref(prototype), ctypes.byref(out), None, report) == 0
    managed = Managed.from_address(out.value)
    assert (managed.tensor.shape[:2], managed.tensor.strides[:2]) == ([3, 4], [4, 1])
    managed.deleter(out.value)
    for change in ({"bits": 3}, {"device_type": 2}):
        bad = DLTensor.from_buffer_copy(prototype)
        for name, value in change.items():
            setattr(bad, name, value)
        assert API.allocate(ctypes.byref(bad), ctypes.byref(out), None, report) == -1
    sizes[0] = 1 << 62
    assert API.allocate(ctypes.byref(prototype), ctypes.byref(out), None, report) == -1
    assert [kind for kind, _ in errors] == [b"MemoryError"] * 3
    assert b"3 bits" in errors[0][1]


def test_errors_are_exceptions():
    out = ctypes.c_void_p()
    with pytest.raises(TypeError):
        API.from_object(3, ctypes.byref(out))
    with pytest.raises(BufferError, match="detach"):
        API.from_object(kw.ones(2, requires_grad=True), ctypes.byref(out))
    with pytest.raises(TypeError):
        API.view([1.0], ctypes.byref(DLTensor()))


def peer(from_object, **members):
    """A type whose C functions are these."""
    table = Api((1, 3), None)
    table.from_object = FROM_OBJECT(from_object)
    capsule = python.PyCapsule_New(ctypes.addressof(table), NAME, None)
    return type("Peer", (), {"__dlpack_c_exchange_api__": capsule, "table": table, **members})


def test_a_type_with_these_functions_is_asked_through_them():
    x = kw.arange(3.0)

    def from_object(object, out):
        out[0] = exported(object.tensor)
        return 0

    Peer = peer(from_object)
    value = Peer()
    value.tensor = x
    assert kw.from_dlpack(value).data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    "name, advice", [("requires_grad", "detach"), ("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")]
)
def test_lazy_tensors_of_a_peer_are_refused(name, advice):
    x = kw.arange(3.0)

    def from_object(object, out):
        out[0] = exported(x)
        return 0

    members = {"requires_grad": False, "is_conj": lambda self: False, "is_neg": lambda self: False}
    assert kw.from_dlpack(peer(from_object, **members)()).data_ptr() == x.data_ptr()
    members[name] = True if name == "requires_grad" else lambda self: True
    for copy in (None, True):
        with pytest.raises(BufferError, match=advice):
            kw.from_dlpack(peer(from_object, **members)(), copy=copy)


def test_an_error_of_a_producer_is_raised():
    # The functions are those of another type, which refuse the object.
    Peer = type("Peer", (), {"__dlpack_c_exchange_api__": kw.Tensor.__dlpack_c_exchange_api__})
    with pytest.raises(TypeError, match="Peer"):
        kw.from_dlpack(Peer())
    with pytest.raises(BufferError, match="without an exception"):
        kw.from_dlpack(peer(lambda object, out: -1)())


def test_a_round_trip_keeps_the_storage():
    x = kw.arange(4.0)
    y = kw.from_dlpack(x[1:])
    assert y.data_ptr() == x.data_ptr() + 4
    w = kw.ones(4, requires_grad=True)
    product = w * x
    # The change is seen by the version of the storage, which both have.
    y += 1
    with pytest.raises(RuntimeError, match="in place"):
        product.sum().backward()
    del x, y
    gc.collect()

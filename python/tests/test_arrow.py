"""Arrays of Arrow's C data interface, built here by ctypes, and those of pyarrow and polars where they are installed."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

import keyway as kw

Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p),
    ("release", Release), ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.c_void_p), ("release", Release),
    ("private_data", ctypes.c_void_p),
]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """An array over NumPy's memory that counts its releases."""

    def __init__(self, values, format, *, length=None, offset=0, validity=None, null_count=0, child=None, dictionary=None):
        self.values, self.child, self.releases = values, child, 0
        bitmap = None if validity is None else np.packbits(validity, bitorder="little")
        self.bitmap = bitmap
        buffers = [None if bitmap is None else bitmap.ctypes.data]
        if child is None:
            buffers.append(values.ctypes.data)
        self.buffers = (ctypes.c_void_p * len(buffers))(*buffers)
        length = len(values) if length is None else length

        def released(pointer):
            self.releases += 1
            ctypes.cast(pointer, ctypes.POINTER(Array)).contents.release = Release()

        def forgotten(pointer):
            ctypes.cast(pointer, ctypes.POINTER(Schema)).contents.release = Release()

        self.functions = (Release(released), Release(forgotten))
        self.schema = Schema(format=format, n_children=int(child is not None), release=self.functions[1], dictionary=dictionary)
        self.array = Array(
            length=length, null_count=null_count, offset=offset, n_buffers=len(buffers), n_children=int(child is not None),
            buffers=self.buffers, release=self.functions[0],
        )
        if child is not None:
            self.of_child = (ctypes.POINTER(Schema)(child.schema), ctypes.POINTER(Array)(child.array))
            self.schema.children, self.array.children = map(ctypes.pointer, self.of_child)

    def __arrow_c_array__(self, requested_schema=None):
        schema = new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None)
        return schema, new_capsule(ctypes.addressof(self.array), b"arrow_array", None)


def test_memory_is_shared_and_released_once():
    values = np.arange(6, dtype=np.float32)
    producer = Producer(values, b"f", length=4, offset=2)
    x = kw.from_arrow(producer)
    assert x.tolist() == [2.0, 3.0, 4.0, 5.0]
    values[2] = 7.0
    view = x[:1]
    assert view.item() == 7.0
    with pytest.raises(RuntimeError, match="read-only"):
        x.add_(1)
    with pytest.raises(ValueError, match="consumed before"):
        kw.from_arrow(producer)
    del x
    gc.collect()
    assert producer.releases == 0
    del view
    gc.collect()
    assert producer.releases == 1


def test_a_copy_leaves_the_array_to_its_producer():
    producer = Producer(np.array([1, 2], dtype=np.int64), b"l")
    x = kw.tensor(producer)
    x.add_(1)
    assert (x.tolist(), producer.releases, producer.values.tolist()) == ([2, 3], 0, [1, 2])
    assert kw.asarray(producer).dtype == kw.int64


def test_lists_of_a_fixed_size_are_a_dimension():
    leaf = Producer(np.arange(12, dtype=np.int16), b"s")
    rows = Producer(None, b"+w:3", length=2, offset=1, child=leaf)
    assert kw.from_arrow(rows).tolist() == [[3, 4, 5], [6, 7, 8]]
    short = Producer(None, b"+w:3", length=5, child=Producer(np.arange(12, dtype=np.int16), b"s"))
    with pytest.raises(ValueError, match="need 15 elements and have 12"):
        kw.from_arrow(short)


def test_booleans_are_unpacked():
    bits = np.packbits([1, 0, 1, 1, 0, 0, 0, 1, 1, 0], bitorder="little")
    assert kw.from_arrow(Producer(bits, b"b", length=8, offset=2)).tolist() == [True, True, False, False, False, True, True, False]
    with pytest.raises(BufferError, match="bits"):
        kw.from_arrow(Producer(bits, b"b", length=8), copy=False)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"validity": [1, 0, 1], "null_count": 1}, ValueError, "1 nulls"),
        ({"validity": [1, 0, 1], "null_count": -1}, ValueError, "fill or drop"),
        ({"length": -1}, ValueError, "length or offset of -1"),
        ({"offset": -1}, ValueError, "length or offset of -1"),
        ({"length": 2**62}, ValueError, "overflow"),
        ({"format": b"u"}, TypeError, "the format `u`"),
        ({"format": b"+w:x"}, ValueError, r"\+w:x"),
        ({"format": b"+w:2"}, ValueError, "without elements"),
        ({"dictionary": 8}, ValueError, "dictionary"),
    ],
)
def test_what_no_tensor_can_hold_is_an_error(options, error, message):
    producer = Producer(np.zeros(3, dtype=np.float64), **{"format": b"g", **options})
    with pytest.raises(error, match=message):
        kw.from_arrow(producer)
    assert producer.releases == 0
    with pytest.raises(TypeError, match="__arrow_c_array__"):
        kw.from_arrow([1.0])


def test_nulls_outside_a_slice_do_not_matter():
    validity = [0, 1, 1, 0]
    producer = Producer(np.arange(4.0), b"g", length=2, offset=1, validity=validity, null_count=-1)
    assert kw.from_arrow(producer).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", [kw.float16, kw.float32, kw.float64, kw.int8, kw.uint8, kw.int32, kw.uint64, kw.bool])
@pytest.mark.parametrize("shape", [(11,), (0,), (3, 4), (2, 0), (2, 3, 2)])
def test_an_exported_tensor_comes_back(dtype, shape):
    x = (kw.arange(float(np.prod(shape, dtype=int))).reshape(shape) % 2).to(dtype=dtype)
    back = kw.from_arrow(x)
    assert (back.dtype, back.shape, back.tolist()) == (x.dtype, x.shape, x.tolist())


def test_an_exported_tensor_lives_as_long_as_its_array():
    x = kw.ones(4)
    alive = weakref.ref(x)
    back = kw.from_arrow(x)
    x.mul_(3)
    assert back.tolist() == [3.0] * 4
    assert kw.from_arrow(kw.arange(6.0).reshape(2, 3).t()).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    capsules = x.__arrow_c_array__()
    del x, capsules
    gc.collect()
    assert alive() is None and back.tolist() == [3.0] * 4
    for wrong, message in [
        (kw.tensor(1.0), "reshape"), (kw.ones(2, requires_grad=True), "detach"), (kw.ones(2, dtype=kw.complex64), "complex64"),
        (kw.ones(2, dtype=kw.bfloat16), "bfloat16"),
    ]:
        with pytest.raises(BufferError, match=message):
            wrong.__arrow_c_array__()


def test_arrays_of_pyarrow():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    array = pa.array([1.0, 2.0, 3.0])
    assert kw.asarray(array[1:]).tolist() == [2.0, 3.0]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(range(6), pa.int32()), 3)
    assert kw.asarray(lists).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert kw.asarray(pa.array([True, False])).tolist() == [True, False]
    with pytest.raises(ValueError, match="1 nulls"):
        kw.asarray(pa.array([1, None]))
    back = pa.array(kw.arange(4.0).reshape(2, 2))
    assert back.to_pylist() == [[0.0, 1.0], [2.0, 3.0]] and back.type == pa.list_(pa.float32(), 2)
    assert pa.array(kw.tensor([True, False, True])).to_pylist() == [True, False, True]
    back.validate(full=True)
    with pytest.raises(TypeError, match="the format `u`"):
        kw.asarray(pa.array(["a", "b"]))
    chunked = pa.chunked_array([[1], [2]])
    assert kw.asarray(chunked).tolist() == [1, 2]
    with pytest.raises(ValueError):
        kw.asarray(chunked, copy=False)
    with pytest.raises(ValueError, match="1 nulls"):
        kw.asarray(pa.chunked_array([[1, None]]))


def test_series_of_polars():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    assert kw.asarray(pl.Series([1.0, 2.0])).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="1 nulls"):
        kw.tensor(pl.Series([1, None]))
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert kw.from_arrow(pl.Series([1, 2])).tolist() == [1, 2]


class AnArray:
    """An object with `__array__` alone, as those of pandas."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1.5, 2.5])


def test_an_object_with_array_is_converted():
    assert kw.asarray(AnArray()).tolist() == kw.tensor(AnArray()).tolist() == [1.5, 2.5]

"""Memory shared with NumPy: by the buffer protocol and by DLPack."""

import array
import gc
import threading
import weakref

import numpy as np
import pytest

import keyway as kw


class Owner(np.ndarray):
    """An array that can be referenced weakly."""


def owned(values):
    return np.array(values, dtype=np.float32).view(Owner)


@pytest.mark.parametrize("share", [kw.asarray, kw.from_numpy, kw.from_dlpack])
def test_an_array_is_shared_and_kept_alive(share):
    owner = owned([1.0, 2.0, 3.0])
    alive = weakref.ref(owner)
    x = share(owner)
    owner[0] = 10.0
    assert x[0].item() == 10.0
    x[1] = 20.0
    assert owner[1] == 20.0
    view = x[1:]
    del owner, x
    gc.collect()
    assert alive() is not None
    assert view.tolist() == [20.0, 3.0]
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("share", [kw.asarray, kw.from_dlpack])
def test_the_owner_is_released_on_any_thread(share):
    owner = owned([1.0])
    alive = weakref.ref(owner)
    tensors = [share(owner)]
    del owner
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None


def test_a_tensor_is_shared_and_kept_alive():
    x = kw.arange(6.0).reshape(2, 3)
    for a in (np.asarray(x), x.numpy(), np.from_dlpack(x), np.asarray(memoryview(x))):
        a[0, 0] = 5.0
        assert x[0, 0].item() == 5.0
        x[0, 0] = 0.0
        assert a[0, 0] == 0.0
    transposed = np.asarray(x.T)
    assert transposed.flags.f_contiguous and transposed.tolist() == x.T.tolist()
    del x
    gc.collect()
    assert a.sum() == 15.0


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16"])
@pytest.mark.parametrize("share", [kw.asarray, kw.from_dlpack])
def test_dtypes_and_strides(dtype, share):
    base = np.arange(24).astype(dtype).reshape(2, 3, 4)
    for a in (base, base.T, base[:, ::2], base[1, 1], base[0, 0, 0, ...], np.asfortranarray(base), base[:0], base[..., 1:3]):
        x = share(a)
        assert x.dtype == a.dtype and x.shape == a.shape
        assert x.tolist() == a.tolist()
        assert np.asarray(x).tolist() == a.tolist()
        if a.size and a.ndim:
            assert x.data_ptr() == a.ctypes.data


def test_memory_that_cannot_be_shared_is_copied_or_refused():
    a = np.arange(4.0)
    for b in (a[::-1], np.frombuffer(b"\0" * 33, dtype=np.uint8)[1:].view(np.float64)):
        x = kw.asarray(b)
        assert x.tolist() == b.tolist() and x.data_ptr() != b.ctypes.data
        with pytest.raises(BufferError, match="cannot be shared"):
            kw.asarray(b, copy=False)
    with pytest.raises(ValueError):
        kw.asarray([1.0], copy=False)


def test_read_only_memory_stays_unchanged():
    a = np.arange(3.0)
    a.flags.writeable = False
    for x in (kw.asarray(a), kw.from_dlpack(a)):
        assert x.is_read_only
        with pytest.raises(ValueError):
            x += 1
        assert not np.asarray(x).flags.writeable
    assert a.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "data",
    [np.arange(3.0).astype(">f8"), np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], "M8[D]")],
    ids=["byte order", "text", "objects", "dates"],
)
def test_elements_without_a_dtype_are_refused(data):
    with pytest.raises((TypeError, ValueError, BufferError)):
        kw.asarray(data)


def test_other_exporters_are_shared():
    numbers = array.array("d", [1.0, 2.0])
    x = kw.asarray(numbers)
    numbers[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    with pytest.raises(BufferError):
        numbers.append(3.0)
    del x
    numbers.append(3.0)


def test_a_tensor_that_needs_a_gradient_is_not_exported():
    x = kw.ones(2, requires_grad=True)
    for export in (np.asarray, np.from_dlpack, memoryview):
        with pytest.raises((BufferError, TypeError), match="detach"):
            export(x)
    assert np.asarray(x.detach()).tolist() == [1.0, 1.0]


def test_a_capsule_is_consumed_once():
    x = kw.arange(3.0)
    for keywords in ({}, {"max_version": (1, 1)}):
        capsule = x.__dlpack__(**keywords)
        assert kw.from_dlpack(capsule).data_ptr() == x.data_ptr()
        with pytest.raises(ValueError, match="consumed"):
            kw.from_dlpack(capsule)
        x.__dlpack__(**keywords)
    assert x.__dlpack_device__() == (1, 0)
    copied = kw.from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.data_ptr() != x.data_ptr()


def test_a_producer_that_raises_or_lies():
    class Raises:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **keywords):
            raise KeyError("no data")

    class OnDevice(Raises):
        def __dlpack_device__(self):
            return (2, 0)

    class NoCapsule(Raises):
        def __dlpack__(self, **keywords):
            return 5

    for producer, error in ((Raises, KeyError), (OnDevice, BufferError), (NoCapsule, TypeError)):
        with pytest.raises(error):
            kw.from_dlpack(producer())
    with pytest.raises((TypeError, AttributeError)):
        kw.from_dlpack(3)

"""The namespace of the array API standard, by what differs from the package's own functions."""

import math

import numpy as np
import pytest

import keyway as kw

xp = kw.array_api


def test_namespace_of_a_tensor():
    x = kw.zeros(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2025.12") is xp and xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match="2025.12"):
        x.__array_namespace__(api_version="2019.12")


def test_attributes():
    x = kw.zeros(2, 3)
    assert x.size == 6 and x.size(0) == 2 and x.size() == (2, 3)
    assert (x.ndim, x.shape, x.device, x.mT.shape) == (2, (2, 3), "cpu", (3, 2))
    assert x.to_device("cpu") is not None and x.to_device("cpu", stream=None).device == "cpu"
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j and [10, 20][kw.tensor(1)] == 20
    with pytest.raises(TypeError):
        range(kw.tensor(1.0))


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == kw.float32
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert len(info.dtypes()) == 13 and info.capabilities()["boolean indexing"] is True
    with pytest.raises(ValueError, match="real floating"):
        info.dtypes(kind="real")


def test_creation():
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xp.eye(3, k=-2, dtype=xp.int64).tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    assert xp.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j]
    assert xp.arange(0.0, step=-1).dtype == xp.float32 and xp.arange(0, 0.0).dtype == xp.float32
    assert xp.arange(0, -1).shape == (0,) and xp.arange(0, -1).dtype == xp.int64 and xp.arange(2, 3, -1, dtype=xp.float64).shape == (0,)
    assert [x.shape for x in xp.meshgrid(xp.ones(2), xp.ones(3))] == [(3, 2), (3, 2)]
    assert xp.full((2,), 1 + 1j).dtype == xp.complex64
    assert xp.full((), 2**64 - 1, dtype=xp.uint64).item() == 2**64 - 1
    assert xp.arange(5, 0, -2).tolist() == [5, 3, 1]


def test_asarray_without_a_copy():
    array = np.arange(3.0)
    assert np.shares_memory(np.asarray(xp.asarray(array, copy=False)), array)
    with pytest.raises(ValueError, match="float64 on cpu cannot be shared as float32"):
        xp.asarray(array, dtype=xp.float32, copy=False)
    with pytest.raises(ValueError, match="shared"):
        xp.asarray([1.0], copy=False)
    made = xp.from_dlpack(array, device="cpu", copy=True)
    assert not np.shares_memory(np.asarray(made), array)


def test_dtypes():
    assert xp.finfo(xp.float32).eps == np.finfo(np.float32).eps
    assert xp.finfo(xp.complex128).smallest_normal == np.finfo(np.float64).smallest_normal
    assert xp.finfo(kw.float16).max == 65504 and xp.finfo(xp.ones(1)).dtype == xp.float32
    assert (xp.iinfo(xp.int8).min, xp.iinfo(xp.uint64).max, xp.iinfo(xp.int16).bits) == (-128, 2**64 - 1, 16)
    with pytest.raises(TypeError, match="iinfo"):
        xp.finfo(xp.int32)
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int16, xp.int8)
    assert not xp.can_cast(xp.uint64, xp.int64) and xp.can_cast(xp.zeros(1), xp.complex64)
    assert xp.isdtype(xp.int8, ("bool", "signed integer")) and not xp.isdtype(xp.uint8, "signed integer")
    assert xp.result_type(xp.ones(1, dtype=xp.int8), 1.0) == xp.float32
    assert xp.result_type(xp.float32, xp.zeros((), dtype=xp.float64), 1j) == xp.complex128
    with pytest.raises(TypeError, match="no common dtype"):
        xp.result_type(xp.uint64, xp.int8)
    with pytest.raises(TypeError, match="real"):
        xp.astype(xp.ones(1, dtype=xp.complex64), xp.float32)
    x = xp.ones(2)
    assert xp.astype(x, xp.float32, copy=False).data_ptr() == x.data_ptr() != xp.astype(x, xp.float32).data_ptr()


def test_tensors_without_dimensions_promote_by_their_dtypes():
    x, y = xp.ones(2, dtype=xp.float32), xp.ones((), dtype=xp.float64)
    assert (x + y).dtype == (y * x).dtype == xp.add(x, y).dtype == kw.where(x > 0, x, y).dtype == xp.float64
    assert (x + 1.0).dtype == xp.float32 and (x + 1j).dtype == xp.complex64
    assert (xp.ones(2, dtype=xp.uint8) == xp.asarray(257)).tolist() == [False, False]
    x += y
    assert x.dtype == xp.float32


def test_indexing():
    x, n = kw.arange(24).reshape(2, 3, 4), np.arange(24).reshape(2, 3, 4)
    for key in (
        np.s_[::-1], np.s_[:, ::-2, 1:], np.s_[..., 3:0:-2], np.s_[1, None, -1::-1], np.s_[:, 5:-5:-1], np.s_[:, 0:2:-1],
        np.s_[..., -9::-1],
    ):
        assert x[key].tolist() == n[key].tolist(), key
        mine, theirs = x.clone(), n.copy()
        mine[key] = mine[key] * 2 + 1
        theirs[key] = theirs[key] * 2 + 1
        assert mine.tolist() == theirs.tolist(), key
    mine, theirs = x.clone(), n.copy()
    mine[::-1, kw.tensor([2, 0])] = kw.arange(16).reshape(2, 2, 4)
    theirs[::-1, [2, 0]] = np.arange(16).reshape(2, 2, 4)
    assert mine.tolist() == theirs.tolist()
    assert x[kw.tensor(True)].shape == (1, 2, 3, 4) and x[kw.tensor(False)].shape == (0, 2, 3, 4)
    assert x[kw.zeros(0, 3, dtype=kw.bool)].shape == (0, 4)
    assert x[1, kw.tensor([2, 0]), 1].tolist() == n[1, [2, 0], 1].tolist()
    with pytest.raises(ValueError, match="step"):
        x[::0]


def test_manipulation():
    x = xp.reshape(xp.arange(6), (2, 3))
    assert xp.expand_dims(x, axis=(0, -1)).shape == (1, 2, 3, 1)
    assert xp.moveaxis(xp.zeros((2, 3, 4, 5)), (0, -1), (-1, 0)).shape == np.moveaxis(np.zeros((2, 3, 4, 5)), (0, -1), (-1, 0)).shape
    assert xp.roll(x, (1, 1), axis=(0, 1)).tolist() == np.roll(np.arange(6).reshape(2, 3), (1, 1), (0, 1)).tolist()
    assert xp.roll(x, 1).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert xp.repeat(x, 2).tolist() == np.repeat(np.arange(6), 2).tolist()
    assert xp.repeat(x, xp.asarray([1, 0, 2]), axis=1).tolist() == [[0, 2, 2], [3, 5, 5]]
    assert xp.concat([x, x], axis=None).shape == (12,) and xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert isinstance(xp.broadcast_arrays(x, x[0]), tuple) and len(xp.unstack(x, axis=1)) == 3
    with pytest.raises(ValueError, match="size 1"):
        xp.squeeze(x, 0)
    with pytest.raises(ValueError):
        xp.broadcast_shapes((2,), (3,))
    assert xp.reshape(x, (3, 2), copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError):
        xp.reshape(x.T, (6,), copy=False)


def test_reductions():
    x = xp.asarray([[1, 2, 3], [4, 5, 6]], dtype=xp.uint8)
    assert xp.sum(x).dtype == xp.uint64 and xp.sum(xp.asarray([200, 200], dtype=xp.int16)).dtype == xp.int64
    assert xp.sum(x, axis=(), dtype=xp.float32).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert kw.sum(x, dtype=kw.int8).dtype == kw.int8 and kw.ones(2, dtype=kw.int32).cumsum(0, dtype=kw.int32).dtype == kw.int32
    assert xp.prod(x, axis=0, keepdims=True).tolist() == [[4, 10, 18]]
    assert xp.cumulative_sum(x, axis=1, include_initial=True).tolist() == [[0, 1, 3, 6], [0, 4, 9, 15]]
    assert xp.cumulative_prod(xp.asarray([2.0, 3.0]), include_initial=True).tolist() == [1, 2, 6]
    assert xp.std(xp.asarray([1.0, 3.0])).item() == 1 and xp.var(xp.asarray([1.0, 3.0]), correction=1).item() == 2
    assert xp.var(xp.asarray([1.0, 3.0]), axis=()).tolist() == [0, 0]
    assert xp.count_nonzero(x, axis=0, keepdims=True).tolist() == [[2, 2, 2]]
    assert xp.argmax(x, keepdims=True).tolist() == [[5]]
    assert xp.diff(xp.asarray([1, 4, 9]), prepend=xp.asarray([0]), append=xp.asarray([9])).tolist() == [1, 3, 5, 0]
    assert xp.max(x, axis=(0, 1)).item() == 6 and xp.any(x, axis=()).shape == (2, 3)


def test_elementwise():
    assert xp.clip(xp.asarray([1, 5, 9]), xp.asarray([2, 2, 2]), 6).tolist() == [2, 5, 6]
    assert xp.clip(xp.asarray([1.0, math.nan]), 2).tolist()[0] == 2 and xp.clip(xp.asarray([1])).tolist() == [1]
    assert xp.signbit(xp.asarray([-0.0, 0.0, -1.0, math.inf, -math.nan])).tolist() == [True, False, True, False, True]
    assert xp.signbit(xp.asarray([-1, 0])).tolist() == [True, False]
    assert xp.sign(xp.asarray([3 + 4j])).tolist() == pytest.approx([0.6 + 0.8j])
    assert math.isnan(xp.sign(xp.asarray([math.nan])).item()) and xp.sign(xp.asarray([-2, 0])).tolist() == [-1, 0]
    for call in (xp.bitwise_and, xp.bitwise_or, xp.bitwise_xor, xp.bitwise_left_shift, xp.bitwise_right_shift):
        assert call(6, xp.asarray([3, 1], dtype=xp.int8)).dtype == xp.int8, call
    assert xp.bitwise_left_shift(1, xp.asarray([3])).tolist() == [8] and (False | xp.asarray([True])).tolist() == [True]
    assert xp.conj(xp.asarray([1.0])).tolist() == [1] and (xp.zeros(1, dtype=xp.complex128) + (1 + 2**-40 * 1j)).item().imag > 0
    assert xp.positive(xp.asarray([-1])).tolist() == [-1] and xp.bitwise_invert(xp.asarray([0])).tolist() == [-1]
    assert xp.imag(xp.asarray([1 + 2j])).tolist() == [2] and xp.real(xp.asarray([1.0])).tolist() == [1]
    x = xp.asarray([2, 3])
    x **= 2
    assert x.tolist() == [4, 9] and (2**63 + xp.zeros(1, dtype=xp.uint64)).item() == 2**63


def test_searching_and_sets():
    x = xp.asarray([[3, 1, 3], [2, 1, 0]])
    found = xp.unique_all(x)
    assert found.values.tolist() == [0, 1, 2, 3] and found.counts.tolist() == [1, 2, 1, 2]
    assert found.indices.tolist() == [5, 1, 3, 0] and found.inverse_indices.tolist() == [[3, 1, 3], [2, 1, 0]]
    assert xp.unique_counts(x).counts.tolist() == [1, 2, 1, 2] and xp.unique_values(x).tolist() == [0, 1, 2, 3]
    nans = xp.unique_inverse(xp.asarray([math.nan, 1.0, math.nan]))
    assert nans.values.shape == (3,) and sorted(nans.inverse_indices.tolist()) == [0, 1, 2]
    assert xp.unique_all(xp.asarray([])).indices.shape == (0,)
    sequence = xp.asarray([5, 1, 3])
    at = xp.searchsorted(sequence, xp.asarray([3, 6]), sorter=xp.argsort(sequence), side="right")
    assert at.tolist() == [2, 3] and xp.searchsorted(xp.asarray([1, 3]), 3).item() == 1
    assert xp.take(x, xp.asarray([1, 1]), axis=-1).tolist() == [[1, 1], [1, 1]]
    assert xp.take(xp.asarray([1, 2, 3]), xp.asarray([-1, 0], dtype=xp.int8)).tolist() == [3, 1]
    assert xp.take_along_axis(x, xp.asarray([[-1]]), axis=0).tolist() == [[2, 1, 0]]
    assert xp.take_along_axis(x, xp.asarray([[0], [2]]), axis=1).tolist() == [[3], [0]]
    assert [i.tolist() for i in xp.nonzero(x - 1)] == [[0, 0, 1, 1], [0, 2, 0, 2]]
    assert xp.isin(x, xp.asarray([3]), invert=True).tolist() == [[False, True, False], [True, True, True]]
    assert xp.sort(x, axis=0, descending=True).tolist() == [[3, 1, 3], [2, 1, 0]]
    assert xp.isin(3, x).item() and xp.isin(x, 0)[1, 2].item()
    with pytest.raises(ValueError):
        xp.nonzero(xp.asarray(1))


def test_linalg():
    a, b = np.random.default_rng(0).standard_normal((2, 2, 3, 3))
    x, y = kw.asarray(a), kw.asarray(b)
    near = lambda ours, theirs: np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-12)
    near(xp.linalg.solve(x, y[0, 0]), np.linalg.solve(a, b[0, 0]))
    near(xp.linalg.trace(x, offset=1), np.trace(a, 1, -2, -1))
    for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        near(xp.linalg.matrix_norm(x, ord=order, keepdims=True), np.linalg.matrix_norm(a, ord=order, keepdims=True))
    for order in (0, 1, 2, 3, math.inf, -math.inf):
        near(xp.linalg.vector_norm(x, axis=(0, 2), ord=order), np.linalg.vector_norm(a, axis=(0, 2), ord=order))
    near(xp.linalg.vector_norm(x, axis=()), np.abs(a))
    near(xp.linalg.vector_norm(x + 1j * y), np.linalg.norm((a + 1j * b).ravel()))
    assert xp.linalg.solve(xp.eye(2), xp.ones(2, dtype=xp.float64)).dtype == xp.float64
    near(xp.linalg.pinv(x, rtol=kw.asarray(np.array([0.1, 0.9]))), np.linalg.pinv(a, rcond=np.array([0.1, 0.9])))
    assert xp.linalg.matrix_rank(x, rtol=kw.asarray(np.array([1e-9, 0.999]))).tolist() == [3, 1]
    assert xp.linalg.matrix_rank(x).tolist() == [3, 3]
    near(xp.tensordot(x, y, axes=((0, 1), (0, 1))), np.tensordot(a, b, ((0, 1), (0, 1))))
    near(xp.vecdot(x, y, axis=-2), np.vecdot(a, b, axis=-2))
    with pytest.raises(ValueError, match="vecdot"):
        xp.vecdot(xp.ones(3), xp.ones(1))
    assert xp.vecdot(xp.ones(2, dtype=xp.int8), xp.ones(2, dtype=xp.int8)).dtype == xp.int8
    near(xp.linalg.slogdet(x).logabsdet, np.linalg.slogdet(a).logabsdet)
    near(xp.linalg.diagonal(x, offset=-1), np.diagonal(a, -1, -2, -1))
    near(xp.linalg.cross(x[0], y[1, 0]), np.cross(a[0], b[1, 0]))
    with pytest.raises(ValueError, match="3 elements"):
        xp.linalg.cross(xp.ones(2), xp.ones(2))
    assert kw.linalg.vecdot(x, y).shape == (2, 3)


def test_fft():
    a = np.random.default_rng(0).standard_normal((4, 5))
    near = lambda ours, theirs: np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-12)
    x = kw.asarray(a)
    near(xp.fft.rfft(x, n=6, axis=0, norm="ortho"), np.fft.rfft(a, 6, 0, "ortho"))
    near(xp.fft.fftn(x, s=(3, 4), axes=(0, 1)), np.fft.fftn(a, (3, 4), (0, 1)))
    near(xp.fft.fftshift(x, axes=1), np.fft.fftshift(a, 1))
    near(xp.fft.fftfreq(4, d=0.5, dtype=xp.float64), np.fft.fftfreq(4, 0.5))

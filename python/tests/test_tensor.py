"""Construction, conversion, indexing and operators."""

import copy
import pickle

import numpy as np
import pytest

import keyway as kw


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, kw.float32),
        (3, kw.int64),
        (True, kw.bool),
        (1 + 2j, kw.complex64),
        ([[1, 2], [3, 4]], kw.int64),
        ([1, 2.5], kw.float32),
        ([], kw.float32),
        ([[]], kw.float32),
    ],
)
def test_data_has_the_dtype_of_pytorch(data, dtype):
    x = kw.tensor(data)
    assert x.dtype == dtype
    assert x.tolist() == data


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([[1, 2], [3]], ValueError),
        ([1, [2]], ValueError),
        ([[1], 2], ValueError),
        ([1, "a"], TypeError),
        ("text", TypeError),
        ([2**70], OverflowError),
        (object(), TypeError),
    ],
)
def test_data_that_is_no_array_is_refused(data, error):
    with pytest.raises(error, match="tensor: expected"):
        kw.tensor(data)


def test_integers_that_a_dtype_cannot_hold_are_refused():
    with pytest.raises(OverflowError, match="from 0 to 255 for uint8, got 256"):
        kw.tensor([256], dtype=kw.uint8)
    with pytest.raises(ValueError, match="finite"):
        kw.tensor([float("nan")], dtype=int)


def test_lists_of_arrays_and_tensors_are_stacked():
    x = kw.tensor([np.ones(3, np.float32), kw.zeros(3)])
    assert x.shape == (2, 3)
    assert x.tolist() == [[1.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool", "complex64"])
def test_dtypes_are_those_of_numpy(name):
    dtype = getattr(kw, name)
    assert dtype == np.dtype(name) == getattr(np, "bool_" if name == "bool" else name)
    assert kw.tensor([1], dtype=name).dtype == dtype
    assert pickle.loads(pickle.dumps(dtype)) == dtype
    assert repr(dtype) == f"keyway.{name}"


def test_an_unknown_dtype_names_the_known_ones():
    with pytest.raises(TypeError, match="float31.*float32"):
        kw.zeros(2, dtype="float31")


KEYS = [
    0,
    -1,
    (0, 1),
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    (slice(None), 2),
    (..., 0),
    (..., slice(1, 2), 0),
    None,
    (slice(None), None, 1),
    [0, 2],
    ([0, 1], [1, 2]),
    (slice(None), [0, 1]),
    np.array([2, 0]),
    (1, np.array([0, 2])),
    np.array([[True, False, True], [False] * 3, [True] * 3, [False] * 3]),
    np.array([True, False, False, True]),
    (slice(None), np.array([True, False, True])),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_that_of_numpy(key):
    array = np.arange(24.0).reshape(4, 3, 2)
    expected = array[key]
    got = kw.tensor(array)[key]
    assert got.shape == expected.shape
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_assignment_is_that_of_numpy(key):
    for value in (7.0, "broadcast"):
        array = np.arange(24.0).reshape(4, 3, 2)
        x = kw.tensor(array)
        value = np.arange(1.0) - 3.0 if value == "broadcast" else value
        array[key] = value
        x[key] = value
        assert x.tolist() == array.tolist()


@pytest.mark.parametrize("key", [4, (0, 3), (0, 0, 0, 0), 1.5, "a", [5], True, np.array([0.5])])
def test_a_wrong_index_is_an_index_error(key):
    x = kw.zeros(4, 3, 2)
    with pytest.raises((IndexError, TypeError)):
        x[key]
    with pytest.raises((IndexError, TypeError)):
        x[key] = 0.0


def test_operators_are_those_of_numpy():
    a, b = np.array([[1.5, -2.0], [3.0, 0.5]]), np.array([2.0, 4.0])
    x, y = kw.tensor(a), kw.tensor(b)
    for function in (
        lambda p, q: p + q,
        lambda p, q: p - 2,
        lambda p, q: 2 - p,
        lambda p, q: p * q,
        lambda p, q: 3 / q,
        lambda p, q: p // q,
        lambda p, q: p % q,
        lambda p, q: q**2,
        lambda p, q: 2**q,
        lambda p, q: p @ q,
        lambda p, q: -p,
        lambda p, q: abs(p),
        lambda p, q: p < q,
        lambda p, q: p >= 0.5,
        lambda p, q: (p < q) & (q > 3),
        lambda p, q: ~(p < q),
    ):
        np.testing.assert_allclose(np.asarray(function(x, y)), function(a, b))


def test_operators_in_place_keep_the_object_and_the_memory():
    x = kw.tensor([1.0, 2.0])
    same, address = x, x.data_ptr()
    x += 1
    x *= kw.tensor([2.0, 3.0])
    assert x is same
    assert x.data_ptr() == address
    assert x.tolist() == [4.0, 9.0]


def test_operators_leave_other_types_to_python():
    with pytest.raises(TypeError):
        kw.ones(2) + "a"
    with pytest.raises(TypeError):
        "a" - kw.ones(2)
    with pytest.raises(OverflowError, match="64 bits"):
        kw.ones(2) + 2**70
    assert (kw.ones(2) == "a") is False


def test_numpy_on_the_left_gives_a_tensor():
    assert isinstance(np.ones(2) + kw.ones(2), kw.Tensor)
    assert (np.float64(2.0) * kw.ones(2)).tolist() == [2.0, 2.0]


def test_reductions_take_the_names_of_numpy_and_pytorch():
    x = kw.arange(6.0).reshape(2, 3)
    assert x.sum().item() == 15.0
    assert x.sum(0).tolist() == x.sum(dim=0).tolist() == x.sum(axis=0).tolist() == [3.0, 5.0, 7.0]
    assert x.sum(1, keepdim=True).shape == x.sum(1, keepdims=True).shape == (2, 1)
    assert x.mean((0, 1)).item() == 2.5
    assert x.max().item() == 5.0
    values, indices = x.max(1)
    assert (values.tolist(), indices.tolist()) == ([2.0, 5.0], [2, 2])
    assert kw.cat([x, x]).shape == (4, 3)
    assert kw.where(x > 2, x, 0.0).tolist() == [[0.0, 0.0, 0.0], [3.0, 4.0, 5.0]]


def test_shapes_are_given_as_numbers_or_tuples():
    x = kw.arange(6)
    assert x.reshape(2, 3).shape == x.reshape((2, 3)).shape == x.view(2, -1).shape == (2, 3)
    assert x.reshape(1, 2, 3).permute(2, 0, 1).shape == (3, 1, 2)
    assert kw.zeros(2, 3).shape == kw.zeros((2, 3)).shape == kw.zeros([2, 3]).shape
    assert kw.zeros(()).shape == ()


def test_a_wrong_keyword_names_the_nearest():
    with pytest.raises(TypeError, match="unexpected keyword argument `keepdimm`; the nearest parameter is `keepdim`"):
        kw.ones(2).sum(keepdimm=True)
    with pytest.raises(TypeError, match="multiple values for argument `dim`"):
        kw.ones(2).sum(0, dim=0)
    with pytest.raises(TypeError, match="missing argument `other`"):
        kw.add(kw.ones(2))
    with pytest.raises(AttributeError):
        kw.ones(2).no_such_method()


def test_errors_are_those_that_numpy_and_pytorch_raise():
    with pytest.raises(ValueError, match="add"):
        kw.ones(2) + kw.ones(3)
    with pytest.raises(RuntimeError):
        kw.ones(2) + kw.ones(3)
    with pytest.raises(IndexError):
        kw.ones(2).sum(3)
    with pytest.raises(TypeError):
        kw.ones(2).add([1, 2])
    assert issubclass(kw.ShapeError, kw.Error)


def test_out_is_written_and_returned():
    out = kw.empty(2)
    assert kw.add(kw.ones(2), 1.0, out=out) is out
    assert out.tolist() == [2.0, 2.0]


def test_copies_and_pickles_are_equal_and_independent():
    x = kw.arange(6.0).reshape(2, 3).T
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), kw.tensor(x)):
        assert y.tolist() == x.tolist()
        y[0, 0] = 100.0
        assert x[0, 0].item() == 0.0
    w = kw.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(w)).requires_grad and copy.deepcopy(w).requires_grad


def test_python_protocols():
    x = kw.tensor([[1, 2], [3, 4]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert int(x[0, 1]) == 2 and float(x[0, 1]) == 2.0 and [10, 20, 30][x[0, 1]] == 30
    assert bool(x[0, 0]) and hash(x) == hash(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError):
        len(kw.tensor(1))
    with pytest.raises(ValueError):
        x.item()
    assert "2" in repr(x) and "int64" in x._repr_html_()


def test_the_backends_are_listed():
    names = [backend["name"] for backend in kw.backends()]
    assert "keyway-cpu" in names
    assert all(backend["error"] is None for backend in kw.backends() if backend["name"])


def test_ops_are_documented_and_called_by_name():
    assert kw.ops.schema("add").startswith("add(Tensor self")
    assert kw.Tensor.exp.__doc__.startswith("exp(Tensor self) -> Tensor")
    assert kw.ops.call("add", kw.ones(1), 2, alpha=3).tolist() == [7.0]
    with pytest.raises(AttributeError, match="no_such_op"):
        kw.ops.call("no_such_op")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.safetensors"])
def test_files(tmp_path, name):
    x = kw.arange(6.0).reshape(2, 3)
    path = tmp_path / name
    kw.save(x if name == "x.npy" else {"weight": x}, path)
    loaded = kw.load(path)
    loaded = loaded if name == "x.npy" else loaded["weight"]
    assert loaded.tolist() == x.tolist()
    if name == "x.npy":
        assert np.load(path).tolist() == x.tolist()
    with pytest.raises(OSError):
        kw.load(tmp_path / f"missing-{name}")
    with pytest.raises(ValueError, match="safetensors, .npy or .npz"):
        kw.load(tmp_path / "x.bin")


def test_scalars_are_formatted_as_numbers():
    assert f"{kw.tensor(1.25):.1f} {kw.tensor(7):>3}" == "1.2   7"
    assert "1.25" in f"{kw.tensor([1.25])}"


def test_functions_of_other_tensors():
    x = kw.arange(3.0, dtype=kw.float64)
    for function, value in ((kw.zeros_like, 0.0), (kw.ones_like, 1.0)):
        made = function(x)
        assert made.tolist() == [value] * 3 and made.dtype == kw.float64
    image = kw.zeros(2, 3, 4, 5).permute(0, 3, 1, 2)
    assert kw.zeros_like(image).stride() == image.stride()
    assert kw.full_like(x, 2, dtype=int).tolist() == [2, 2, 2]
    assert kw.allclose(x, x + 1e-12) and not kw.equal(x, x + 1e-12) and kw.equal(x, x.clone())
    assert 2.0 in x and 5.0 not in x
    assert kw.vstack([x, x]).shape == (2, 3) and kw.hstack([x, x]).shape == (6,)
    for indexing in ("ij", "xy"):
        for got, expected in zip(
            kw.meshgrid(x, kw.arange(2.0), indexing=indexing), np.meshgrid(range(3), range(2), indexing=indexing)
        ):
            assert got.tolist() == expected.tolist()
    assert x.uniform_(2.0, 3.0).min().item() >= 2.0 and kw.clip(x, max=2.5).max().item() <= 2.5


def test_results_have_the_names_of_pytorch():
    x = kw.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert x.max(1).values.tolist() == [3.0, 5.0] and kw.topk(x, 1).indices.tolist() == [[0], [1]]
    assert kw.sort(x, 0).values.tolist() == [[2.0, 1.0], [3.0, 5.0]]
    assert kw.unique(kw.tensor([2, 1, 2])).tolist() == [1, 2]
    values, counts = kw.unique(kw.tensor([2, 1, 2]), return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([1, 2], [1, 2])


def test_arguments_of_pytorch_and_numpy():
    x = kw.arange(6).reshape(2, 3)
    assert kw.sum(input=x).item() == 15 and x.sum(dtype=kw.float64).dtype == kw.float64
    assert kw.einsum("ij,kj->ik", x, x).tolist() == kw.einsum("ij,kj->ik", [x, x]).tolist() == (x @ x.T).tolist()
    assert kw.concatenate([x, x], axis=None).shape == (12,)
    assert kw.diag(kw.tensor([1, 2]), 1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert kw.diag(kw.tensor([[1, 2], [3, 4]])).tolist() == [1, 4]
    assert x.where(x > 2, 0).tolist() == [[0, 0, 0], [3, 4, 5]] and x.astype(float).dtype == kw.float64
    assert x.new_zeros(2).dtype == kw.int64 and kw.long == kw.int64


def test_parts_of_complex_numbers_are_views():
    z = kw.tensor([1 + 2j, 3 - 1j])
    z.imag[0] = 5.0
    assert z.tolist() == [1 + 5j, 3 - 1j] and z.real.tolist() == [1.0, 3.0]
    assert kw.ones(2).real.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="complex"):
        kw.ones(2).imag


def test_a_printed_tensor_has_the_names_of_python():
    assert repr(kw.ones(1, dtype=kw.float64, requires_grad=True)) == "tensor([1.], dtype=float64, requires_grad=True)"


def test_indices_beyond_64_bits_are_out_of_range():
    with pytest.raises(IndexError, match="out of range"):
        kw.ones(2)[10**30]
    with pytest.raises(OverflowError, match="64 bits"):
        kw.zeros(2**63)


def test_the_number_of_threads_is_set():
    before = kw.get_num_threads()
    kw.set_num_threads(1)
    assert kw.get_num_threads() == 1
    kw.set_num_threads(before)
    with pytest.raises(ValueError, match="at least 1"):
        kw.set_num_threads(0)

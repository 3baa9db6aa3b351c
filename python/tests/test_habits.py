"""Idioms of PyTorch programs."""

import io
import pickle

import numpy as np
import pytest

import keyway as kw
from keyway import nn, optim


def test_checkpoints_are_files(tmp_path):
    model = nn.Linear(2, 1)
    optimizer = optim.AdamW(model.parameters())
    model(kw.ones(1, 2)).sum().backward()
    optimizer.step()
    path = tmp_path / "checkpoint.pt"
    kw.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": [0.5, "name"]}, path)
    found = kw.load(path, map_location="cpu")
    assert found["epoch"] == 3 and found["best"] == [0.5, "name"]
    other = nn.Linear(2, 1)
    assert other.load_state_dict(found["model"]).missing_keys == []
    optim.AdamW(other.parameters()).load_state_dict(found["optimizer"])
    memory = io.BytesIO()
    kw.save(kw.ones(2), memory)
    memory.seek(0)
    assert kw.load(memory).tolist() == [1.0, 1.0]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.pt"]


class Harmful:
    def __reduce__(self):
        return (print, ("called",))


def test_a_pickle_calls_no_code(tmp_path, capsys):
    path = tmp_path / "harmful.pkl"
    path.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(pickle.UnpicklingError, match="builtins.print"):
        kw.load(path)
    kw.save(nn.Linear(1, 1), path)
    with pytest.raises(pickle.UnpicklingError, match="state_dict"):
        kw.load(path)
    assert isinstance(kw.load(path, weights_only=False), nn.Linear) and capsys.readouterr().out == ""
    path.write_bytes(b"PK\x03\x04rest")
    with pytest.raises(ValueError, match="written by PyTorch"):
        kw.load(path)


def test_devices_have_a_type_and_an_index():
    device = kw.device("cuda:1" if kw.cuda.device_count() > 1 else "cpu")
    x = kw.ones(2, device=device)
    assert x.device == device and x.device.type == device.type and kw.device("cuda", 1) == "cuda:1"
    assert kw.device("cuda:1").index == 1 and kw.device("cpu").index is None and kw.cuda.is_available() in (True, False)
    assert x.to("cpu", non_blocking=True).device.type == "cpu" and x.to(kw.float32, copy=True) is not x
    with pytest.raises(ValueError, match="expected a name"):
        kw.device("cuda:x")


def test_generators():
    generator = kw.Generator().manual_seed(3)
    first = kw.randn(3, generator=generator)
    state = generator.get_state()
    second = kw.empty(3).normal_(generator=generator)
    generator.set_state(state)
    assert kw.randn(3, generator=generator).equal(second) and generator.initial_seed() == 3
    assert kw.randn(3, generator=kw.Generator().manual_seed(3)).equal(first)
    kept = kw.get_rng_state()
    drawn = kw.rand(2)
    kw.set_rng_state(kept)
    assert kw.rand(2).equal(drawn)
    weight = nn.init.xavier_uniform_(kw.empty(2, 2), generator=kw.Generator().manual_seed(1))
    assert weight.equal(nn.init.xavier_uniform_(kw.empty(2, 2), generator=kw.Generator().manual_seed(1)))
    assert kw.multinomial(kw.tensor([0.0, 1.0]), 3, replacement=True, generator=generator).tolist() == [1, 1, 1]
    assert kw.normal(kw.zeros(4), 0.0).tolist() == [0.0] * 4 and kw.normal(1.0, 2.0, size=(2, 3)).shape == (2, 3)
    with pytest.raises(TypeError, match="expected `generator` to be a Generator, got int"):
        kw.randn(2, generator=3)


def test_parameters_are_changed_by_data():
    layer = nn.Linear(2, 2)
    layer.weight.data = kw.ones(2, 2)
    layer.bias.data.fill_(0.5)
    assert layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]] and layer.bias.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="assign a new Parameter"):
        layer.weight.data = kw.ones(3)


def test_statistics():
    x = kw.tensor([[3.0, 1.0, 2.0], [5.0, 5.0, 4.0]])
    assert x.median().item() == 3.0 and x.median(dim=1).values.tolist() == [2.0, 5.0]
    assert x.kthvalue(1).indices.tolist() == [1, 2] and x.mode(dim=1).values.tolist() == [1.0, 5.0]
    assert kw.quantile(x, 0.5, dim=1).tolist() == [2.0, 5.0] and x.quantile(kw.tensor([0.0, 1.0])).tolist() == [1.0, 5.0]
    smallest, largest = x.aminmax()
    assert (smallest.item(), largest.item()) == (1.0, 5.0)
    np.testing.assert_allclose(x.std(dim=1, unbiased=False).numpy(), x.numpy().std(1), rtol=1e-6)
    np.testing.assert_allclose(x.var(False).item(), x.numpy().var(), rtol=1e-6)
    np.testing.assert_allclose(kw.corrcoef(x).numpy(), np.corrcoef(x.numpy()), rtol=1e-5)
    assert kw.histc(x, bins=2).tolist() == [2.0, 4.0] and kw.bincount(kw.tensor([0, 2, 2])).tolist() == [1, 0, 2]
    assert kw.cdist(x, x).shape == (2, 2) and len(x.tensor_split(2, dim=1)) == 2
    assert kw.triu_indices(2, 2).tolist() == [[0, 0, 1], [0, 1, 1]] and kw.block_diag(kw.ones(1, 1), kw.ones(2, 2)).shape == (3, 3)


def test_names_that_are_missing_name_another():
    with pytest.raises(AttributeError, match=r"use kw.tensor\(data, dtype=kw.int64\)"):
        kw.LongTensor
    with pytest.raises(AttributeError, match="has no attribute `nothing`"):
        kw.nothing
    assert kw.relu_(kw.tensor([-1.0])).item() == 0.0
    assert kw.ones(2).type() == "keyway.float32" and kw.ones(2).type(kw.int32).dtype == kw.int32


def test_printing_options():
    kw.set_printoptions(precision=2)
    try:
        assert repr(kw.tensor([1.23456])) == "tensor([1.23])"
    finally:
        kw.set_printoptions()
    assert repr(kw.tensor([1.23456])) == "tensor([1.2346])"


def test_sparse_tensors():
    x = kw.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
    assert x.is_sparse and not x.is_coalesced() and x._nnz() == 3
    merged = x.coalesce()
    assert merged.indices().tolist() == [[0, 1], [2, 0]] and merged.values().tolist() == [3.0, 9.0]
    assert x.to_dense().tolist() == [[0.0, 0.0, 3.0], [9.0, 0.0, 0.0]] and (x.sparse_dim(), x.dense_dim()) == (2, 0)
    assert kw.sparse_coo_tensor([[1]], [2.0]).shape == (2,)
    assert x.to_dense().to_sparse().indices().tolist() == [[0, 1], [2, 0]]
    rows = x.to_dense().to_sparse_csr()
    assert rows.crow_indices().tolist() == [0, 1, 2] and rows.col_indices().tolist() == [2, 0]
    again = kw.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 9.0], (2, 3))
    assert again.to_dense().equal(x.to_dense())
    assert kw.sparse.mm(merged, kw.ones(3, 2)).tolist() == [[3.0, 3.0], [9.0, 9.0]]
    weight = kw.ones(5, 2, requires_grad=True)
    nn.functional.embedding(kw.tensor([1, 1, 3]), weight, sparse=True).sum().backward()
    assert weight.grad.is_sparse
    optim.SparseAdam([weight], lr=0.1).step()
    assert weight[0].tolist() == [1.0, 1.0] and weight[1, 0].item() < 1.0
    with pytest.raises(kw.Error, match="indices"):
        kw.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (2,)).coalesce().to_dense()

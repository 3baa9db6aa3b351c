"""Files whose tensors are loaded one at a time."""

import numpy as np
import pytest

import keyway as kw


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    kw.save({"weight": kw.arange(6.0).reshape(2, 3), "index": kw.tensor([3, 1])}, path)
    return path


def test_tensors_are_loaded_one_at_a_time(path):
    with kw.safe_open(path) as file:
        assert file.keys() == list(file) == ["index", "weight"] and len(file) == 2
        assert file.metadata() == {}
        weight, index = file.get_tensor("weight"), file["index"]
        part = file.get_slice("weight")
        assert (part.get_shape(), part.get_dtype()) == ([2, 3], "F32")
        row = part[1, :2]
    assert weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert (index.tolist(), row.tolist()) == ([3, 1], [3.0, 4.0])
    weight.mul_(2)
    assert kw.load(path)["weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises(ValueError, match="was closed"):
        file.keys()


def test_a_state_is_loaded_from_an_open_file(path):
    layer = kw.nn.Linear(3, 2)
    kw.save(layer.state_dict(), path)
    other = kw.nn.Linear(3, 2)
    other.load_state_dict(kw.safe_open(path))
    assert np.array_equal(other.weight.detach(), layer.weight.detach())


def test_wrong_files_and_names_are_errors(path, tmp_path):
    file = kw.safe_open(path)
    with pytest.raises(KeyError):
        file["bias"]
    with pytest.raises(KeyError, match="`index`, `weight`"):
        file.get_tensor("bias")
    assert "bias" not in file and "weight" in file and file == file and file != kw.safe_open(path)
    with pytest.raises((ValueError, RuntimeError), match="device"):
        kw.safe_open(path, device="nothing")
    with pytest.raises(KeyError):
        file.get_slice("bias")
    with pytest.raises(ValueError, match="to_torch"):
        kw.safe_open(path, framework="pt")
    with pytest.raises(OSError):
        kw.safe_open(tmp_path / "absent.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="bytes of data"):
        kw.safe_open(tmp_path / "cut.safetensors")

"""Tensors and gradients shared with PyTorch, if it is installed."""

import numpy as np
import pytest

import keyway as kw
from keyway import nn

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def test_memory_is_shared():
    source = torch.arange(6.0).reshape(2, 3).t()
    x = kw.from_torch(source)
    x[0, 0] = 9.0
    assert source[0, 0] == 9.0 and x.stride() == source.stride()
    assert x.to_torch().data_ptr() == source.data_ptr()
    for dtype in (torch.bfloat16, torch.float16, torch.int32, torch.bool, torch.complex64):
        assert kw.from_torch(torch.ones(2, dtype=dtype)).to_torch().dtype == dtype
    with pytest.raises(TypeError, match="expected a tensor of PyTorch, got ndarray"):
        kw.from_torch(np.ones(2))


def test_gradients_go_from_one_graph_into_the_other():
    w, k = torch.ones(3, requires_grad=True), kw.full((3,), 2.0, requires_grad=True)
    # PyTorch, then this package, then PyTorch.
    y = (kw.from_torch(w * 3) * k).to_torch()
    (y * y).sum().backward()
    np.testing.assert_allclose(w.grad, 72.0)
    np.testing.assert_allclose(k.grad.numpy(), 36.0)
    # Two tensors of one graph.
    w.grad = None
    middle = w * 2
    (kw.from_torch(middle) * kw.from_torch(middle * 2)).sum().backward()
    np.testing.assert_allclose(w.grad, 16.0)
    with torch.no_grad():
        assert not kw.from_torch(w * 2).requires_grad
    with kw.no_grad():
        assert not kw.from_torch(w).requires_grad and not k.to_torch().requires_grad


@pytest.mark.parametrize(
    ("name", "args", "shape"),
    [
        ("LSTM", (3, 4, 2), (5, 2, 3)),
        ("MultiheadAttention", (4, 2), (5, 2, 4)),
        ("Conv2d", (2, 4, 3), (1, 2, 5, 5)),
        ("BatchNorm1d", (3,), (4, 3)),
    ],
)
def test_weights_of_pytorch_are_loaded(name, args, shape):
    theirs, ours = getattr(torch.nn, name)(*args), getattr(nn, name)(*args)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(shape)
    inputs = [x] * (3 if name == "MultiheadAttention" else 1)
    expected, made = theirs(*inputs), ours(*(kw.from_torch(x) for x in inputs))
    if isinstance(expected, tuple):
        expected, made = expected[0], made[0]
    np.testing.assert_allclose(made.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    back = getattr(torch.nn, name)(*args)
    back.load_state_dict({key: value.to_torch() for key, value in ours.state_dict().items()})


def test_states_of_optimisers_are_exchanged():
    theirs, ours = torch.ones(2, requires_grad=True), kw.ones(2, requires_grad=True)
    first = torch.optim.Adam([theirs], lr=0.1)
    second = kw.optim.Adam([ours])
    for _ in range(3):
        theirs.grad = torch.tensor([1.0, -2.0])
        first.step()
    with kw.no_grad():
        ours.copy_(kw.from_torch(theirs.detach()))
    second.load_state_dict(first.state_dict())
    theirs.grad, ours.grad = torch.tensor([1.0, 1.0]), kw.ones(2)
    first.step()
    second.step()
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)

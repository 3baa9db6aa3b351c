"""Gradients, modules and optimisers."""

import threading

import numpy as np
import pytest

import keyway as kw
from keyway import nn, optim


def test_a_gradient():
    x = kw.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    assert y.requires_grad and y.grad_fn.name() == "sum" and not y.is_leaf
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    x.grad = None
    assert x.grad is None


def test_second_derivatives():
    x = kw.tensor(2.0, dtype=kw.float64, requires_grad=True)
    (first,) = kw.grad(x**3, x, create_graph=True)
    (second,) = kw.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_an_unused_input_is_an_error_or_none():
    x, y = kw.ones(1, requires_grad=True), kw.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError):
        kw.grad((x * 2).sum(), [y])
    gradients = kw.grad((x * 2).sum(), [x, y], allow_unused=True)
    assert gradients[0].item() == 2.0 and gradients[1] is None


def test_recording_is_switched_off_for_a_block_a_function_and_a_thread():
    w = kw.ones(1, requires_grad=True)
    with kw.no_grad():
        assert not (w * 2).requires_grad
        with kw.enable_grad():
            assert (w * 2).requires_grad
        assert not (w * 2).requires_grad
        other = []
        thread = threading.Thread(target=lambda: other.append((w * 2).requires_grad))
        thread.start()
        thread.join()
        assert other == [True]
    assert (w * 2).requires_grad

    @kw.no_grad()
    def double(x):
        return x * 2

    assert not double(w).requires_grad
    with pytest.raises(ZeroDivisionError):
        with kw.no_grad():
            1 / 0
    assert kw.is_grad_enabled()


def test_a_module_registers_its_parts():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 8)
            self.rest = nn.Sequential(nn.ReLU(), nn.Linear(8, 2))
            self.norm = nn.BatchNorm2d(3)

        def forward(self, x):
            return self.rest(self.first(x))

    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == ["first.weight", "first.bias", "rest.1.weight", "rest.1.bias", "norm.weight", "norm.bias"]
    state = net.state_dict()
    assert "norm.running_mean" in state and state["first.weight"].shape == (8, 4)
    other = Net()
    other.load_state_dict(state)
    x = kw.randn(5, 4)
    assert other(x).tolist() == net(x).tolist()
    with pytest.raises(KeyError, match="missing.*first.bias"):
        other.load_state_dict({name: t for name, t in state.items() if name != "first.bias"})
    with pytest.raises(ValueError, match="first.weight of shape"):
        other.load_state_dict({**state, "first.weight": kw.zeros(1, 1)})
    assert net.eval().training is False and net.rest.training is False
    assert "(first): Linear(in_features=4, out_features=8, bias=True)" in repr(net)


def least_squares(make, steps=200):
    kw.manual_seed(0)
    x = kw.randn(64, 3)
    target = x @ kw.tensor([1.0, -2.0, 0.5]) + 0.25
    model = nn.Linear(3, 1)
    optimizer = make(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x).flatten(), target)
        loss.backward()
        optimizer.step()
    return loss.item(), model


@pytest.mark.parametrize(
    "make",
    [
        lambda params: optim.SGD(params, lr=0.1),
        lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
        lambda params: optim.Adam(params, lr=0.1),
        lambda params: optim.AdamW(params, lr=0.1, weight_decay=0.0),
    ],
)
def test_optimisers_find_the_least_squares(make):
    loss, model = least_squares(make)
    assert loss < 1e-4
    np.testing.assert_allclose(model.weight.detach().numpy()[0], [1.0, -2.0, 0.5], atol=2e-2)


def test_an_optimiser_without_parameters_is_refused():
    with pytest.raises(ValueError, match="at least one parameter"):
        optim.SGD([], lr=0.1)
    with pytest.raises(ValueError, match="learning rate"):
        optim.Adam([kw.ones(1, requires_grad=True)], lr=-1.0)


def test_images_pass_through_a_small_network():
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)
    )
    logits = net(kw.randn(2, 1, 8, 8))
    assert logits.shape == (2, 10)
    nn.CrossEntropyLoss()(logits, kw.tensor([1, 2])).backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_threads_compute_at_once():
    x = kw.randn(200, 200)
    expected = (x @ x).tolist()
    results = []
    threads = [threading.Thread(target=lambda: results.append((x @ x).tolist() == expected)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4

"""Modules and optimisers in the ways in which users of PyTorch use them."""

import copy
import pickle
import threading
from collections import OrderedDict

import numpy as np
import pytest

import keyway as kw
from keyway import nn, optim
from keyway.nn import functional as F


def test_a_conversion_that_changes_nothing_keeps_the_parameters():
    model = nn.Linear(2, 2)
    weight = model.weight
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    model = model.to("cpu").to(dtype=kw.float32).float()
    assert model.weight is weight
    before = weight.tolist()
    model(kw.ones(1, 2)).sum().backward()
    optimizer.step()
    assert model.weight.tolist() != before


def test_an_optimiser_of_replaced_parameters_says_so():
    model = nn.Linear(2, 2)
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    model.double()
    model(kw.ones(1, 2, dtype=kw.float64)).sum().backward()
    with pytest.raises(RuntimeError, match="replaced by `Module.to`"):
        optimizer.step()


def test_a_conversion_keeps_tied_parameters_and_gradients():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

    model = Tied()
    (model.embedding.weight**2).sum().backward()
    expected = model.embedding.weight.grad.tolist()
    model.double()
    assert model.head.weight is model.embedding.weight
    assert model.head.weight.grad.tolist() == expected
    assert [name for name, _ in model.named_parameters()] == ["embedding.weight"]
    assert sorted(model.state_dict()) == ["embedding.weight", "head.weight"]


def test_sequences_take_modules_only():
    named = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), act=nn.ReLU()))
    assert named(kw.ones(1, 2)).shape == (1, 3) and "first.weight" in named.state_dict()
    for wrong in ([nn.Linear(2, 3)], lambda x: x, "a"):
        with pytest.raises(TypeError, match="expected a Module"):
            nn.Sequential(wrong)
    with pytest.raises(TypeError, match="expected a Module"):
        nn.ModuleList([1, 2])
    assert len(named[:1]) == 1 and isinstance(named[:1], nn.Sequential)
    assert [name for name, _ in nn.ModuleDict({"a": nn.ReLU()}).items()] == ["a"]


def test_a_module_that_is_used_twice_is_stored_twice():
    linear = nn.Linear(2, 2)
    model = nn.Sequential(linear, nn.ReLU(), linear)
    assert sorted(model.state_dict()) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    assert len(list(model.parameters())) == 2


def test_frozen_parameters_are_part_of_the_state():
    module = nn.Module()
    module.w = nn.Parameter(kw.ones(2), requires_grad=False)
    assert list(module.state_dict()) == ["w"] and not module.w.requires_grad
    assert isinstance(module.w, nn.Parameter) and not isinstance(kw.ones(2), nn.Parameter)
    with pytest.raises(TypeError, match="is a parameter"):
        module.w = kw.zeros(2)
    module.w = None
    assert not module.state_dict()


def test_a_state_of_arrays_is_loaded_in_part():
    model = nn.Linear(2, 1)
    missing, unexpected = model.load_state_dict({"weight": np.ones((1, 2)), "other": np.ones(1)}, strict=False)
    assert (missing, unexpected) == (["bias"], ["other"])
    assert model.weight.tolist() == [[1.0, 1.0]]


def test_a_decorator_is_used_by_threads_at_once():
    started, go = threading.Event(), threading.Event()

    @kw.no_grad
    def slow(wait):
        if wait:
            started.set()
            go.wait(5)
        return kw.is_grad_enabled()

    seen = []

    def other():
        seen.append(slow(True))
        seen.append(kw.is_grad_enabled())

    thread = threading.Thread(target=other)
    thread.start()
    started.wait(5)
    with kw.no_grad():
        assert slow(False) is False
        go.set()
        thread.join()
    assert seen == [False, True] and kw.is_grad_enabled()


def test_generators_and_plain_calls_switch_recording():
    @kw.no_grad()
    def states():
        sent = yield kw.is_grad_enabled()
        yield sent, kw.is_grad_enabled()

    generator = states()
    assert next(generator) is False and kw.is_grad_enabled()
    assert generator.send("a") == ("a", False) and kw.is_grad_enabled()
    kw.set_grad_enabled(False)
    assert not kw.is_grad_enabled()
    kw.set_grad_enabled(True)
    with kw.set_grad_enabled(False):
        assert not kw.is_grad_enabled()
    assert kw.is_grad_enabled()


def test_hooks_change_gradients_and_raise():
    x = kw.ones(2, requires_grad=True)
    y = x * 3
    handle = y.register_hook(lambda gradient: gradient * 10)
    y.sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]
    handle.remove()
    x.grad = None
    y = x * 3
    y.register_hook(lambda gradient: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def test_copies_of_modules_keep_their_parameters():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(copied[0].weight, nn.Parameter) and copied[0].weight is not model[0].weight
        assert copied[0].weight.tolist() == model[0].weight.tolist()
        assert "(1): BatchNorm1d" in repr(copied)


def test_a_deep_copy_has_the_gradient():
    x = kw.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert copy.deepcopy(x).grad.tolist() == [2.0, 2.0]


def test_groups_and_states_of_optimisers():
    first, second = kw.ones(1, requires_grad=True), kw.ones(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [first]}, {"params": second, "lr": 0.5}], lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        (first + second).sum().backward()
        optimizer.step()
    np.testing.assert_allclose([first.item(), second.item()], [1 - 0.1 * 2.9, 1 - 0.5 * 2.9], rtol=1e-6)
    optimizer.param_groups[0]["lr"] = 0.0
    state = optimizer.state_dict()
    other = optim.SGD([{"params": [first]}, {"params": second}], lr=1.0, momentum=0.9)
    other.load_state_dict(state)
    assert [group["lr"] for group in other.param_groups] == [0.0, 0.5]
    assert other.state[first]["momentum_buffer"].tolist() == optimizer.state[first]["momentum_buffer"].tolist()
    with pytest.raises(TypeError, match="unknown options rate; there are lr"):
        optim.SGD([{"params": [first], "rate": 1}], lr=0.1)
    with pytest.raises(TypeError, match="one tensor"):
        optim.SGD(first, lr=0.1)
    assert len(optim.SGD(nn.Linear(1, 1).named_parameters(), lr=0.1).param_groups[0]["params"]) == 2
    assert optimizer.step(lambda: 5.0) == 5.0


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.LeakyReLU(0.1), [-0.1, 2.0]),
        (nn.ELU(), [np.expm1(-1.0), 2.0]),
        (nn.Softplus(), np.log1p(np.exp([-1.0, 2.0]))),
        (nn.Identity(5), [-1.0, 2.0]),
        (nn.LogSoftmax(0), np.array([-3.0, 0.0]) - np.log1p(np.exp(-3.0))),
    ],
    ids=str,
)
def test_layers_without_parameters(module, expected):
    np.testing.assert_allclose(np.asarray(module(kw.tensor([-1.0, 2.0]))), expected, rtol=1e-5)


def test_layers_refuse_options_that_do_not_exist():
    with pytest.raises(TypeError, match="unexpected arguments slope"):
        nn.LeakyReLU(slope=0.1)
    with pytest.raises(ValueError, match="2 groups divide"):
        nn.Conv2d(3, 4, 3, groups=2)
    with pytest.raises(ValueError, match="probability"):
        nn.Dropout(2.0)


def test_every_op_is_a_function_of_layers():
    x = kw.tensor([-1.0, 2.0])
    assert F.pad(x, [1, 1]).tolist() == [0.0, -1.0, 2.0, 0.0]
    assert F.one_hot(kw.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.avg_pool2d(kw.ones(1, 1, 4, 4), 2).tolist() == [[[[1.0, 1.0], [1.0, 1.0]]]]
    with pytest.raises(AttributeError, match="no_such_layer"):
        F.no_such_layer
    losses = (nn.L1Loss(), nn.SmoothL1Loss(), nn.MSELoss(), nn.BCEWithLogitsLoss())
    assert all(loss(x, kw.zeros(2)).item() > 0.0 for loss in losses)

"""Schedules, optimisers, mixed precision, checkpoints, and the other aids of a training."""

import copy
import json
import pickle

import numpy as np
import pytest

import keyway as kw
from keyway import nn, optim
from keyway.autograd import functional
from keyway.optim import lr_scheduler


def parameter(value=1.0):
    return kw.tensor([value], requires_grad=True)


def stepped(optimizer, w, count=3):
    for _ in range(count):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    return w.item()


# The values of PyTorch 2.15 after three steps from 1.
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, -0.1083520),
        ("Adam", {"lr": 0.1, "weight_decay": 0.1}, 0.7015863),
        ("AdamW", {"lr": 0.1}, 0.6989112),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}, 0.7950814),
        ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True}, 0.5496501),
    ],
)
def test_rules_of_optimisers(name, options, expected):
    w = parameter()
    assert stepped(getattr(optim, name)([w], **options), w) == pytest.approx(expected, abs=2e-6)


def test_states_of_optimisers_are_restored():
    w = parameter()
    optimizer = optim.Adam([{"params": [w], "lr": 0.5}], betas=(0.8, 0.9))
    stepped(optimizer, w)
    state = optimizer.state_dict()
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"} and state["param_groups"][0]["betas"] == (0.8, 0.9)
    twin = w.detach().clone().requires_grad_()
    other = optim.Adam([twin])
    other.load_state_dict(state)
    assert stepped(other, twin) == pytest.approx(stepped(optimizer, w), abs=1e-6)
    third = pickle.loads(pickle.dumps(optimizer))
    assert third.state[third.param_groups[0]["params"][0]]["step"].item() == 6
    assert "lr: 0.5" in repr(copy.deepcopy(optimizer))


def test_options_are_followed_and_groups_are_added():
    first, second = parameter(), parameter()
    frozen = kw.ones(1)
    optimizer = optim.SGD([first, frozen], lr=0.1)
    stepped(optimizer, first, 1)
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.param_groups[0]["weight_decay"] = 0.5
    assert stepped(optimizer, first, 1) == pytest.approx(0.8)
    optimizer.add_param_group({"params": [second], "lr": 1.0, "momentum": 0.9})
    assert stepped(optimizer, second, 1) == pytest.approx(-1.0)
    assert not frozen.requires_grad and frozen.item() == 1.0
    calls = []
    with optimizer.register_step_post_hook(lambda *args: calls.append(args)):
        stepped(optimizer, second, 2)
    assert len(calls) == 2


def test_an_optimiser_of_a_program():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @kw.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["count"] = state.get("count", 0) + 1
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    w = parameter()
    optimizer = Sign([w])
    schedule = lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(4):
        stepped(optimizer, w, 1)
        schedule.step()
    assert w.item() == pytest.approx(0.7) and optimizer.state_dict()["state"][0] == {"count": 4}


def test_mistakes_with_optimisers():
    w = parameter()
    with pytest.raises(TypeError, match="unknown option `betas`; there are lr, momentum"):
        optim.SGD([w], betas=(0.9, 0.9))
    with pytest.raises(NotImplementedError, match="maximize"):
        optim.SGD([w], maximize=True)
    with pytest.raises(ValueError, match="expected each parameter once"):
        optim.SGD([w, w], lr=0.1)
    with pytest.raises(AttributeError, match="there is no optimiser `LBFGS`; use Adam"):
        optim.LBFGS
    with pytest.raises((ValueError, RuntimeError), match="beta1"):
        optim.Adam([w], betas=(1.5, 0.9))
    optimizer = optim.Adam([w], foreach=True, fused=None)
    optimizer.param_groups[0]["lr"] = -1.0
    w.grad = kw.ones(1)
    with pytest.raises(RuntimeError, match="lr"):
        optimizer.step()


# The rates of PyTorch 2.15 for the first six epochs from 1.
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("StepLR", {"step_size": 2, "gamma": 0.5}, [1, 1, 0.5, 0.5, 0.25, 0.25]),
        ("MultiStepLR", {"milestones": [1, 4], "gamma": 0.5}, [1, 0.5, 0.5, 0.5, 0.25, 0.25]),
        ("ExponentialLR", {"gamma": 0.5}, [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
        ("LinearLR", {"start_factor": 0.5, "total_iters": 4}, [0.5, 0.625, 0.75, 0.875, 1, 1]),
        ("ConstantLR", {"factor": 0.5, "total_iters": 2}, [0.5, 0.5, 1, 1, 1, 1]),
        ("PolynomialLR", {"total_iters": 4, "power": 2}, [1, 0.5625, 0.25, 0.0625, 0, 0]),
        ("CosineAnnealingLR", {"T_max": 4}, [1, 0.85355339, 0.5, 0.14644661, 0, 0.14644661]),
        ("CosineAnnealingWarmRestarts", {"T_0": 2}, [1, 0.5, 1, 0.5, 1, 0.5]),
        ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}, [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6]),
        ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.5}, [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
    ],
)
def test_schedules(name, options, expected):
    optimizer = optim.SGD([parameter()], lr=1.0)
    schedule = getattr(lr_scheduler, name)(optimizer, **options)
    rates = []
    for _ in expected:
        rates += schedule.get_last_lr()
        schedule.step()
    np.testing.assert_allclose(rates, expected, atol=1e-8)


def test_combinations_of_schedules():
    def rates(make, count=6):
        optimizer = optim.SGD([parameter()], lr=1.0)
        step = make(optimizer)
        found = []
        for _ in range(count):
            found.append(optimizer.param_groups[0]["lr"])
            step()
        return found

    def warmed(optimizer):
        parts = [
            lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2),
            lr_scheduler.ExponentialLR(optimizer, 0.5),
        ]
        return lr_scheduler.SequentialLR(optimizer, parts, milestones=[2]).step

    np.testing.assert_allclose(rates(warmed), [0.5, 0.75, 1.0, 0.5, 0.25, 0.125])

    def chained(optimizer):
        parts = [lr_scheduler.StepLR(optimizer, 2, 0.5), lr_scheduler.ExponentialLR(optimizer, 0.5)]
        return lr_scheduler.ChainedScheduler(parts).step

    np.testing.assert_allclose(rates(chained, 4), [1.0, 0.5, 0.125, 0.0625])

    def plateau(optimizer):
        schedule = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
        return lambda: schedule.step(kw.tensor(1.0))

    np.testing.assert_allclose(rates(plateau, 4), [1.0, 1.0, 0.5, 0.25])


def test_one_cycle_moves_the_momentum():
    optimizer = optim.SGD([parameter()], lr=1.0, momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    group = optimizer.param_groups[0]
    assert group["lr"] == pytest.approx(0.04) and group["momentum"] == pytest.approx(0.95)
    schedule.step()
    schedule.step()
    assert group["lr"] == pytest.approx(1.0) and group["momentum"] == pytest.approx(0.85)
    for _ in range(8):
        schedule.step()
    with pytest.raises((ValueError, RuntimeError), match="total_steps"):
        schedule.step()
    with pytest.raises(ValueError, match="cycle_momentum=False"):
        lr_scheduler.OneCycleLR(optim.Adagrad([parameter()]), 1.0, 10)


def test_a_rate_that_was_set_by_hand_is_scaled_on():
    optimizer = optim.SGD([parameter()], lr=1.0)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.param_groups[0]["lr"] = 8.0
    schedule.step()
    assert schedule.get_last_lr() == [4.0]


def test_states_of_schedules_are_restored():
    first, second = optim.SGD([parameter()], lr=1.0), optim.SGD([parameter()], lr=1.0)
    schedule = lr_scheduler.CosineAnnealingLR(first, 10)
    for _ in range(4):
        schedule.step()
    other = lr_scheduler.CosineAnnealingLR(second, 5)
    other.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    second.load_state_dict(first.state_dict())
    schedule.step()
    other.step()
    assert other.last_epoch == 5 and other.get_last_lr() == pytest.approx(schedule.get_last_lr())


def test_gradients_are_clipped():
    w = kw.zeros(2, requires_grad=True)
    w.grad = kw.tensor([3.0, 4.0])
    assert nn.utils.clip_grad_norm_(w, 1.0).item() == 5.0
    np.testing.assert_allclose(w.grad.numpy(), [0.6, 0.8], rtol=1e-5)
    nn.utils.clip_grad_value_([w], 0.7)
    np.testing.assert_allclose(w.grad.numpy(), [0.6, 0.7], rtol=1e-5)
    with pytest.raises(NotImplementedError, match="clip_grad_value_"):
        nn.utils.clip_grad_norm_(w, 1.0, norm_type=1)
    w.grad = kw.tensor([np.inf, 1.0])
    with pytest.raises(RuntimeError, match="not finite"):
        nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    vector = nn.utils.parameters_to_vector([w, kw.ones(1, 2)])
    nn.utils.vector_to_parameters(vector * 0 + 2, [w])
    assert w.tolist() == [2.0, 2.0]


def test_mixed_precision():
    w = kw.ones(3, 2, requires_grad=True)
    with kw.autocast("cpu", dtype=kw.bfloat16):
        y = kw.ones(4, 3) @ w
        assert y.dtype == kw.bfloat16 and kw.amp.is_autocast_enabled()
        with kw.amp.autocast("cpu", enabled=False):
            assert (kw.ones(4, 3) @ w).dtype == kw.float32
    assert (kw.ones(4, 3) @ w).dtype == kw.float32
    y.float().sum().backward()
    assert w.grad.dtype == kw.float32

    @kw.autocast("cpu", dtype=kw.float16)
    def halved():
        return (kw.ones(2, 3) @ w).dtype

    assert halved() == kw.float16 and kw.amp.autocast_dtype() is None
    optimizer = optim.SGD([w], lr=0.1)
    scaler = kw.amp.GradScaler(init_scale=8.0, growth_interval=1)
    scaler.scale((w * 1.0).sum()).backward()
    w.grad = None
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad[0, 0].item() == 1.0
    scaler.step(optimizer)
    scaler.update()
    assert w[0, 0].item() == pytest.approx(0.9) and scaler.get_scale() == 16.0
    w.grad = kw.full((3, 2), np.inf)
    assert scaler.step(optimizer) is None and w[0, 0].item() == pytest.approx(0.9)
    scaler.update()
    other = kw.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0


def test_checkpoints_compute_twice():
    calls = []

    def part(x, factor, *, offset):
        calls.append(kw.is_grad_enabled())
        return nn.functional.dropout(x, 0.5) * factor + offset, x * 1

    x = kw.ones(1000, requires_grad=True)
    first, second = kw.utils.checkpoint.checkpoint(part, x, 2.0, offset=1.0, use_reentrant=False)
    (first.sum() + second.sum()).backward()
    assert len(calls) == 2 and calls[1]
    np.testing.assert_allclose(x.grad.numpy(), (first.detach().numpy() - 1) * 1 + 1)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    y = kw.utils.checkpoint.checkpoint_sequential(model, 2, kw.ones(2, 4, requires_grad=True))
    y.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    with pytest.raises(TypeError, match="checkpoint: expected a function of tensors"):
        kw.utils.checkpoint.checkpoint(lambda x: (x, 1), x)


def test_anomalies_name_the_line():
    x = kw.zeros(1, requires_grad=True)
    with kw.autograd.detect_anomaly():
        y = (x / x).sum()
        with pytest.raises(kw.AutogradError, match="test_anomalies_name_the_line"):
            y.backward()
    (x / x).sum().backward()
    with kw.autograd.set_detect_anomaly(False):
        (x / x).sum().backward()


def test_inference_mode():
    with kw.inference_mode():
        y = kw.ones(2) * 2
        assert kw.is_inference_mode_enabled() and y.is_inference()
    with pytest.raises(kw.AutogradError):
        y.requires_grad_()

    @kw.inference_mode()
    def made():
        return kw.is_grad_enabled()

    @kw.inference_mode
    def bare():
        return kw.is_inference_mode_enabled()

    assert not made() and bare() and kw.is_grad_enabled()


def test_modes_end_in_any_order():
    with kw.no_grad():
        kw.set_grad_enabled(True)
        assert kw.is_grad_enabled()
    assert kw.is_grad_enabled()
    kw.set_grad_enabled(False)
    kw.set_grad_enabled(False)
    with kw.enable_grad():
        assert kw.is_grad_enabled()
    assert not kw.is_grad_enabled()
    kw.set_grad_enabled(True)
    x = parameter()
    x.register_hook(lambda grad: kw.set_grad_enabled(True) and None)
    with kw.no_grad():
        with kw.enable_grad():
            y = (x * 2).sum()
        y.backward()
        assert not kw.is_grad_enabled()
    assert kw.is_grad_enabled()


def test_matrices_of_derivatives():
    x, y = kw.tensor([1.0, 2.0]), kw.tensor([3.0])
    matrix = functional.jacobian(lambda x: x**2, x)
    assert matrix.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    pair = functional.jacobian(lambda x, y: (x * y, y.sum()), (x, y))
    assert pair[0][0].tolist() == [[3.0, 0.0], [0.0, 3.0]] and pair[0][1].tolist() == [[1.0], [2.0]]
    assert pair[1][0].tolist() == [0.0, 0.0] and pair[1][1].tolist() == [1.0]
    assert functional.hessian(lambda x: (x**3).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    value, product = functional.vjp(lambda x: x**2, x, kw.tensor([1.0, 10.0]))
    assert value.tolist() == [1.0, 4.0] and product.tolist() == [2.0, 40.0]
    value, product = functional.jvp(lambda x: x.sum() * x, x, kw.tensor([1.0, 0.0]))
    assert product.tolist() == [4.0, 2.0]
    assert functional.hvp(lambda x: (x**3).sum(), x, kw.tensor([1.0, 1.0]))[1].tolist() == [6.0, 12.0]
    assert functional.vhp(lambda x: (x**3).sum(), x, kw.tensor([1.0, 1.0]))[1].tolist() == [6.0, 12.0]


def test_gradients_of_some_inputs():
    x, y = parameter(), parameter(2.0)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.item() == 2.0 and y.grad is None
    kw.autograd.backward([x * 2, y * 3], [None, kw.ones(1)])
    assert x.grad.item() == 4.0 and y.grad.item() == 3.0
    with pytest.raises(kw.autograd.GradcheckError, match="the derivative is"):
        kw.autograd.gradcheck(lambda x: (x.detach() * x).sum(), kw.ones(1, dtype=kw.float64, requires_grad=True))
    assert not kw.autograd.gradcheck(
        lambda x: (x.detach() * x).sum(), kw.ones(1, dtype=kw.float64, requires_grad=True), raise_exception=False
    )


def test_profiles(tmp_path):
    with kw.profiler.profile(profile_memory=True) as p:
        with kw.profiler.record_function("product"):
            kw.ones(4, 4) @ kw.ones(4, 4)
    rows = {row.key: row for row in p.key_averages()}
    assert rows["matmul"].calls + rows["mm"].calls >= 1 if "matmul" in rows else rows["mm"].calls == 1
    assert "mm" in str(p) and "mm" in p.key_averages().table(sort_by="cpu_time_total", row_limit=3)
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(event["name"] == "product" for event in events)
    assert p.memory_usage()[0]["peak"] > 0
    with pytest.raises(RuntimeError, match="expected a block"):
        kw.profiler.profile().table()
    with kw.profiler.memory() as m:
        kept = kw.ones(1000)
        assert m.usage()[0]["current"] >= kept.nbytes
    m.export(tmp_path / "memory.html")
    assert (tmp_path / "memory.html").read_text().startswith("<")


def test_strict_derivatives_refuse_results_that_do_not_depend_on_an_input():
    x, y = kw.ones(2), kw.ones(2)
    assert [m.tolist() for m in functional.jacobian(lambda a, b: a * 2, (x, y))][1] == [[0.0, 0.0]] * 2
    with pytest.raises(RuntimeError, match="input 1"):
        functional.jacobian(lambda a, b: a * 2, (x, y), strict=True)
    with pytest.raises(RuntimeError, match="strict"):
        functional.vjp(lambda a: kw.ones(1), x, kw.ones(1), strict=True)
    with pytest.raises(RuntimeError, match="strict"):
        functional.hessian(lambda a: (a * 2).sum(), x, strict=True)


def test_every_mode_decorates_generators():
    @kw.inference_mode()
    def numbers():
        for _ in range(2):
            yield kw.ones(1).is_inference(), kw.is_inference_mode_enabled()

    inside = []
    for inference, enabled in numbers():
        inside.append((inference, enabled, kw.is_inference_mode_enabled()))
    assert inside == [(True, True, False)] * 2


def test_bounds_of_clamp_may_be_tensors_in_each_form():
    x, bound = kw.tensor([1.0, 2.0, 3.0]), kw.tensor([2.0, 2.0, 2.0])
    assert x.clamp_min(bound).tolist() == [2.0, 2.0, 3.0] and x.clamp_max(bound).tolist() == [1.0, 2.0, 2.0]

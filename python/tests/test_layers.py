"""Modules: names and shapes of their state, values beside PyTorch's, hooks, containers, initial values."""

import math

import numpy as np
import pytest

import keyway as kw
from keyway import nn
from keyway.nn import functional as F
from keyway.nn.utils import rnn


def filled(module):
    """The module with parameters that are sines of their position."""
    with kw.no_grad():
        start = 0
        for parameter in module.parameters():
            count = parameter.numel()
            parameter.copy_((kw.arange(start, start + count).float() * 0.37).sin().reshape(parameter.shape) * 0.5)
            start += count
    return module


def wave(*shape):
    return (kw.arange(math.prod(shape)).float() * 0.71).cos().reshape(shape)


# Shapes of PyTorch's `state_dict`.
STATES = {
    "LSTM": (
        nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2),
        {"weight_ih_l0": (16, 3), "weight_hr_l1_reverse": (2, 4), "weight_ih_l1": (16, 4), "bias_hh_l1_reverse": (16,)},
    ),
    "GRUCell": (nn.GRUCell(3, 4), {"weight_ih": (12, 3), "weight_hh": (12, 4), "bias_ih": (12,), "bias_hh": (12,)}),
    "MultiheadAttention": (
        nn.MultiheadAttention(4, 2),
        {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4), "out_proj.bias": (4,)},
    ),
    "other widths": (
        nn.MultiheadAttention(4, 2, kdim=3, vdim=5, bias=False, add_bias_kv=True),
        {"q_proj_weight": (4, 4), "k_proj_weight": (4, 3), "v_proj_weight": (4, 5), "bias_k": (1, 1, 4)},
    ),
    "TransformerEncoderLayer": (
        nn.TransformerEncoderLayer(4, 2, 8),
        {"self_attn.in_proj_weight": (12, 4), "linear1.weight": (8, 4), "norm2.bias": (4,)},
    ),
    "ConvTranspose3d": (nn.ConvTranspose3d(4, 6, 3, groups=2), {"weight": (4, 3, 3, 3, 3), "bias": (6,)}),
    "Bilinear": (nn.Bilinear(2, 3, 4), {"weight": (4, 2, 3), "bias": (4,)}),
    "InstanceNorm2d": (nn.InstanceNorm2d(3, track_running_stats=True), {"running_mean": (3,), "num_batches_tracked": ()}),
}


@pytest.mark.parametrize("name", STATES)
def test_names_and_shapes_of_states(name):
    module, expected = STATES[name]
    state = module.state_dict()
    assert {key: state[key].shape for key in expected} == expected


# The sums of results and of the input's gradients in PyTorch 2.15.
VALUES = {
    "rnn": (lambda: nn.RNN(3, 4, 2, nonlinearity="relu"), (5, 2, 3), [34.1148, 0.922539, 2.53569]),
    "gru": (lambda: nn.GRU(3, 4, batch_first=True, bidirectional=True), (2, 5, 3), [-1.77629, 1.37172, 3.76083]),
    "lstm": (lambda: nn.LSTM(3, 4, 2, proj_size=2), (5, 2, 3), [-1.79711, -0.00537338, 0.044667]),
    "encoder": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, norm_first=True), (3, 2, 4), [-2.50259, 12.6503, 8.63285]),
    "conv": (lambda: nn.Conv2d(2, 4, 3, padding="same", padding_mode="circular", groups=2), (2, 2, 5, 5), [88.7692, 1.19046, 176.396]),
    "transposed": (lambda: nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1), (2, 2, 3, 3), [207.14, 1.3236, 109.192]),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3), [9.6037, 9.44845e-05, 16.0819]),
    "prelu": (lambda: nn.PReLU(3), (2, 3), [1.42653, 2.0465, 2.03548]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_beside_pytorch(name):
    make, shape, expected = VALUES[name]
    module, x = filled(make()), wave(*shape).requires_grad_()
    made = module(x)
    made = made[0] if isinstance(made, tuple) else made
    (made * wave(*made.shape)).sum().backward()
    first = next(module.parameters()).grad
    found = [made.sum().item(), (x.grad * wave(*shape)).sum().item(), first.abs().sum().item()]
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def test_packed_sequences():
    layer, x = filled(nn.GRU(3, 4, bidirectional=True)), wave(4, 3, 3)
    packed = rnn.pack_padded_sequence(x, kw.tensor([2, 4, 1]), enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.sorted_indices.tolist() == [1, 0, 2]
    output, state = layer(packed)
    padded, lengths = rnn.pad_packed_sequence(output, total_length=5)
    assert padded.shape == (5, 3, 8) and lengths.tolist() == [2, 4, 1] and state.shape == (2, 3, 4)
    for index, length in enumerate([2, 4, 1]):
        alone, last = layer(x[:length, index])
        np.testing.assert_allclose(padded[:length, index].detach().numpy(), alone.detach().numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state[:, index].detach().numpy(), last.detach().numpy(), rtol=1e-5, atol=1e-6)
        assert not padded[length:, index].detach().numpy().any()
    with pytest.raises(RuntimeError, match="enforce_sorted=False"):
        rnn.pack_padded_sequence(x, [2, 4, 1])
    sequences = [kw.ones(2), kw.ones(3)]
    assert rnn.pad_sequence(sequences, batch_first=True).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert [len(one) for one in rnn.unpad_sequence(rnn.pad_sequence(sequences), [2, 3])] == [2, 3]


def test_states_of_recurrent_layers():
    layer, x = filled(nn.LSTM(3, 4)), wave(5, 2, 3)
    whole, (h, c) = layer(x)
    first, state = layer(x[:2])
    second, (h2, c2) = layer(x[2:], state)
    np.testing.assert_allclose(kw.cat([first, second]).detach().numpy(), whole.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert h.allclose(h2, atol=1e-6) and c.allclose(c2, atol=1e-6)
    cell = nn.LSTMCell(3, 4)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    state = None
    for step in x:
        state = cell(step, state)
    assert state[0].allclose(h[0], atol=1e-6)
    with pytest.raises(TypeError, match="a tuple of two tensors"):
        layer(x, h)
    with pytest.raises(ValueError, match="expected a state of shape"):
        nn.GRU(3, 4)(x, kw.zeros(1, 3, 4))
    with pytest.raises(ValueError, match=r"\(length, batch, 3\)"):
        layer(kw.ones(5, 2, 7))


def test_attention_with_masks():
    attention, x = filled(nn.MultiheadAttention(4, 2)), wave(3, 2, 4)
    mask = kw.ones(3, 3).bool().triu(1)
    made, weights = attention(x, x, x, attn_mask=mask, is_causal=True)
    assert weights.shape == (2, 3, 3) and weights[0, 0].tolist() == [1.0, 0.0, 0.0]
    fast, nothing = attention(x, x, x, attn_mask=mask, need_weights=False)
    assert nothing is None and fast.allclose(made, atol=1e-6)
    padding = kw.tensor([[False, False, True], [False, False, False]])
    padded, weights = attention(x, x, x, key_padding_mask=padding)
    assert weights[0, :, 2].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="expected `attn_mask` of shape"):
        attention(x, x, x, attn_mask=kw.ones(2, 2).bool())


def test_losses():
    x, y = wave(4, 3), (wave(4, 3) * 2).sin()
    assert nn.HuberLoss(delta=0.5)(x, y).item() == pytest.approx(F.huber_loss(x, y, delta=0.5).item())
    log_probs = F.log_softmax(wave(6, 2, 4), -1)
    targets = kw.tensor([[1, 2], [3, 3]])
    by_mean = nn.CTCLoss()(log_probs, targets, kw.tensor([6, 5]), (2, 2))
    each = nn.CTCLoss(reduction="none")(log_probs, targets, [6, 5], [2, 2])
    assert by_mean.item() == pytest.approx((each / 2).mean().item(), rel=1e-5)
    assert nn.KLDivLoss(reduction="batchmean")(F.log_softmax(x, 1), F.softmax(y, 1)).item() > 0
    assert nn.TripletMarginLoss(margin=2.0)(x, y, x).item() > 0
    with pytest.raises(TypeError, match="reduction"):
        nn.MSELoss(size_average=False)
    with pytest.raises(ValueError, match="expected `reduction` to be one of none, mean, sum"):
        nn.MSELoss(reduction="average")
    with pytest.warns(UserWarning, match="expected a target of the input's shape"):
        F.mse_loss(x, y[0])
    with pytest.raises(ValueError, match="shape"):
        nn.BCELoss()(x, y[0])


def test_hooks_of_modules():
    layer = nn.Linear(2, 2)
    calls = []
    with layer.register_forward_pre_hook(lambda module, args: (args[0] * 0,)):
        assert layer(kw.ones(1, 2)).allclose(layer.bias.unsqueeze(0))
    handle = layer.register_forward_hook(lambda module, args, output: output + 1)
    first = layer.register_forward_hook(lambda module, args, output: calls.append(output.clone()), prepend=True)
    made = layer(kw.ones(1, 2))
    assert made.allclose(calls[0] + 1)
    handle.remove()
    first.remove()
    layer.register_forward_hook(lambda module, args, kwargs, output: calls.append(kwargs), with_kwargs=True)
    layer(input=kw.ones(1, 2))
    assert list(calls[-1]) == ["input"]


def test_backward_hooks_of_modules():
    layer = filled(nn.Linear(2, 2))
    seen = []
    layer.register_full_backward_hook(lambda module, of_input, of_output: seen.append((of_input, of_output)))
    x = kw.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    (of_input,), (of_output,) = seen[0]
    assert of_output.tolist() == [[1.0, 1.0]] and of_input.allclose(x.grad)
    # Without a gradient of the input the hook is called too.
    layer(kw.ones(1, 2)).sum().backward()
    assert seen[1][0] == (None,)
    layer.register_full_backward_hook(lambda module, of_input, of_output: (of_input[0] * 10,))
    x.grad = None
    layer(x).sum().backward()
    assert x.grad.allclose(of_input * 10)
    layer.register_full_backward_pre_hook(lambda module, of_output: (of_output[0] * 0,))
    x.grad = None
    layer(x).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]


def test_containers():
    model = nn.Sequential(nn.Linear(2, 3)).append(nn.ReLU())
    model[1] = nn.Tanh()
    assert isinstance(model[-1], nn.Tanh) and len(model[:1]) == 1
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.insert(0, nn.ReLU())
    layers += [nn.Tanh()]
    del layers[0]
    assert [type(layer).__name__ for layer in layers] == ["Linear", "Tanh"] and "0.weight" in layers.state_dict()
    values = nn.ParameterList([kw.ones(2), nn.Parameter(kw.zeros(1))])
    values.append(kw.ones(3))
    assert len(list(values.parameters())) == 3 and values[-1].requires_grad and len(values[:2]) == 2
    named = nn.ParameterDict({"a": kw.ones(2)})
    named["b"] = kw.zeros(1)
    assert "a" in named and list(named.keys()) == ["a", "b"] and named.pop("b").shape == (1,)
    modules = nn.ModuleDict({"act": nn.ReLU()})
    modules.update({"fc": nn.Linear(1, 1)})
    assert [name for name, _ in modules.items()] == ["act", "fc"] and len(list(modules.values())) == 2


def test_buffers_that_are_no_state():
    module = nn.Linear(1, 1)
    module.register_buffer("mask", kw.ones(1), persistent=False)
    assert "mask" not in module.state_dict() and dict(module.named_buffers())["mask"].item() == 1.0
    assert module.double().mask.dtype == kw.float64
    result = module.load_state_dict({"weight": kw.ones(1, 1)}, strict=False)
    assert result.missing_keys == ["bias"] and result.unexpected_keys == []
    with pytest.raises(RuntimeError, match="missing"):
        module.load_state_dict({})
    assert nn.Linear(2, 3, dtype=kw.float64).weight.dtype == kw.float64


def test_initial_values():
    kw.manual_seed(0)
    weight = kw.empty(200, 100)
    assert nn.init.kaiming_normal_(weight, nonlinearity="relu").std().item() == pytest.approx(math.sqrt(2 / 100), rel=0.05)
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5))
    assert weight.abs().max().item() == pytest.approx(1 / math.sqrt(100), rel=0.01)
    assert nn.init.xavier_normal_(weight, 2.0).std().item() == pytest.approx(2 * math.sqrt(2 / 300), rel=0.05)
    nn.init.xavier_uniform_(weight, gain=nn.init.calculate_gain("tanh"))
    assert weight.abs().max().item() == pytest.approx(5 / 3 * math.sqrt(6 / 300), rel=0.01)
    nn.init.orthogonal_(weight)
    np.testing.assert_allclose((weight.T @ weight).numpy(), np.eye(100), atol=1e-4)
    assert nn.init.trunc_normal_(weight, std=3.0).abs().max().item() <= 2.0
    assert (nn.init.sparse_(weight, 0.25) == 0).float().mean().item() == pytest.approx(0.25)
    assert nn.init.eye_(kw.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    x = wave(1, 3, 5)
    assert F.conv1d(x, nn.init.dirac_(kw.empty(3, 3, 3)), padding=1).allclose(x)
    layer = nn.Linear(2, 2)
    nn.init.constant_(layer.weight, 0.5)
    assert layer.weight.requires_grad and layer.weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        nn.init.xavier_uniform_(kw.empty(3))
    with pytest.raises(AttributeError, match="`xavier_uniform_`"):
        nn.init.xavier_uniform


def test_modules_that_are_missing_name_another():
    with pytest.raises(AttributeError, match="there is no module `LazyLinear`; use Linear"):
        nn.LazyLinear
    with pytest.raises(TypeError, match="missing argument `kernel_size`"):
        nn.MaxPool2d()
    with pytest.raises(TypeError, match="pass `dim=-1`"):
        F.softmax(kw.ones(2))
    with pytest.raises(ValueError, match="expected an input of 4 dimensions"):
        nn.BatchNorm2d(3)(kw.ones(2, 3))


def test_former_arguments_of_losses_are_refused_everywhere():
    x, y = kw.zeros(3), kw.ones(3)
    for call in (nn.functional.mse_loss, nn.functional.l1_loss, nn.functional.smooth_l1_loss, nn.functional.kl_div):
        for former in ({"size_average": False}, {"reduce": False}):
            with pytest.raises(TypeError, match="reduction"):
                call(x, y, **former)
    with pytest.raises(TypeError, match="reduction"):
        nn.MSELoss(size_average=False)

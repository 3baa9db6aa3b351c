"""Writes expected.txt: outputs, states and gradients of PyTorch's recurrent modules, in f64.

Needs PyTorch (written with 2.15). Run in this folder: python expected.py > expected.txt
"""

import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

torch.set_default_dtype(torch.float64)


def fill(sizes, number):
    values = [0.5 * math.sin(0.7 * i + 1.3 * number) for i in range(math.prod(sizes))]
    return torch.tensor(values).reshape(sizes)


def line(name, tensor):
    print(f"{name}: {' '.join(f'{float(v):.15g}' for v in tensor.detach().reshape(-1))}")


def case(name, module, sizes, states=(), lengths=None):
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(fill(parameter.shape, number))
    x = (2 * fill(sizes, 11)).requires_grad_(True)
    states = tuple(fill(shape, 5 + i) for i, shape in enumerate(states))
    state = None if not states else states if isinstance(module, nn.LSTM) else states[0]
    given = x if lengths is None else pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    output, last = module(given, state)
    output = output if lengths is None else output.data
    last = last if isinstance(last, tuple) else (last,)
    sum((fill(t.shape, 7 + i) * t).sum() for i, t in enumerate((output, *last))).backward()
    print(f"# {name}")
    line("output", output)
    for tensor in last:
        line("state", tensor)
    line("input gradient", x.grad)
    line("parameters", torch.stack([(p.grad * fill(p.shape, 3)).sum() for p in module.parameters()]))


X = (3, 2, 2)
case("rnn", nn.RNN(2, 3), X)
case("rnn relu", nn.RNN(2, 3, nonlinearity="relu", bias=False), X)
case("gru", nn.GRU(2, 2), X, [(1, 2, 2)])
case("lstm", nn.LSTM(2, 2), X, [(1, 2, 2)] * 2)
case("lstm projected", nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2, batch_first=True), X)
case("gru packed", nn.GRU(2, 2, bidirectional=True), X, [(2, 2, 2)], [1, 3])
case("lstm packed", nn.LSTM(2, 2, 2, bidirectional=True), (4, 3, 2), [], [2, 4, 1])

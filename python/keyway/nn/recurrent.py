"""Recurrent layers and their cells; a layer's steps are one op of the Rust side."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

from .._functions import cat, stack
from .._keyway import PackedSequence, Tensor, call_op, zeros
from ..autograd import is_grad_enabled
from . import functional as F
from .init import uniform_
from .linear import uniform_parameter
from .module import Module, changed


class _Recurrent(Module):
    """Layers of a recurrence in one or two directions."""

    _gates: int
    _has_cell = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if num_layers < 1 or hidden_size < 1:
            raise ValueError(f"{name}: expected at least one layer and a hidden size above 0, got {num_layers} and {hidden_size}")
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"{name}: expected a probability from 0 to 1, got {dropout}")
        if proj_size and (not self._has_cell or not 0 < proj_size < hidden_size):
            raise ValueError(f"{name}: `proj_size` is an option of LSTM, and below the hidden size; got {proj_size}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        bound, width = 1.0 / math.sqrt(hidden_size), proj_size or hidden_size
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else width * (1 + bidirectional)
            for direction in ("", "_reverse")[: 1 + bidirectional]:
                shapes = {"weight_ih": (self._gates * hidden_size, inputs), "weight_hh": (self._gates * hidden_size, width)}
                if bias:
                    shapes.update(bias_ih=(self._gates * hidden_size,), bias_hh=(self._gates * hidden_size,))  # type: ignore[arg-type]
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for kind, shape in shapes.items():
                    setattr(self, f"{kind}_l{layer}{direction}", uniform_parameter(bound, *shape))
        self._place(device, dtype)

    def reset_parameters(self) -> None:
        """Sets the parameters to new initial values."""
        for parameter in self.parameters():
            uniform_(parameter, -1.0 / math.sqrt(self.hidden_size), 1.0 / math.sqrt(self.hidden_size))

    def flatten_parameters(self) -> None:
        """Does nothing: parameters are used as they are."""

    @abstractmethod
    def _mode(self) -> str:
        """The recurrence by its name in the op."""

    def _direction(
        self, data: Tensor, batches: list[int], state: list[Tensor | None], suffix: str
    ) -> tuple[Tensor, ...]:
        """The steps of one layer in one direction: outputs, and the last states."""
        kinds = ("weight_ih", "bias_ih", "weight_hh", "bias_hh", "weight_hr")
        weights = [self._parameters.get(f"{kind}_l{suffix}") for kind in kinds]
        weight_ih, bias_ih, weight_hh, bias_hh, weight_hr = weights
        assert weight_ih is not None
        projected = F.linear(data, weight_ih, bias_ih)
        hidden, cell = state
        used = (projected, hidden, cell, weight_hh, bias_hh, weight_hr)
        save = is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in used)
        args = (projected, hidden, cell, weight_hh, bias_hh, weight_hr, batches, suffix.endswith("_reverse"), self._mode(), save)
        made: tuple[Tensor, ...] = call_op("rnn_layer", args)
        return made[: 2 + self._has_cell]

    def _rows(self, data: Tensor, batches: list[int], states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The layers over the steps of all sequences by time; ``batches`` has the number of sequences of each step."""
        last: list[list[Tensor]] = [[] for _ in states]
        number = 0
        for layer in range(self.num_layers):
            outputs = []
            for direction in ("", "_reverse")[: 1 + self.bidirectional]:
                state: list[Tensor | None] = [one[number] for one in states]
                made = self._direction(data, batches, (state + [None])[:2], f"{layer}{direction}")
                outputs.append(made[0])
                for all_last, one in zip(last, made[1:]):
                    all_last.append(one)
                number += 1
            data = outputs[0] if len(outputs) == 1 else cat(outputs, 1)
            if self.dropout and layer + 1 < self.num_layers:
                data = F.dropout(data, self.dropout, self.training)
        return data, [stack(all_last) for all_last in last]

    def _states(self, hx: Any, batch: int, like: Tensor) -> list[Tensor]:
        """The first states, zeros if none are given."""
        count = self.num_layers * (1 + self.bidirectional)
        shapes = [(count, batch, self.proj_size or self.hidden_size), (count, batch, self.hidden_size)][: 1 + self._has_cell]
        if hx is None:
            return [zeros(shape, dtype=like.dtype, device=like.device) for shape in shapes]
        states = list(hx) if self._has_cell else [hx]
        if len(states) != len(shapes) or any(not isinstance(state, Tensor) for state in states):
            kind = "a tuple of two tensors" if self._has_cell else "a tensor"
            raise TypeError(f"{type(self).__name__}: expected {kind} as the state")
        for state, shape in zip(states, shapes):
            if state.shape != shape:
                raise ValueError(f"{type(self).__name__}: expected a state of shape {shape}, got {tuple(state.shape)}")
        return states

    def _result(self, states: list[Tensor]) -> Any:
        return tuple(states) if self._has_cell else states[0]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The outputs of all steps, and the last states; ``input`` is a tensor or a ``PackedSequence``."""
        if isinstance(input, PackedSequence):
            batches = input._sizes()
            states = self._states(hx, len(input), input.data)
            if hx is not None:
                states = [state.index_select(1, input.sorted_indices) for state in states]
            data, states = self._rows(input.data, batches, states)
            states = [state.index_select(1, input.unsorted_indices) for state in states]
            return input._with_data(data), self._result(states)
        name = type(self).__name__
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            order = "(batch, length" if self.batch_first else "(length, batch"
            raise ValueError(f"{name}: expected an input of shape {order}, {self.input_size}), got {tuple(input.shape)}")
        alone = input.ndim == 2
        if alone:
            input = input.unsqueeze(0 if self.batch_first else 1)
            if hx is not None:
                hx = tuple(state.unsqueeze(1) for state in hx) if self._has_cell else hx.unsqueeze(1)
        by_time = input.transpose(0, 1) if self.batch_first else input
        length, batch = by_time.shape[:2]
        if length == 0:
            raise ValueError(f"{name}: expected at least one step, got an input of shape {tuple(input.shape)}")
        states = self._states(hx, batch, input)
        data, states = self._rows(by_time.reshape(length * batch, -1), [batch] * length, states)
        output = data.reshape(length, batch, -1)
        output = output.transpose(0, 1) if self.batch_first else output
        if alone:
            return output.squeeze(0 if self.batch_first else 1), self._result([state.squeeze(1) for state in states])
        return output, self._result(states)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + changed(
            proj_size=(self.proj_size, 0),
            num_layers=(self.num_layers, 1),
            bias=(self.bias, True),
            batch_first=(self.batch_first, False),
            dropout=(self.dropout, 0.0),
            bidirectional=(self.bidirectional, False),
        )


class RNN(_Recurrent):
    """Elman's recurrence, ``h = tanh(x @ W_ih.T + b_ih + h @ W_hh.T + b_hh)``, or with ``relu``."""

    _gates = 1

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        # The fourth argument by position is the nonlinearity, as in PyTorch.
        if len(args) > 3 and isinstance(args[3], str):
            args, nonlinearity = (*args[:3], *args[4:]), args[3]
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: expected `nonlinearity` to be tanh or relu, got {nonlinearity}")
        super().__init__(*args, **kwargs)
        self.nonlinearity = nonlinearity

    def _mode(self) -> str:
        return f"rnn_{self.nonlinearity}"


class GRU(_Recurrent):
    """Gated recurrent units (Cho et al. 2014)."""

    _gates = 3

    def _mode(self) -> str:
        return "gru"


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997); the states are a pair of hidden state and cell."""

    _gates = 4
    _has_cell = True

    def _mode(self) -> str:
        return "lstm"


class _Cell(Module):
    """One step of a recurrence."""

    _gates: int
    _has_cell = False

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        bound, rows = 1.0 / math.sqrt(hidden_size), self._gates * hidden_size
        self.weight_ih, self.weight_hh = uniform_parameter(bound, rows, input_size), uniform_parameter(bound, rows, hidden_size)
        self.register_parameter("bias_ih", uniform_parameter(bound, rows) if bias else None)
        self.register_parameter("bias_hh", uniform_parameter(bound, rows) if bias else None)
        self._place(device, dtype)

    @abstractmethod
    def _mode(self) -> str:
        """The recurrence by its name in the op."""

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state; that of LSTMCell is a pair."""
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: expected an input of shape (batch, {self.input_size}), got {tuple(input.shape)}"
            )
        alone = input.ndim == 1
        rows = input.unsqueeze(0) if alone else input
        shape = (len(rows), self.hidden_size)
        if hx is None:
            states = [zeros(shape, dtype=input.dtype, device=input.device) for _ in range(1 + self._has_cell)]
        else:
            states = list(hx) if self._has_cell else [hx]
            states = [state.unsqueeze(0) for state in states] if alone else states
        projected = F.linear(rows, self.weight_ih, self.bias_ih)
        save = is_grad_enabled() and (projected.requires_grad or any(state.requires_grad for state in states))
        cell = states[1] if self._has_cell else None
        args = (projected, states[0], cell, self.weight_hh, self.bias_hh, None, [len(rows)], False, self._mode(), save)
        made = call_op("rnn_layer", args)[1 : 2 + self._has_cell]
        if alone:
            made = tuple(state.squeeze(0) for state in made)
        return tuple(made) if self._has_cell else made[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class RNNCell(_Cell):
    """One step of ``RNN``."""

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: expected `nonlinearity` to be tanh or relu, got {nonlinearity}")
        self.nonlinearity = nonlinearity

    def _mode(self) -> str:
        return f"rnn_{self.nonlinearity}"


class GRUCell(_Cell):
    """One step of ``GRU``."""

    _gates = 3

    def _mode(self) -> str:
        return "gru"


class LSTMCell(_Cell):
    """One step of ``LSTM``."""

    _gates = 4
    _has_cell = True

    def _mode(self) -> str:
        return "lstm"

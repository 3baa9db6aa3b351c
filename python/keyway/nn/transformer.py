"""Encoders and decoders of transformers (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
from typing import Any, Callable

from .._keyway import Tensor, full
from . import functional as F
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .init import xavier_uniform_
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _function(activation: Activation) -> Callable[[Tensor], Tensor]:
    if callable(activation):
        return activation
    if activation not in ("relu", "gelu"):
        raise ValueError(f"expected `activation` to be relu, gelu or a function, got {activation}")
    found: Callable[[Tensor], Tensor] = getattr(F, activation)
    return found


class _Layer(Module):
    """Attention and two linear layers, each with a residual and a normalisation."""

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first))
        self.linear1, self.linear2 = Linear(d_model, dim_feedforward, bias), Linear(dim_feedforward, d_model, bias)
        self.dropout = Dropout(dropout)
        for number in range(1, len(self._attentions) + 2):
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps, bias=bias))
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation, self.norm_first = _function(activation), norm_first
        self._place(device, dtype)

    def _feed(self, x: Tensor) -> Tensor:
        made: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return made

    def _residuals(self, x: Tensor, parts: list[Callable[[Tensor], Tensor]]) -> Tensor:
        for number, part in enumerate(parts, 1):
            norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
            x = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return x


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers, each with a residual and a normalisation."""

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            made: Tensor = self.self_attn(x, x, x, src_key_padding_mask, need_weights=False, attn_mask=src_mask)[0]
            return made

        return self._residuals(src, [attend, self._feed])


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's results, and two linear layers."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            made: Tensor = self.self_attn(x, x, x, tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask)[0]
            return made

        def look(x: Tensor) -> Tensor:
            padding, mask = memory_key_padding_mask, memory_mask
            made: Tensor = self.multihead_attn(x, memory, memory, padding, need_weights=False, attn_mask=mask)[0]
            return made

        return self._residuals(tgt, [attend, look, self._feed])


class TransformerEncoder(Module):
    """Several copies of an encoder layer, one after another."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Several copies of a decoder layer, one after another."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, *masks: Tensor | None, **named: Any) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **named)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias)

        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm())
        for parameter in self.parameters():
            if parameter.ndim > 1:
                xavier_uniform_(parameter)
        self._place(device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        made: Tensor = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )
        return made

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: str | None = None, dtype: Any = None) -> Tensor:
        """A mask of minus infinity above the diagonal, so that no position sees a later one."""
        return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)

"""Attention."""

from __future__ import annotations

from typing import Any

from .._functions import cat
from .._keyway import Tensor, call_op, empty, zeros
from . import functional as F
from .init import constant_, xavier_normal_, xavier_uniform_
from .linear import Linear
from .module import Module, Parameter


class MultiheadAttention(Module):
    """Attention of several heads (Vaswani et al. 2017).

    Inputs are (length, batch, embed_dim), (batch, length, embed_dim) with ``batch_first``, or without a batch.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: expected heads that divide {embed_dim}, got {num_heads}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim, self.add_zero_attn = kdim or embed_dim, vdim or embed_dim, add_zero_attn
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = Parameter(xavier_uniform_(empty(3 * embed_dim, embed_dim)))
            for name in names:
                self.register_parameter(name, None)
        else:
            self.register_parameter("in_proj_weight", None)
            for name, width in zip(names, (embed_dim, self.kdim, self.vdim)):
                setattr(self, name, Parameter(xavier_uniform_(empty(embed_dim, width))))
        self.register_parameter("in_proj_bias", Parameter(zeros(3 * embed_dim)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias)
        if bias:
            constant_(self.out_proj.bias, 0.0)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(xavier_normal_(empty(1, 1, embed_dim))) if add_bias_kv else None)
        self._place(device, dtype)

    def _heads(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.num_heads, -1).transpose(1, 2)

    def _projected(self, inputs: list[Tensor]) -> list[Tensor]:
        if self.in_proj_weight is not None:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = self.in_proj_bias.chunk(3) if self.in_proj_bias is not None else (None,) * 3
        return [F.linear(x, weight, bias) for x, weight, bias in zip(inputs, weights, biases)]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The results, and the weights of attention if ``need_weights``, averaged over the heads.

        A mask is True, or minus infinity, where a position is not seen.
        """
        alone = query.ndim == 2
        inputs = [
            x.unsqueeze(0) if alone else x if self.batch_first else x.transpose(0, 1) for x in (query, key, value)
        ]
        if any(x.ndim != 3 for x in inputs):
            raise ValueError(f"MultiheadAttention: expected inputs of 2 or 3 dimensions, got {query.ndim}")
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: `is_causal` is a hint about `attn_mask`; pass the mask")
        q, k, v = self._projected(inputs)
        batch, length = k.shape[:2]
        if self.bias_k is not None:
            k, v = cat([k, self.bias_k.expand(batch, 1, -1)], 1), cat([v, self.bias_v.expand(batch, 1, -1)], 1)
        if self.add_zero_attn:
            k, v = cat([k, k.new_zeros(batch, 1, self.embed_dim)], 1), cat([v, v.new_zeros(batch, 1, self.embed_dim)], 1)
        mask = self._mask(key_padding_mask, attn_mask, batch, q.shape[1], length, k.shape[1] - length, q, alone)
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.transpose(-2, -1) / (q.shape[-1] ** 0.5)
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            weights = F.dropout(weights, dropout) if dropout else weights
            made = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            made = call_op("scaled_dot_product_attention", (q, k, v, mask, dropout))
        made = self.out_proj(made.transpose(1, 2).reshape(batch, -1, self.embed_dim))
        if alone:
            return made.squeeze(0), weights if weights is None else weights.squeeze(0)
        return made if self.batch_first else made.transpose(0, 1), weights

    def _mask(
        self,
        key_padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        batch: int,
        queries: int,
        length: int,
        added: int,
        like: Tensor,
        alone: bool,
    ) -> Tensor | None:
        """Both masks as numbers that are added to the scores, (batch, heads or 1, queries, keys)."""

        def numbers(mask: Tensor) -> Tensor:
            if mask.dtype.name != "bool":
                return mask.to(dtype=like.dtype)
            return zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, float("-inf"))

        made: Tensor | None = None
        if attn_mask is not None:
            whole = attn_mask.shape in ((batch * self.num_heads, queries, length),)
            if not whole and attn_mask.shape != (queries, length):
                raise ValueError(
                    f"MultiheadAttention: expected `attn_mask` of shape {(queries, length)} or "
                    f"{(batch * self.num_heads, queries, length)}, got {tuple(attn_mask.shape)}"
                )
            sizes = (batch, self.num_heads, queries, length) if whole else (1, 1, queries, length)
            made = numbers(attn_mask).reshape(sizes)
        if key_padding_mask is not None:
            padding = key_padding_mask.unsqueeze(0) if alone and key_padding_mask.ndim == 1 else key_padding_mask
            if padding.shape != (batch, length):
                raise ValueError(
                    f"MultiheadAttention: expected `key_padding_mask` of shape {(batch, length)}, got {tuple(padding.shape)}"
                )
            padded = numbers(padding).reshape(batch, 1, 1, length)
            made = padded if made is None else made + padded
        return made if made is None or not added else F.pad(made, (0, added))

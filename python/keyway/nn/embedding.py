"""Tables of vectors."""

from __future__ import annotations

from typing import Any

from .._keyway import Tensor, empty
from ..autograd import no_grad
from . import functional as F
from .init import normal_
from .module import Module, Parameter, changed


class Embedding(Module):
    """A table of vectors, one for each index, initialised from the normal distribution."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if max_norm is not None or scale_grad_by_freq:
            raise NotImplementedError("Embedding: `max_norm` and `scale_grad_by_freq` are not supported")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: expected `padding_idx` to be a row of {num_embeddings}, got {padding_idx}")
        self.num_embeddings, self.embedding_dim, self.sparse = num_embeddings, embedding_dim, sparse
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else padding_idx + num_embeddings
        if _weight is None:
            self.weight = Parameter(empty(num_embeddings, embedding_dim))
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)
        self._place(device, dtype)

    def reset_parameters(self) -> None:
        """Sets the weight to new initial values."""
        normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, sparse: bool = False
    ) -> Embedding:
        """A module with this table, which is not trained if ``freeze``."""
        rows, columns = embeddings.shape
        made = cls(rows, columns, padding_idx, sparse=sparse, _weight=embeddings)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, sparse=self.sparse)

    def extra_repr(self) -> str:
        options = changed(padding_idx=(self.padding_idx, None), sparse=(self.sparse, False))
        return f"{self.num_embeddings}, {self.embedding_dim}{options}"


class EmbeddingBag(Module):
    """Sums, means or maxima of the vectors of bags of indices."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if max_norm is not None or scale_grad_by_freq or sparse:
            raise NotImplementedError("EmbeddingBag: `max_norm`, `scale_grad_by_freq` and `sparse` are not supported")
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        weight = normal_(empty(num_embeddings, embedding_dim)) if _weight is None else _weight
        if padding_idx is not None and _weight is None:
            weight[padding_idx] = 0.0
        self.weight = Parameter(weight)
        self._place(device, dtype)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

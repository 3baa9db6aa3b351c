"""Losses."""

from __future__ import annotations

from typing import Any

from .._keyway import Tensor
from . import functional as F
from .module import Module
from .of_function import OfFunction


class _Loss(OfFunction):
    """A loss by the function of its name, with a reduction: ``mean``, ``sum`` or ``none``."""

    def __init__(self, *values: Any, reduction: str = "mean", **named: Any) -> None:
        name = type(self).__name__
        F._refuse_former(name, named.pop("size_average", None), named.pop("reduce", None))
        super().__init__(*values, **named)
        kinds = ("none", "mean", "sum", "batchmean") if self._function == "kl_div" else ("none", "mean", "sum")
        if reduction not in kinds:
            raise ValueError(f"{name}: expected `reduction` to be one of {', '.join(kinds)}, got {reduction}")
        self.reduction = reduction

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "reduction": self.reduction}

    def extra_repr(self) -> str:
        return f"reduction={self.reduction}"


class L1Loss(_Loss):
    """The absolute differences."""

    _function = "l1_loss"


class MSELoss(_Loss):
    """The squared differences."""

    _function = "mse_loss"


class SmoothL1Loss(_Loss):
    """Squares of differences below ``beta``, absolute values of others (Girshick 2015)."""

    _function = "smooth_l1_loss"
    _options = {"beta": 1.0}


class HuberLoss(_Loss):
    """Squares of differences below ``delta``, absolute values of others (Huber 1964)."""

    _function = "huber_loss"
    _options = {"delta": 1.0}


class CrossEntropyLoss(_Loss):
    """``-log(softmax(x))[target]``, or the mean of ``-log(softmax(x))`` weighted by the probabilities of the target."""

    _function = "cross_entropy"
    _options = {"weight": None, "ignore_index": -100, "label_smoothing": 0.0}
    _tensors = ("weight",)


class NLLLoss(_Loss):
    """Minus the logarithm of the probability of the target's class, from logarithms of probabilities."""

    _function = "nll_loss"
    _options = {"weight": None, "ignore_index": -100}
    _tensors = ("weight",)


class BCELoss(_Loss):
    """The binary cross entropy of probabilities."""

    _function = "binary_cross_entropy"
    _options = {"weight": None}
    _tensors = ("weight",)


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of logits."""

    _function = "binary_cross_entropy_with_logits"
    _options = {"weight": None, "pos_weight": None}
    _tensors = ("weight", "pos_weight")


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of a target from logarithms of probabilities."""

    _function = "kl_div"
    _options = {"log_target": False}


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts by the Poisson distribution."""

    _function = "poisson_nll_loss"
    _options = {"log_input": True, "full": False, "eps": 1e-8}


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood by normal distributions; the third input has their variances."""

    _function = "gaussian_nll_loss"
    _options = {"full": False, "eps": 1e-6}


class HingeEmbeddingLoss(_Loss):
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1."""

    _function = "hinge_embedding_loss"
    _options = {"margin": 1.0}


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``."""

    _function = "soft_margin_loss"


class MultiMarginLoss(_Loss):
    """The hinge loss of several classes."""

    _function = "multi_margin_loss"
    _options = {"p": 1, "margin": 1.0, "weight": None}
    _tensors = ("weight",)


class MarginRankingLoss(_Loss):
    """``max(0, -target * (input1 - input2) + margin)``."""

    _function = "margin_ranking_loss"
    _options = {"margin": 0.0}


class CosineEmbeddingLoss(_Loss):
    """``1 - cos(x1, x2)`` where the target is 1, ``max(0, cos(x1, x2) - margin)`` where it is -1."""

    _function = "cosine_embedding_loss"
    _options = {"margin": 0.0}


class TripletMarginLoss(_Loss):
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``, with norms of order ``p``."""

    _function = "triplet_margin_loss"
    _options = {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False}


class CTCLoss(Module):
    """The connectionist temporal classification loss (Graves et al. 2006)."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )

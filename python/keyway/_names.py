"""Second names of functions and methods, those of PyTorch and NumPy."""

from __future__ import annotations

from typing import Any

from ._keyway import Tensor

# Second names by the name of the function or method.
ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "argwhere": "nonzero",
    "concat": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "inverse": "inv",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "pinverse": "pinv",
    "row_stack": "vstack",
    "subtract": "sub",
    "trapz": "trapezoid",
    "true_divide": "div",
}
# Functions of `nn.functional` that PyTorch has in its main namespace too.
OF_LAYERS = (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "bilinear", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "dropout", "hardshrink",
    "hinge_embedding_loss", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "poisson_nll_loss", "threshold",
    "triplet_margin_loss",
)


def of_methods() -> dict[str, str]:
    """The second names of methods, those in place too."""
    both = ((alias + end, name + end) for alias, name in ALIASES.items() for end in ("", "_"))
    return {alias: name for alias, name in both if hasattr(Tensor, name)}


def of_functions(namespace: dict[str, Any]) -> dict[str, str]:
    """The second names of functions of a namespace."""
    return {alias: name for alias, name in ALIASES.items() if name in namespace}


def install(namespace: dict[str, Any]) -> None:
    """Adds the second names to ``Tensor`` and to ``namespace``."""
    for alias, name in of_methods().items():
        setattr(Tensor, alias, getattr(Tensor, name))
    for alias, name in of_functions(namespace).items():
        namespace[alias] = namespace[name]

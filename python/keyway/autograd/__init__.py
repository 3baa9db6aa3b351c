"""Gradients: ``grad`` and ``backward``, functions with a derivative of their own, modes, and checks of derivatives."""

from .._keyway import grad, is_grad_enabled, is_inference_mode_enabled
from . import functional
from .backward import backward
from .function import Function, once_differentiable
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .modes import detect_anomaly, enable_grad, inference_mode, no_grad, set_detect_anomaly, set_grad_enabled

__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]

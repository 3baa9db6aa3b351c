"""Aids for the training of modules."""

from . import rnn
from .gradients import clip_grad_norm_, clip_grad_value_, parameters_to_vector, vector_to_parameters

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "rnn", "vector_to_parameters"]

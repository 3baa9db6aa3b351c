"""Activations that are more than a function of each element."""

OPS = {
    "glu": lambda torch, x, dim: torch.nn.functional.glu(x, dim),
    "prelu": lambda torch, x, weight: torch.nn.functional.prelu(x, weight.to(x.dtype)),
}

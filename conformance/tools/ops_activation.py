"""Activations that are more than a function of each element."""

from stepwise import in_f64

OPS = {
    "glu": lambda torch, x, dim: torch.nn.functional.glu(x, dim),
    "glu_backward": in_f64(lambda torch, g, x, dim: torch.ops.aten.glu_backward(g, x, dim)),
    "prelu": lambda torch, x, weight: torch.nn.functional.prelu(x, weight.to(x.dtype)),
}

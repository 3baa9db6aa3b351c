#!/usr/bin/env python3
"""The sweep beside PyTorch, case by case in turn, so that both see the same minutes of a shared machine.

    cargo xtask dist --native
    python benches/sweep/beside_pytorch.py [--gradients [expanded]] [--case PART] [--threads N] [--rounds N] [--again N]
        [--out FILE]

In each round both libraries run a case several times; a round's time is the least of its runs, and a case's ratio is
the median over the rounds of our time over PyTorch's: above 1 means slower. A case that is more than 1.25 times slower is
measured again, and those rounds alone count. The calls are those with which
`conformance/tools` compares results; where such a call does more than the op, a leaner one stands here. With `--gradients`
each call is recorded, and what is timed is the call and the gradients of its tensors: of results whose gradients lie in
memory, or with `expanded` are one element for all, as behind a sum or a mean.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "conformance" / "tools"))
import torch
from compare_with_pytorch import DTYPES, LACKS, Tables, argument

RUNS, RUN_NS = 5, 2_000_000
SLOWER = 1.25
NO_GRADIENT = "no result has a gradient"
# What PyTorch says where it has no derivative.
LACKS = [*LACKS, "is not implemented", "is not differentiable"]
F = torch.nn.functional


def into(method):
    """A random op: fills a new tensor like its argument."""
    return lambda torch, x, *args: method(torch.empty_like(x), *args)


def layer_norm_backward(torch, grad, x, shape, weight, eps):
    """The op takes no mean and deviation from the forward pass, so they are computed here too."""
    aten = torch.ops.aten
    _, mean, deviation = aten.native_layer_norm(x, shape, weight, None, eps)
    return aten.native_layer_norm_backward(grad, x, shape, mean, deviation, weight, torch.zeros_like(weight), [True, True, True])


def channel_norm_backward(torch, grad, x, mean, var, weight, per_sample, eps):
    mean, deviation = mean.flatten(), (var.flatten() + eps).rsqrt()
    return torch.ops.aten.native_batch_norm_backward(grad, x, weight, None, None, mean, deviation, True, eps, [True] * 3)


def rms_norm_backward(torch, grad, x, shape, weight, eps):
    """With the forward pass: PyTorch has no such op on the CPU."""
    leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
    with torch.enable_grad():
        return torch.autograd.grad(torch.nn.functional.rms_norm(leaves[0], shape, leaves[1], eps), leaves, grad)


def group_norm_backward(torch, grad, x, groups, weight, eps):
    """As for `layer_norm_backward`."""
    (batch, channels, *rest), aten = x.shape, torch.ops.aten
    sizes = [batch, channels, rest[0] * rest[1], groups]
    _, mean, deviation = aten.native_group_norm(x, weight, None, *sizes, eps)
    return aten.native_group_norm_backward(grad, x, mean, deviation, weight, *sizes, [True] * 3)


def nll_loss_backward(torch, grad, target, weights, classes, ignored):
    like = torch.empty((len(target), classes), dtype=grad.dtype)
    return torch.ops.aten.nll_loss_backward(grad, like, target, weights, 0, ignored, grad.new_ones(()))


def image_like(grad, sizes):
    """An image of other sizes, in the memory format of a gradient."""
    last = grad.is_contiguous(memory_format=torch.channels_last) and not grad.is_contiguous()
    return torch.empty(sizes, dtype=grad.dtype, memory_format=torch.channels_last if last else torch.contiguous_format)


def conv_input_grad(torch, grad, weight, sizes, stride, padding, dilation, groups):
    like = image_like(grad, [grad.shape[0], weight.shape[1] * groups, *sizes])
    moves = [stride, padding, dilation, False, [0] * len(sizes), groups]
    return torch.ops.aten.convolution_backward(grad, like, weight, None, *moves, [True, False, False])[0]


def conv_weight_grad(torch, grad, x, kernel, stride, padding, dilation, groups):
    like = image_like(grad, [grad.shape[1], x.shape[1] // groups, *kernel])
    moves = [stride, padding, dilation, False, [0] * len(kernel), groups]
    return torch.ops.aten.convolution_backward(grad, x, like, None, *moves, [False, True, False])[1]


def avg_pool_backward(torch, grad, sizes, *options):
    return torch.ops.aten.avg_pool2d_backward(grad, image_like(grad, [*grad.shape[:2], *sizes]), *options)


def max_pool_backward(torch, grad, indices, sizes):
    """The op takes no window, so the one of half the size stands here, whose indices are any."""
    like = image_like(grad, [*grad.shape[:2], *sizes])
    window = [[2, 2], [2, 2], [0, 0], [1, 1], False]
    return torch.ops.aten.max_pool2d_with_indices_backward(grad, like, *window, indices)


def adaptive_avg_pool_backward(torch, grad, sizes):
    return torch.ops.aten._adaptive_avg_pool2d_backward(grad, image_like(grad, [*grad.shape[:2], *sizes]))


def grid_sample_grad(torch, grad, x, grid, wanted):
    return torch.ops.aten.grid_sampler_2d_backward(grad, x, grid, 0, 0, False, wanted)


def interpolate_backward(torch, grad, sizes, mode, align, scales):
    return torch.ops.aten.upsample_bilinear2d_backward(
        grad, list(grad.shape[2:]), [*grad.shape[:2], *sizes], align, *(scales or [None, None]))


def along(method):
    """A method whose second argument is the dimension."""
    return lambda torch, x, dim: getattr(torch, method)(x, dim)


LEAN = {
    "cummax": along("cummax"),
    "cummin": along("cummin"),
    "logcumsumexp": along("logcumsumexp"),
    "digamma": lambda torch, x: torch.digamma(x),
    "erfinv": lambda torch, x: torch.erfinv(x),
    "lgamma": lambda torch, x: torch.lgamma(x),
    "polygamma": lambda torch, x, n: torch.polygamma(n, x),
    "nextafter": lambda torch, a, b: torch.nextafter(a, b),
    "masked_scatter": lambda torch, x, mask, source: x.masked_scatter(mask, source),
    "multinomial": lambda torch, p, count, replacement, *_: torch.multinomial(p, count, replacement),
    "scatter_reduce": lambda torch, x, dim, index, src, reduce, own:
        x.scatter_reduce(dim, index, src, reduce, include_self=own),
    "index_reduce": lambda torch, x, dim, index, src, reduce, own:
        x.index_reduce(dim, index, src, reduce, include_self=own),
    "adaptive_avg_pool_backward": adaptive_avg_pool_backward,
    "avg_pool_backward": avg_pool_backward,
    "bernoulli": into(lambda new, p, *_: new.bernoulli_(p)),
    "clone": lambda torch, x, form: x.clone(memory_format=torch.contiguous_format),
    "conv_input_grad": conv_input_grad,
    "conv_weight_grad": conv_weight_grad,
    "copy": lambda torch, x, source: torch.empty_like(x).copy_(source),
    "dropout": lambda torch, x, p, *_: F.dropout(x, p),
    "exponential": into(lambda new, rate, *_: new.exponential_(rate)),
    "fill": lambda torch, x, value: torch.full_like(x, value),
    "grid_sample_grid_grad": lambda torch, grad, x, grid, *_: grid_sample_grad(torch, grad, x, grid, [False, True])[1],
    "grid_sample_input_grad": lambda torch, grad, grid, sizes, *_:
        grid_sample_grad(torch, grad, image_like(grad, [*grad.shape[:2], *sizes]), grid, [True, False])[0],
    "interpolate_backward": interpolate_backward,
    "floor_divide": lambda torch, a, b: torch.floor_divide(a, b),
    "div": lambda torch, a, b, mode: torch.div(a, b, rounding_mode=mode),
    "fmod": lambda torch, a, b: torch.fmod(a, b),
    "channel_norm_backward": channel_norm_backward,
    "group_norm_backward": group_norm_backward,
    "layer_norm_backward": layer_norm_backward,
    "rms_norm_backward": rms_norm_backward,
    "max_pool_backward": max_pool_backward,
    "nll_loss_backward": nll_loss_backward,
    "normal": into(lambda new, mean, std, *_: new.normal_(mean, std)),
    "poisson": lambda torch, rates, *_: torch.poisson(rates),
    "random_int": into(lambda new, low, high, *_: new.random_(low, high)),
    "remainder": lambda torch, a, b: torch.remainder(a, b),
    # Both libraries' methods return the argument itself where the dtype is the same; the op copies.
    "to_dtype": lambda torch, a, dtype: a.to(dtype, copy=True),
    "uniform": into(lambda new, low, high, *_: new.uniform_(low, high)),
}


def tensor(spec):
    sizes, dtype = list(spec["sizes"]), DTYPES[spec["dtype"]]
    if spec["lie"] == "transposed":
        sizes[-2], sizes[-1] = sizes[-1], sizes[-2]
    elif spec["lie"] == "expanded":
        sizes[-2] = 1
    values = torch.rand(sizes, dtype=torch.float64) * (spec["high"] - spec["low"]) + spec["low"]
    values = values >= 1 if dtype == torch.bool else values.to(dtype)
    if spec["lie"] == "channels_last":
        return values.contiguous(memory_format=torch.channels_last)
    if spec["lie"] == "transposed":
        return values.transpose(-2, -1)
    return values.expand(spec["sizes"]) if spec["lie"] == "expanded" else values


def tested(value, described, dtype):
    """The tensors of the tested dtype in an argument, from now on with gradients."""
    if "tensor" in (described or {}):
        pairs = [(value, described["tensor"])]
    else:
        pairs = zip(value, described["tensors"]) if "tensors" in (described or {}) else []
    return [t.requires_grad_(True) for t, spec in pairs if spec["dtype"] == dtype]


class Peer:
    """PyTorch's side of a case, made once for all rounds."""

    def __init__(self, case, ops):
        call = LEAN.get(case["op"]) or ops[case["op"]]
        self.call = getattr(call, "plain", call)
        self.args = [argument(a, tensor) for a in case["args"]]
        self.gradients = case["gradients"]
        if self.gradients:
            self.wanted = [t for value, a in zip(self.args, case["args"]) for t in tested(value, a, case["dtype"])]
            expanded = self.gradients == "expanded"
            self.starts = [
                torch.ones((), dtype=t.dtype).expand_as(t) if expanded else torch.ones_like(t) for t in self.recorded()
            ]
        self.calls = 1
        self.run()
        self.calls = max(1, min(100_000, RUN_NS // max(1, self.run())))

    def run(self):
        call, args, times = self.call, self.args, range(self.calls)
        begin = time.perf_counter_ns()
        for _ in times:
            if self.gradients:
                torch.autograd.grad(self.recorded(), self.wanted, self.starts, allow_unused=True)
            else:
                call(torch, *args)
        return (time.perf_counter_ns() - begin) // self.calls

    def recorded(self):
        """The results of a call that have a gradient."""
        made = self.call(torch, *self.args)
        made = made if isinstance(made, (tuple, list)) else [made]
        return [t for t in made if isinstance(t, torch.Tensor) and t.requires_grad]

    def least(self):
        return min(self.run() for _ in range(RUNS))


class Ours:
    """The program with the sweep's cases."""

    PROGRAM = ["cargo", "bench", "--quiet", "--package", "keyway-benches", "--bench", "sweep", "--"]

    def __init__(self, threads):
        environment = {"KEYWAY_BACKEND_PATH": str(ROOT / "dist" / "backends"), **os.environ,
                       "KEYWAY_BENCH_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
        run = {"cwd": ROOT, "env": environment, "text": True, "stdout": subprocess.PIPE}
        listed = subprocess.run([*self.PROGRAM, "--list"], check=True, **run)
        self.cases = [json.loads(line) for line in listed.stdout.splitlines()]
        self.program = subprocess.Popen([*self.PROGRAM, "--serve"], stdin=subprocess.PIPE, **run)

    def measure(self, case):
        print(case["case"], file=self.program.stdin, flush=True)
        return json.loads(self.program.stdout.readline())


def compare(case, ours, ops, rounds):
    """A line: both libraries' least times and the ratio, or why there is none."""
    line = {"case": case["case"]}
    first = ours.measure(case)
    if first.get("error") == NO_GRADIENT:
        return {**line, "none": first["error"]}
    if "error" in first:
        return {**line, "error": first["error"]}
    try:
        peer = Peer(case, ops)
    except Exception as error:
        reason = str(error).split("\n")[0]
        kind = "none" if isinstance(error, KeyError) or any(text in reason for text in LACKS) else "error"
        return {**line, "keyway_ns": first["min_ns"], kind: f"PyTorch: {reason}"}
    pairs = [(ours.measure(case)["min_ns"], peer.least()) for _ in range(rounds)]
    ratio = statistics.median(a / b for a, b in pairs)
    return {**line, "keyway_ns": min(a for a, _ in pairs), "torch_ns": min(b for _, b in pairs), "ratio": round(ratio, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gradients", nargs="?", const="dense", choices=["dense", "expanded"],
        help="the cases with gradients instead: of results' gradients in memory, or expanded as those of a sum")
    parser.add_argument("--case", default="", help="only cases whose id holds this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--again", type=int, default=5, help="rounds of those cases that the first rounds find slower")
    parser.add_argument("--out", type=pathlib.Path, help="a file for one JSON line a case")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(options.gradients is not None)
    ours, ops = Ours(options.threads), Tables().ops
    out = options.out.open("w") if options.out else None
    lines = []
    for case in ours.cases:
        if options.case in case["case"] and options.gradients == case["gradients"]:
            line = compare(case, ours, ops, options.rounds)
            if line.get("ratio", 0) > SLOWER and options.again:
                line = compare(case, ours, ops, options.again)
            lines.append(line)
            if out:
                print(json.dumps(line), file=out, flush=True)
    summary(lines)


def summary(lines):
    measured = sorted((line for line in lines if "ratio" in line), key=lambda line: -line["ratio"])
    bounds = [("more than 2 times slower", 2, float("inf")), ("1.25 to 2 times slower", SLOWER, 2),
              ("within 25 %", 0.8, SLOWER), ("1.25 to 4 times faster", 0.25, 0.8), ("more than that", 0, 0.25)]
    for text, low, high in bounds:
        print(f"{text:26}{sum(low < line['ratio'] <= high for line in measured):6}")
    print(f"{'no counterpart':26}{sum('none' in line for line in lines):6}")
    for line in measured:
        if line["ratio"] > SLOWER:
            print(f"{line['ratio']:6.2f}  {line['case']:44}{line['keyway_ns']:>14,.0f}{line['torch_ns']:>14,.0f} ns")
    for line in lines:
        if "error" in line:
            print(f"error  {line['case']}: {line['error']}")


if __name__ == "__main__":
    main()

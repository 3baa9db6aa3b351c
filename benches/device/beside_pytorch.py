#!/usr/bin/env python3
"""The cases of a device beside PyTorch, in turn, so that both see the same minutes of the machine.

    python benches/device/beside_pytorch.py PROGRAM DEVICE [--case PART] [--rounds N] [--small] [--out FILE]

PROGRAM is the built bench `device` (`cargo bench --package keyway-benches --bench device --no-run`, or the one that
`cargo xtask gpu` stages). A case's ratio is the median over the rounds of our time over PyTorch's: above 1 means slower.
PyTorch runs eagerly, f32 products and convolutions in f32 (`allow_tf32` off).
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

import torch

F = torch.nn.functional
RUNS, RUN_NS = 7, 20_000_000
LARGE = dict(n=100_000_000, side=8192, product=4096, heads=16, length=2048, images=32, image=56)
SMALL = dict(n=10_000, side=64, product=64, heads=2, length=64, images=2, image=8)
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def mlp_step(device):
    linear = torch.nn.Linear
    relu = torch.nn.ReLU()
    model = torch.nn.Sequential(linear(784, 512), relu, linear(512, 512), relu, linear(512, 10)).to(device)
    x, y = torch.rand(128, 784, device=device), torch.randint(0, 10, (128,), device=device)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        sgd.zero_grad()
        F.cross_entropy(model(x), y).backward()
        sgd.step()

    return step


def captured(step):
    """The replay of a step, which is captured after a few steps on a stream beside the default one, as PyTorch's manual says."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def rounded(product):
    """A product whose f32 operands may be rounded to TF32."""
    def call():
        torch.backends.cuda.matmul.allow_tf32 = True
        product()
        torch.backends.cuda.matmul.allow_tf32 = False

    return call


def conv(new, sizes, memory_format=torch.contiguous_format, backward=False):
    side = sizes["image"]
    x = new(sizes["images"], 64, side, side).to(memory_format=memory_format).requires_grad_(backward)
    w = new(64, 64, 3, 3).to(memory_format=memory_format).requires_grad_(backward)
    if not backward:
        return lambda: F.conv2d(x, w, padding=1)
    b, grad = new(64).requires_grad_(), new(*x.shape).to(memory_format=memory_format)
    return lambda: torch.autograd.grad(F.conv2d(x, w, b, padding=1), (x, w, b), grad)


def batch_norm(new, sizes):
    x, one = new(sizes["images"], 64, sizes["image"], sizes["image"]), torch.ones_like(new(64))
    mean, var = torch.zeros_like(one), torch.ones_like(one)
    return lambda: F.batch_norm(x, mean, var, one, one, True, 0.1, 1e-5)


def attention(new, sizes, causal=False, backward=False, width=64):
    shape = (4, sizes["heads"] * 64 // width, sizes["length"], width)
    q, k, v = (new(*shape).requires_grad_(backward) for _ in range(3))
    grad = torch.ones_like(q)

    def call():
        with torch.set_grad_enabled(backward):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            if backward:
                torch.autograd.grad(out, (q, k, v), grad)

    return call


def max_pool(new, sizes):
    x = new(sizes["images"], 64, sizes["image"], sizes["image"])
    return lambda: F.max_pool2d(x, 2)


def of_matrix(columns, call):
    """A call of a matrix as large as the others, with this many columns."""
    def make(new, sizes):
        width = columns or sizes["side"]
        a = new(sizes["side"] ** 2 // width, width)
        return lambda: call(a)

    return make


def beside(call):
    """A call of a matrix with a row as wide, and indices of its rows."""
    def make(new, sizes):
        width = sizes["side"]
        a, b = new(width * width // 512, 512), new(width)
        index = torch.randint(0, a.shape[0], (a.shape[0],), device=a.device)
        wide = a.view(width, width)
        return lambda: call(wide, b, a, index)

    return make


def layer_norm_short(new, sizes):
    a, weight = new(sizes["side"] ** 2 // 512, 512), torch.ones_like(new(512))
    return lambda: F.layer_norm(a, (512,), weight, weight)


def cat(new, sizes):
    a, b = (new(sizes["side"], sizes["side"] // 2) for _ in range(2))
    return lambda: torch.cat((a, b), 1)


def of_line(rows, call):
    def make(new, sizes):
        a = new(*((sizes["side"] * 128,) if rows is None else (rows, sizes["side"])))
        return lambda: call(a)

    return make


def gradients(leaves, call):
    """What a call has for its leaves, from ones."""
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    with torch.no_grad():
        grad = torch.ones_like(call(*leaves))
    return lambda: torch.autograd.grad(call(*leaves), leaves, grad)


def of_images(memory_format, call, channels=0, backward=True):
    def make(new, sizes):
        x = new(sizes["images"], 64, sizes["image"], sizes["image"]).contiguous(memory_format=memory_format)
        operands = [x] + [torch.ones_like(new(64)) for _ in range(channels)]
        return gradients(operands, call) if backward else lambda: call(*operands)

    return make


def of_rows(vectors, call, backward=True):
    def make(new, sizes):
        operands = [new(sizes["side"] ** 2 // 512, 512)] + [torch.ones_like(new(512)) for _ in range(vectors)]
        return gradients(operands, call) if backward else lambda: call(*operands)

    return make


def normed(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, True, 0.1, 1e-5)


def pooled(x):
    return F.max_pool2d(x, 3, 2, 1)


MORE = {
    "batch_norm_last": of_images(torch.channels_last, normed, 2, backward=False),
    "batch_norm_backward": of_images(torch.contiguous_format, normed, 2),
    "batch_norm_last_backward": of_images(torch.channels_last, normed, 2),
    "max_pool_backward": of_images(torch.contiguous_format, pooled),
    "max_pool_last_backward": of_images(torch.channels_last, pooled),
    "softmax_short_backward": of_rows(0, lambda a: a.softmax(-1)),
    "rms_norm_short": of_rows(1, lambda a, w: F.rms_norm(a, (512,), w, 1e-5), backward=False),
    "rms_norm_short_backward": of_rows(1, lambda a, w: F.rms_norm(a, (512,), w, 1e-5)),
    "layer_norm_short_backward": of_rows(2, lambda a, w, b: F.layer_norm(a, (512,), w, b)),
    "attention_backward.f32": lambda new, sizes: attention(new, sizes, backward=True),
    "cummax": of_matrix(None, lambda a: a.cummax(1)),
    "logcumsumexp": of_matrix(None, lambda a: a.logcumsumexp(1)),
    "var": of_matrix(None, lambda a: a.var()),
    "lgamma": of_matrix(None, lambda a: a.lgamma()),
    "digamma": of_matrix(None, lambda a: a.digamma()),
    "conv": conv,
    "conv_last": lambda new, sizes: conv(new, sizes, torch.channels_last),
    "conv_backward": lambda new, sizes: conv(new, sizes, backward=True),
    "conv_last_backward": lambda new, sizes: conv(new, sizes, torch.channels_last, backward=True),
    "batch_norm": batch_norm,
    "max_pool": max_pool,
    "attention_causal.f16": lambda new, sizes: attention(new, sizes, causal=True),
    "attention_wide.f16": lambda new, sizes: attention(new, sizes, width=128),
    "attention_wide_causal.f16": lambda new, sizes: attention(new, sizes, causal=True, width=128),
    "attention_backward.f16": lambda new, sizes: attention(new, sizes, backward=True),
    "softmax_short": of_matrix(512, lambda a: a.softmax(-1)),
    "layer_norm_short": layer_norm_short,
    "cumsum": of_matrix(None, lambda a: a.cumsum(1)),
    "argmax": of_matrix(None, lambda a: a.argmax(1)),
    "add_broadcast": beside(lambda wide, b, a, index: wide + b),
    "index_select": beside(lambda wide, b, a, index: a.index_select(0, index)),
    "cat": cat,
    "sort": of_line(None, lambda a: a.sort(0)),
    "topk": of_line(128, lambda a: a.topk(10, 1)),
}


def made(name, device, sizes):
    """The call of a case."""
    what, _, last = name.rpartition(".")
    if name in ("launch.mlp_step", "mlp_step"):
        return mlp_step(device)
    if name == "mlp_step_graph":
        return captured(mlp_step(device))
    if name == "mm.tf32":
        return rounded(made("mm.f32", device, sizes))
    if what == "launch":
        a, b, out = (torch.ones(1, device=device) for _ in range(3))
        return (lambda: torch.add(a, b, out=out)) if last == "add_out" else (lambda: torch.add(a, b))
    if name in MORE or what in MORE:
        new = lambda *shape: torch.rand(*shape, device=device, dtype=DTYPES.get(last, torch.float32))
        return MORE[name if name in MORE else what](new, sizes)
    new = lambda *shape: torch.rand(*shape, device=device).to(DTYPES[last])
    n, side, product = sizes["n"], sizes["side"], sizes["product"]
    if what in ("copy", "add", "exp", "sum"):
        a = new(n)
        b = new(n) if what == "add" else None
        return {"copy": a.clone, "add": lambda: a + b, "exp": a.exp, "sum": a.sum}[what]
    if what == "mm":
        a, b = new(product, product), new(product, product)
        return lambda: a @ b
    if what == "attention":
        q, k, v = (new(4, sizes["heads"], sizes["length"], 64) for _ in range(3))
        return lambda: F.scaled_dot_product_attention(q, k, v)
    a = new(side, side)
    weight = torch.ones(side, device=device, dtype=a.dtype)
    turned = a.t()
    return {
        "transpose": lambda: turned.clone(memory_format=torch.contiguous_format),
        "sum_rows": lambda: a.sum(1),
        "sum_columns": lambda: a.sum(0),
        "softmax": lambda: a.softmax(-1),
        "layer_norm": lambda: F.layer_norm(a, (side,), weight, weight),
    }[what]


class Peer:
    """PyTorch's side of a case."""

    def __init__(self, name, device, sizes):
        self.host_alone = name.startswith("launch")
        self.wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
        grad = "mlp" in name or "backward" in name
        with torch.set_grad_enabled(grad):
            self.call, self.grad, self.calls = made(name, device, sizes), grad, 1
        self.run(), self.run()
        self.calls = max(1, min(500 if self.host_alone else 10_000, int(RUN_NS // max(1, self.run()))))

    def run(self):
        with torch.set_grad_enabled(self.grad):
            self.wait()
            begin = time.perf_counter_ns()
            for _ in range(self.calls):
                self.call()
            given = time.perf_counter_ns()
            self.wait()
            end = given if self.host_alone else time.perf_counter_ns()
        return (end - begin) / self.calls

    def median(self):
        return statistics.median(self.run() for _ in range(RUNS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("device")
    parser.add_argument("--case", default="", help="only cases whose name holds this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="small sizes, to try it")
    parser.add_argument("--out", type=pathlib.Path, help="a file for one JSON line a case")
    options = parser.parse_args()

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    ours = [options.program, options.device] + (["--small"] if options.small else [])
    sizes = SMALL if options.small else LARGE
    names = subprocess.run([*ours, "--list"], check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    program = subprocess.Popen([*ours, "--serve"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out = options.out.open("w") if options.out else None

    def measure(name):
        print(name, file=program.stdin, flush=True)
        return json.loads(program.stdout.readline())

    print(f"{'case':24}{'ours':>14}{'PyTorch':>14}{'ratio':>8}{'rate':>12}")
    for name in (name for name in names if options.case in name):
        rounds = []
        for _ in range(options.rounds):
            own = measure(name)
            if "error" in own:
                break
            rounds.append((own["median_ns"], Peer(name, options.device, sizes).median()))
            if options.device.startswith("cuda"):
                torch.cuda.empty_cache()
        if "error" in own:
            line = {"case": name, "error": own["error"]}
            print(f"{name:24}{own['error']}")
        else:
            ratio = statistics.median(a / b for a, b in rounds)
            own_ns, peer_ns = (statistics.median(column) for column in zip(*rounds))
            line = {"case": name, "keyway_ns": own_ns, "torch_ns": peer_ns, "ratio": round(ratio, 3),
                    "unit": own["unit"], "rate": own["rate"]}
            rate = f"{own['rate']:>10.1f} G{own['unit']}/s" if own["unit"] in ("byte", "flop") else ""
            print(f"{name:24}{own_ns:>11,.0f} ns{peer_ns:>11,.0f} ns{ratio:>8.2f}{rate}")
        if out:
            print(json.dumps(line), file=out, flush=True)


if __name__ == "__main__":
    main()

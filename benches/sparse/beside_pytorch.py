#!/usr/bin/env python3
"""A step of an embedding with a sparse gradient beside PyTorch's, in turn, so that both see the same minutes of a shared
machine.

    cargo xtask dist --native
    python benches/sparse/beside_pytorch.py [--case PART] [--threads N] [--rounds N]

A round measures each case once in either library, in a process of its own: the large tables do not fit beside each other. A
case's figure is the median over the rounds of the medians, and the ratio that of our time over PyTorch's. PyTorch's optimizers
are SGD and SparseAdam; ours are SGD and AdamW with `lazy`, which decays the rows too.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS, READ, STEPS = 64, 4096, 32
CASES = [f"sparse.embedding_{optimizer}_{size}" for optimizer in ("sgd", "adam") for size in ("1e5", "1e7")]
SECONDS = 1.5
# As long as criterion's samples are, so that what else the machine does counts alike.
SAMPLE = 0.025
PROGRAM = ["cargo", "bench", "--quiet", "--package", "keyway-benches", "--bench", "keyway", "--"]


def theirs(case, threads):
    """The median time of PyTorch's step in nanoseconds."""
    import torch

    torch.set_num_threads(threads)
    rows = int(float(case.rsplit("_", 1)[1]))
    table = torch.zeros(rows, COLUMNS, requires_grad=True)
    read = [torch.randint(rows, (READ,)) for _ in range(STEPS)]
    grad = torch.rand(READ, COLUMNS)
    optimizer = torch.optim.SGD([table], lr=1e-3) if "sgd" in case else torch.optim.SparseAdam([table])

    def step(nth):
        optimizer.zero_grad()
        torch.nn.functional.embedding(read[nth % STEPS], table, sparse=True).backward(grad)
        optimizer.step()

    times = []
    for nth in range(STEPS):
        step(nth)
    end, nth = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        begin, first = time.perf_counter(), nth
        while time.perf_counter() - begin < SAMPLE:
            step(nth)
            nth += 1
        times.append((time.perf_counter() - begin) * 1e9 / (nth - first))
    return statistics.median(times)


def ours(case, threads, program):
    """The median time of our step in nanoseconds, as criterion measured it."""
    with tempfile.TemporaryDirectory() as folder:
        lines = pathlib.Path(folder) / "lines.jsonl"
        environment = {"KEYWAY_BACKEND_PATH": str(ROOT / "dist" / "backends"), **os.environ,
                       "KEYWAY_BENCH_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads),
                       "CRITERION_HOME": folder, "KEYWAY_BENCH_LINES": str(lines)}
        subprocess.run([*program, case], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        return json.loads(lines.read_text().splitlines()[-1])["median_ns"]


def arguments(doc):
    """What the scripts of this folder are told."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--case", default="", help="only cases whose name holds this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", help="the bench program, where it is built already")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    return parser.parse_args()


def built(options):
    """The command that runs a bench: `cargo bench` says itself that it is one."""
    return [options.program, "--bench"] if options.program else PROGRAM


def main():
    options = arguments(__doc__)
    if options.peer:
        print(theirs(options.peer, options.threads))
        return
    peer = [sys.executable, __file__, "--threads", str(options.threads), "--peer"]
    program = built(options)
    for case in (case for case in CASES if options.case in case):
        pairs = []
        for _ in range(options.rounds):
            run = subprocess.run([*peer, case], check=True, capture_output=True, text=True)
            pairs.append((ours(case, options.threads, program), float(run.stdout)))
        own, other = (statistics.median(times) for times in zip(*pairs))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{case:32}{own / 1e6:10.3f}{other / 1e6:10.3f} ms{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()

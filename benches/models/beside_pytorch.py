#!/usr/bin/env python3
"""ResNet-18 by `keyway bench` and by PyTorch in turn: medians of the rounds' medians, and their ratio.

    cargo xtask dist --native
    python benches/models/beside_pytorch.py [--rounds 5] [--threads 1] [--only TEXT] [--out FILE]

Needs Python with PyTorch. Each round starts `dist/bin/keyway` anew and measures PyTorch in a process of its own, so that neither's
threads and caches are there while the other is measured. A ratio above 1 means that Keyway is slower. `--only` takes those cases
whose name has the text.
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "dist/bin/keyway"
WARM_UP = 2


def cases():
    """(name, batch, dtype, memory format, whether steps of a training)"""
    kinds = [("pass", 1, False), ("step", 4, True)]
    formats, dtypes = ["channels_last", "contiguous"], ["f32", "bf16"]
    for (kind, batch, train), dtype, memory_format in itertools.product(kinds, dtypes, formats):
        yield f"{kind} of {batch}, {dtype}, {memory_format}", batch, dtype, memory_format, train


def keyway(case, options):
    """Seconds of a pass or step, the median of the measured ones."""
    _, batch, dtype, memory_format, train = case
    with tempfile.NamedTemporaryFile(suffix=".json") as results:
        command = [PROGRAM, "bench", "--model", "resnet18", "--batch", batch, "--dtype", dtype, "--memory-format",
                   memory_format, "--threads", options.threads, "--rounds", options.samples, "--json", results.name]
        command += ["--train"] if train else []
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        return statistics.median(json.load(open(results.name))["seconds"])


def pytorch(case, options):
    """The same of PyTorch, which a process of its own measures."""
    command = [sys.executable, __file__, "--samples", options.samples, "--threads", options.threads, "--measure", case[0]]
    return float(subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout)


def network(torch):
    """torchvision's ResNet-18, of PyTorch alone."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
            self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
            self.relu, self.downsample = nn.ReLU(inplace=True), None
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            y += x if self.downsample is None else self.downsample(x)
            return self.relu(y)

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    for inputs, outputs in zip(widths, widths[1:]):
        layers.append(Block(inputs, outputs, 1 if inputs == outputs else 2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def measure(name, options):
    """Prints PyTorch's seconds."""
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    _, batch, dtype, memory_format, train = next(case for case in cases() if case[0] == name)
    layout = {"memory_format": torch.channels_last if memory_format == "channels_last" else torch.contiguous_format}
    number = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    model = network(torch).to(dtype=number, **layout)
    images = torch.randn(batch, 3, 224, 224).to(dtype=number, **layout)
    targets = torch.randint(1000, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), targets)
        loss.backward()
        optimizer.step()
        loss.item()

    def forward():
        with torch.inference_mode():
            model(images)

    model.train(train)
    seconds = []
    for _ in range(WARM_UP + options.samples):
        begun = time.perf_counter()
        (step if train else forward)()
        seconds.append(time.perf_counter() - begun)
    print(statistics.median(seconds[WARM_UP:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each side is measured in turn")
    parser.add_argument("--samples", type=int, default=10, help="passes or steps of a round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--out", metavar="FILE", help="write the table there too")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options)
        return
    lines = ["| case | keyway | PyTorch | ratio |", "|---|---|---|---|"]
    print("\n".join(lines))
    for case in cases():
        if options.only not in case[0]:
            continue
        rounds = [(keyway(case, options), pytorch(case, options)) for _ in range(options.rounds)]
        ours, theirs = (statistics.median(side) for side in zip(*rounds))
        lines.append(f"| {case[0]} | {ours * 1e3:.1f} ms | {theirs * 1e3:.1f} ms | {ours / theirs:.2f} |")
        print(lines[-1], flush=True)
    if options.out:
        pathlib.Path(options.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

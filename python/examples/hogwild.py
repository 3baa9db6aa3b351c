"""Hogwild (F. Niu, B. Recht, C. Re, S. Wright, "Hogwild!", 2011): processes train the same parameters without locks.

The parameters are in shared memory; each process has its own gradients and its own part of the samples.

    python hogwild.py
    python hogwild.py --processes 4 --epochs 20
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import keyway as kw
from keyway import multiprocessing as mp
from keyway import nn, optim
from keyway.data import DataLoader, Subset, digits

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def train(rank: int, processes: int, model: nn.Module, epochs: int, progress: bool = False) -> None:
    """Trains the model's parameters on every `processes`-th sample, from sample `rank` on."""
    data = digits()
    part = Subset(data, range(rank, len(data), processes))
    loader = DataLoader(part, 32, shuffle=True, seed=rank)
    optimizer = optim.SGD(model.parameters(), lr=0.2)
    steps = range(epochs)
    for _ in tqdm(steps, unit="epoch") if progress and tqdm else steps:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def accuracy(model: nn.Module) -> float:
    """The part of the test images that the model classifies correctly."""
    images, labels = digits(train=False).tensors
    with kw.no_grad():
        return float((model(images).argmax(1) == labels).float().mean().item())


def hogwild(processes: int, epochs: int, method: str = "spawn", progress: bool = False) -> dict[str, Any]:
    """Trains with several processes, and returns accuracy and seconds."""
    kw.manual_seed(0)
    model = network().share_memory()
    context, start = mp.get_context(method), time.perf_counter()
    members = [
        context.Process(target=train, args=(rank, processes, model, epochs, progress and rank == 0)) for rank in range(processes)
    ]
    for member in members:
        member.start()
    for member in members:
        member.join()
    if any(member.exitcode != 0 for member in members):
        raise RuntimeError(f"processes ended with {[member.exitcode for member in members]}")
    return {"accuracy": accuracy(model), "seconds": time.perf_counter() - start}


def alone(epochs: int) -> float:
    """The accuracy of one process."""
    kw.manual_seed(0)
    model = network()
    train(0, 1, model, epochs)
    return accuracy(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()
    results = hogwild(options.processes, options.epochs, progress=True)
    print(f"{options.processes} processes: accuracy {results['accuracy']:.4f} in {results['seconds']:.1f} s")
    print(f"one process: accuracy {alone(options.epochs):.4f}")


if __name__ == "__main__":
    main()

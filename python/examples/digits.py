"""Trains a multilayer perceptron on the handwritten digits, as `keyway train digits` does: the same data, initial weights, order of
the samples and optimiser, so the same weights to the last bit.

    python digits.py
    python digits.py --epochs 5 --workers 2 --json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from typing import Any

import keyway as kw
from keyway import nn, optim
from keyway.data import DataLoader, digits

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None

LAYERS = (64, 128, 64, 10)
# Mixed into the seed of the weights: the seed itself decides the orders of the samples.
OF_WEIGHTS = 0x9E37_79B9_7F4A_7C15


def uniform(bound: float, *shape: int) -> Any:
    """A parameter of values between `-bound` and `bound`."""
    return nn.Parameter(((kw.rand(*shape).double() * 2.0 - 1.0) * bound).float())


class Mlp(nn.Module):
    """Fully connected layers with ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        slope = math.sqrt(5.0)
        for index, (inputs, outputs) in enumerate(zip(LAYERS, LAYERS[1:])):
            # The values are drawn as `nn::Linear::new` of the Rust side draws them.
            weight = uniform(math.sqrt(6.0 / ((1.0 + slope * slope) * inputs)), outputs, inputs)
            self.register_parameter(f"weight{index}", weight)
            self.register_parameter(f"bias{index}", uniform(1.0 / math.sqrt(inputs), outputs))

    def forward(self, x: kw.Tensor) -> kw.Tensor:
        last = len(LAYERS) - 2
        for index in range(last + 1):
            x = nn.functional.linear(x, getattr(self, f"weight{index}"), getattr(self, f"bias{index}"))
            if index < last:
                x = x.relu()
        return x


def correct(model: nn.Module) -> int:
    """The number of test images that the model classifies correctly."""
    with kw.no_grad():
        return sum(int((model(x).argmax(1) == y).sum().item()) for x, y in DataLoader(digits(train=False), 500))


def train(epochs: int, seed: int = 0, lr: float = 0.1, batch: int = 32, workers: int = 0, progress: bool = False) -> dict[str, Any]:
    """Trains, and returns accuracy, losses and the hash of the weights."""
    kw.manual_seed(seed ^ OF_WEIGHTS)
    model = Mlp()
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-3)
    loader = DataLoader(digits(), batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0, seed=seed)
    losses = []
    for epoch in tqdm(range(epochs), unit="epoch") if progress and tqdm else range(epochs):
        # Half a cosine from the first rate to 0.
        optimizer.param_groups[0]["lr"] = lr * (1.0 + math.cos(math.pi * (epoch / epochs))) / 2.0
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        losses.append(total / len(loader.dataset))
    weights = hashlib.sha256()
    for parameter in model.parameters():
        weights.update(bytes(memoryview(parameter.detach())))
    right = correct(model)
    return {
        "test_right": right,
        "test_accuracy": right / 360,
        "train_loss": losses,
        "weights_sha256": weights.hexdigest(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0, help="processes that make the batches; the weights do not depend on it")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    results = train(options.epochs, options.seed, workers=options.workers, progress=not options.json)
    if options.json:
        print(json.dumps(results))
    else:
        print(f"test accuracy {results['test_accuracy']:.4f} ({results['test_right']} of 360), loss {results['train_loss'][-1]:.4f}")
        print(f"weights {results['weights_sha256']}")


if __name__ == "__main__":
    main()

"""Time from a finished batch in a worker's queue to the consumer, beside PyTorch's `DataLoader`, as lines of JSON.

All batches of an epoch are made before the first is read, so that no worker runs beside the consumer; the two loaders take turns.
Each batch has 64 rows of 784 floats, and 64 labels.

    python benches/loader/beside_pytorch.py
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import keyway as kw
import torch
from keyway import data

BATCHES, ROWS, COLUMNS, WORKERS, ROUNDS = 200, 64, 784, 2, 5
# Seconds in which the workers make all batches.
MADE = 3.0


class Keyway(data.Dataset):
    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: int) -> Any:
        return kw.ones(ROWS, COLUMNS), kw.arange(ROWS)


class PyTorch(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: int) -> Any:
        return torch.ones(ROWS, COLUMNS), torch.arange(ROWS)


def times(loader: Any) -> list[float]:
    """Microseconds of the consumer for each batch."""
    batches, found = iter(loader), []
    time.sleep(MADE)
    for _ in range(BATCHES):
        start = time.perf_counter()
        batch = next(batches)
        found.append(1e6 * (time.perf_counter() - start))
        del batch
    return found


def main() -> None:
    options: dict[str, Any] = {"batch_size": None, "num_workers": WORKERS, "prefetch_factor": BATCHES // WORKERS}
    found: dict[str, list[float]] = {"keyway": [], "torch": []}
    for _ in range(ROUNDS):
        found["keyway"] += times(data.DataLoader(Keyway(), **options))
        found["torch"] += times(torch.utils.data.DataLoader(PyTorch(), **options))
    for name, values in found.items():
        ordered = sorted(values)
        line = {
            "loader": name,
            "median_us": round(statistics.median(ordered), 1),
            "p90_us": round(ordered[len(ordered) * 9 // 10], 1),
            "min_us": round(ordered[0], 1),
            "batches": len(ordered),
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()

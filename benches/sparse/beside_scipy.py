#!/usr/bin/env python3
"""Ops on sparse matrices beside SciPy's and PyTorch's, in turn, so that all see the same minutes of a shared machine.

    cargo xtask dist --native
    python benches/sparse/beside_scipy.py [--case PART] [--threads N] [--rounds N]

A round measures each case once in each library, in a process of its own. A case's figures are the medians over the rounds of the
medians, and the ratio the median of the rounds' ratios of our time over the least of the others'. Matrices are 10^4 by 10^4 with
10^6 entries in f32 (10^5 for the product of two). SciPy coalesces, adds and multiplies by compressed rows; PyTorch's products
with a dense matrix are of compressed rows where entries are in order.
"""

import statistics
import subprocess
import sys
import time

from beside_pytorch import arguments, built, ours

SIDE, ENTRIES = 10_000, 1_000_000
OPS = ("coalesce", "softmax", "add", "mm_sparse", "csr_mm_64", "mm_64", "unsorted_mm_64", "dense_grad_64", "values_grad_64")
CASES = [f"sparse.{op}" for op in OPS]
SECONDS = 2.0


def matrix(distinct, times):
    """Rows, columns and values of random entries, each place `times` times, in random order."""
    import numpy as np

    random = np.random.default_rng()
    places = random.permutation(np.tile(random.integers(0, SIDE * SIDE, distinct), times))
    return places // SIDE, places % SIDE, random.standard_normal(len(places)).astype(np.float32)


def scipys(case):
    """SciPy's call; none where it has none."""
    import numpy as np
    import scipy.sparse as sp

    def coo(distinct, times=1):
        rows, columns, values = matrix(distinct, times)
        return sp.coo_matrix((values, (rows, columns)), (SIDE, SIDE))

    if case == "coalesce":
        a = coo(ENTRIES // 2, 2)
        return lambda: a.tocsr()
    if case == "add":
        a, b = coo(ENTRIES).tocsr(), coo(ENTRIES).tocsr()
        return lambda: a + b
    if case == "mm_sparse":
        a, b = coo(ENTRIES // 10).tocsr(), coo(ENTRIES // 10).tocsr()
        return lambda: a @ b
    if case.endswith("mm_64") or case.startswith("dense_grad"):
        a, dense = coo(ENTRIES), np.random.randn(SIDE, 64).astype(np.float32)
        a = a if case.startswith("unsorted") else a.tocsr()
        a = a.T if case.startswith("dense_grad") else a
        return lambda: a @ dense
    return None


def pytorchs(case, threads):
    """PyTorch's call."""
    import torch

    torch.set_num_threads(threads)

    def coo(distinct, times=1):
        rows, columns, values = matrix(distinct, times)
        at = torch.stack([torch.from_numpy(rows), torch.from_numpy(columns)])
        return torch.sparse_coo_tensor(at, torch.from_numpy(values), (SIDE, SIDE))

    if case == "coalesce":
        a = coo(ENTRIES // 2, 2)
        # A clone is not known to be coalesced, as the tensor is once it was.
        return lambda: torch.sparse_coo_tensor(a._indices(), a._values(), a.shape).coalesce()
    if case == "softmax":
        a = coo(ENTRIES).coalesce()
        return lambda: torch.sparse.softmax(a, 1)
    if case == "add":
        a, b = coo(ENTRIES).coalesce(), coo(ENTRIES).coalesce()
        return lambda: a + b
    if case == "mm_sparse":
        a, b = coo(ENTRIES // 10).coalesce(), coo(ENTRIES // 10).coalesce()
        return lambda: torch.sparse.mm(a, b)
    a, dense = coo(ENTRIES), torch.randn(SIDE, 64)
    if "grad" in case:
        a, given = a.coalesce(), torch.randn(SIDE, 64)
        wanted = (a if case.startswith("values_grad") else dense).requires_grad_()
        product = torch.sparse.mm(a, dense)
        return lambda: torch.autograd.grad(product, wanted, given, retain_graph=True)
    a = a if case.startswith("unsorted") else a.coalesce().to_sparse_csr()
    return lambda: a @ dense


def median(call):
    """The median time of a call in nanoseconds."""
    call()
    times, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end or len(times) < 5:
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e9)
    return statistics.median(times)


def main():
    options = arguments(__doc__)
    if options.peer:
        library, case = options.peer.split(":sparse.")
        call = scipys(case) if library == "scipy" else pytorchs(case, options.threads)
        print(median(call) if call else "inf")
        return
    program = built(options)
    for case in (case for case in CASES if options.case in case):
        rows = []
        for _ in range(options.rounds):
            row = [ours(case, options.threads, program)]
            for library in ("scipy", "pytorch"):
                peer = [sys.executable, __file__, "--threads", str(options.threads), "--peer", f"{library}:{case}"]
                row.append(float(subprocess.run(peer, check=True, capture_output=True, text=True).stdout))
            rows.append(row)
        own, scipy, pytorch = (statistics.median(times) / 1e6 for times in zip(*rows))
        ratio = statistics.median(own / min(others) for own, *others in rows)
        print(f"{case:24}{own:10.2f}{scipy:10.2f}{pytorch:10.2f} ms{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs the left side of each row of `from_pytorch` in PyTorch, and compares what it gives with the right side.

    KEYWAY_ROWS=/tmp/rows cargo test -p keyway-tests --test from_other_libraries every_row_runs
    python3 frontend-tests/tests/from_other_libraries/beside_pytorch.py /tmp/rows/from_pytorch.json

Rows with random numbers, or with memory that nobody wrote, are compared by shape. Rows in C++ are left out.
"""

import ast
import json
import sys

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint
import torch.utils.data

# What gives other numbers each time, or memory that nobody wrote.
BY_SHAPE = ("rand", "empty", "bernoulli", "normal", "uniform_", "multinomial", "nn.Linear", "nn.RNN", "nn.GRU", "nn.LSTM", "model")
# No part of PyTorch, or nothing without a GPU or a file.
ELSEWHERE = ("torchviz", "torchvision", "torch.cuda.memory", "torch.cuda.empty_cache", "cuda()", "path")


# What the rows about functions of one's own take.
TWICE = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2
    @staticmethod
    def backward(context, grad):
        return grad * 2
"""


def evaluate(given, left):
    names = dict(torch=torch, nn=nn, F=F, numpy=numpy)
    exec(TWICE + given, names)
    left += " pass" if left.endswith(":") else ""
    tree = ast.parse(left)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body.pop()
        exec(compile(tree, left, "exec"), names)
        return eval(compile(ast.Expression(last.value), left, "eval"), names)
    exec(compile(tree, left, "exec"), names)
    target = last.targets[0] if isinstance(last, ast.Assign) else getattr(last, "target", None)
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return names.get(target.id) if isinstance(target, ast.Name) else None


def tensor(value):
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.layout != torch.strided:
            value = value.to_dense()
        return list(value.shape), value.to(torch.float64).flatten().tolist()
    values = numpy.array(value, dtype=float)
    return list(values.shape), values.flatten().tolist()


def differ(left, ours, shapes_only):
    """Why the two are not the same; nothing if they are."""
    if isinstance(ours, list) and ours and isinstance(ours[0], dict):
        left = [left] if len(ours) == 1 and isinstance(left, torch.Tensor) else list(left)
        if len(left) != len(ours):
            return f"{len(left)} results there, {len(ours)} here"
        return next(filter(None, (differ(a, b, shapes_only) for a, b in zip(left, ours))), None)
    shape, values = tensor(left)
    if isinstance(ours, dict):
        our_shape, our_values = ours["shape"], [float(v) for v in ours["values"]]
        names = {"torch.float32": "f32", "torch.float64": "f64", "torch.float16": "f16", "torch.bfloat16": "bf16"}
        names |= {"torch.int64": "i64", "torch.int32": "i32", "torch.bool": "bool"}
        if isinstance(left, torch.Tensor) and names[str(left.dtype)] != ours["dtype"]:
            return f"{left.dtype} there, {ours['dtype']} here"
    else:
        our_shape, our_values = tensor(ours)
    if shape != our_shape:
        return f"shape {shape} there, {our_shape} here"
    if not shapes_only and not numpy.allclose(values, our_values, rtol=1e-4, atol=1e-5, equal_nan=True):
        return f"{values} there, {our_values} here"
    return None


def main():
    rows = [row for row in json.load(open(sys.argv[1])) if not row["section"].startswith("libtorch")]
    ran = compared = wrong = 0
    for row in rows:
        left, ours = row["left"], row["value"]
        if any(word in left for word in ELSEWHERE):
            continue
        try:
            made, why = evaluate(row["given"], left), None
            ran += 1
            if ours is not None and not isinstance(made, nn.Module):
                shapes_only = any(word in left for word in BY_SHAPE) or "randn" in row["given"]
                why = differ(made, ours, shapes_only)
                compared += 1
        except Exception as error:  # noqa: BLE001: a row that PyTorch refuses is a finding
            why = f"{type(error).__name__}: {error}"
        if why:
            wrong += 1
            print(f"{left}: {why}")
    print(f"{len(rows)} rows, {ran} ran in PyTorch {torch.__version__}, {compared} compared, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares the conformance oracle with PyTorch and NumPy.

    keyway conformance --export DIR
    python conformance/tools/compare_with_pytorch.py DIR [--op GLOB] [--verbose]

Each line of DIR/OP.jsonl is a call, with what the oracle says it gives. The call is made in PyTorch, or in
NumPy where PyTorch lacks the dtype, and shape, dtype and values of each result are compared. The calls are in
the files `ops_*.py` beside this one, each of which may have:

    OPS        op -> function(torch, *arguments in the order of the schema) -> a tensor, or several
    NUMPY      op -> function(numpy, *arguments) -> an array, or several; its dtype is not compared, as NumPy
               promotes by other rules
    EXPLAINED  "op/dtype/kind" -> why the two differ. Each part may be a glob; the dtype is the tested one, the
               kind is `count`, `shape`, `dtype`, `values`, `zero` (of the other sign) or `error` (PyTorch
               refuses the call). `/extremes` after it restricts it to calls on extreme values
    NO_COUNTERPART  op -> why neither library has it

Exit code: 0, or 1 for a difference that is not explained or an explanation that explains nothing.
"""

import argparse
import collections
import fnmatch
import importlib
import json
import math
import pathlib
import sys

import numpy
import torch

sys.dont_write_bytecode = True

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
    "u64": torch.uint64, "u32": torch.uint32, "u16": torch.uint16, "u8": torch.uint8,
    "bool": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
NUMPY_DTYPES = {
    "f64": numpy.float64, "f32": numpy.float32, "f16": numpy.float16,
    "i64": numpy.int64, "i32": numpy.int32, "i16": numpy.int16, "i8": numpy.int8,
    "u64": numpy.uint64, "u32": numpy.uint32, "u16": numpy.uint16, "u8": numpy.uint8,
    "bool": numpy.bool_,
}
# Relative and absolute, as `torch.testing.assert_close` has them.
TOLERANCE = {"f16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "f32": (1.3e-6, 1e-5), "f64": (1e-7, 1e-7)}
# What PyTorch says where it has no kernel or no promotion for a dtype.
LACKS = ("not implemented for", "Promotion for uint", "not supported", "not yet supported", "only supports",
         "does not support", "Expected dtype", "unsupported")


class NoCounterpart(Exception):
    """Neither library has this call; the message says why."""


class Difference(Exception):
    """The first difference found; `kind` as in EXPLAINED."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def number(value, dtype):
    """One element of the file: integers are text there, as are NaN and the infinities."""
    if dtype == "bool":
        return bool(value)
    return float(value) if dtype in TOLERANCE else int(value)


def tensor(array):
    """An array of the file as a PyTorch tensor."""
    dtype, sizes = array["dtype"], array["sizes"]
    values = [number(v, dtype) for v in array["values"]]
    if dtype == "bf16":
        return torch.tensor(values, dtype=torch.float64).reshape(sizes).to(torch.bfloat16)
    return torch.from_numpy(numpy.array(values, dtype=NUMPY_DTYPES[dtype]).reshape(sizes))


def argument(value, convert):
    """An argument of the file as a library takes it, its tensors made by `convert`."""
    if value is None:
        return None
    (kind, content), = value.items()
    match kind:
        case "tensor":
            return convert(content)
        case "tensors":
            return [convert(a) for a in content]
        case "float":
            return float(content)
        case "floats":
            return [float(v) for v in content]
        case "dtype":
            return DTYPES[content]
        case _:
            return content


def numpy_array(array):
    if array["dtype"] not in NUMPY_DTYPES:
        raise NoCounterpart(f"NumPy has no {array['dtype']}")
    return tensor(array).numpy()


def results(made):
    """What a function gave, as a list."""
    return list(made) if isinstance(made, (list, tuple)) else [made]


def call(line, tables):
    """The results of the call, as tensors with their dtype's name, or None for NumPy's."""
    name = line["op"]
    reason = None
    if name in tables.ops:
        try:
            made = tables.ops[name](torch, *(argument(a, tensor) for a in line["args"]))
            return [(NAMES[t.dtype], t) for t in results(made)]
        except NoCounterpart:
            raise
        except Exception as error:
            reason = str(error).split("\n")[0]
            if not any(text in reason for text in LACKS):
                raise Difference("error", f"PyTorch: {reason}") from error
    if name in tables.numpy:
        try:
            with numpy.errstate(all="ignore"):
                made = tables.numpy[name](numpy, *(argument(a, numpy_array) for a in line["args"]))
        except NoCounterpart:
            raise
        except Exception as error:
            raise Difference("error", f"NumPy: {error}") from error
        return [(None, torch.from_numpy(numpy.ascontiguousarray(a).reshape(numpy.shape(a)))) for a in results(made)]
    if name in tables.none:
        raise NoCounterpart(tables.none[name])
    raise NoCounterpart(reason or "no call is written for it")


def wrapped(value, dtype):
    """An integer modulo 2^bits, in the dtype's range."""
    info = numpy.iinfo(NUMPY_DTYPES[dtype])
    return (value - int(info.min)) % (int(info.max) - int(info.min) + 1) + int(info.min)


def same_float(expected, got, dtype):
    """Whether a float is as expected. The expected one is not rounded to its dtype yet."""
    if math.isnan(expected) or math.isnan(got):
        return math.isnan(expected) and math.isnan(got)
    rounded = torch.tensor(expected, dtype=torch.float64).to(DTYPES[dtype]).item()
    if rounded == got:
        return True
    if math.isinf(expected) or math.isinf(got):
        return False
    relative, absolute = TOLERANCE[dtype]
    return abs(expected - got) <= absolute + relative * abs(expected)


def compare(expected, dtype_made, made):
    """Raises the first difference between an array of the file and a tensor."""
    dtype, sizes = expected["dtype"], expected["sizes"]
    if list(made.shape) != sizes:
        raise Difference("shape", f"{sizes}, in PyTorch {list(made.shape)}")
    if dtype_made is not None and dtype_made != dtype:
        raise Difference("dtype", f"{dtype}, in PyTorch {dtype_made}")
    flat = made.reshape(-1).tolist()
    for place, (want, got) in enumerate(zip(expected["values"], flat)):
        if want == "any":
            continue
        want = number(want, dtype)
        if dtype in TOLERANCE:
            same = same_float(want, float(got), dtype)
            if same and want == got == 0 and math.copysign(1, want) != math.copysign(1, got):
                raise Difference("zero", f"element {place} is {want}, in PyTorch {got}")
        elif dtype == "bool":
            same = want == bool(got)
        else:
            want = wrapped(want, dtype)
            same = want == (wrapped(int(got), dtype) if dtype_made is None else int(got))
        if not same:
            raise Difference("values", f"element {place} is {want}, in PyTorch {got}")


def judge(line, tables):
    made = call(line, tables)
    expected = line["expected"]
    if len(made) != len(expected):
        raise Difference("count", f"{len(expected)} results, in PyTorch {len(made)}")
    for array, (dtype, result) in zip(expected, made):
        compare(array, dtype, result)


def one_by_one(line):
    """A call on extreme values as calls on one element each: the libraries' vector code is less exact there
    than their scalar code, and one difference would hide the others."""
    def element(array, place):
        return {**array, "sizes": [1], "values": [array["values"][place]]}

    def of_argument(value, place):
        return {"tensor": element(value["tensor"], place)} if value and "tensor" in value else value

    for place in range(len(line["expected"][0]["values"])):
        yield {**line, "args": [of_argument(a, place) for a in line["args"]],
               "expected": [element(array, place) for array in line["expected"]]}


def lines_of(file):
    for text in file.read_text().splitlines():
        line = json.loads(text)
        yield from one_by_one(line) if line["sample"] == "extremes" and "expected" in line else [line]


class Tables:
    """What the files `ops_*.py` say, together."""

    def __init__(self):
        self.ops, self.numpy, self.explained, self.none = {}, {}, {}, {}
        self.used = set()
        folder = pathlib.Path(__file__).parent
        sys.path.insert(0, str(folder))
        for file in sorted(folder.glob("ops_*.py")):
            module = importlib.import_module(file.stem)
            self.ops.update(getattr(module, "OPS", {}))
            self.numpy.update(getattr(module, "NUMPY", {}))
            self.explained.update(getattr(module, "EXPLAINED", {}))
            self.none.update(getattr(module, "NO_COUNTERPART", {}))

    def explanation(self, op, dtype, kind, sample):
        for pattern, reason in self.explained.items():
            case = f"{op}/{dtype}/{kind}" + (f"/{sample}" if pattern.count("/") == 3 else "")
            if fnmatch.fnmatchcase(case, pattern):
                self.used.add(pattern)
                return reason
        return None


def short(text, width=160):
    return text if len(text) <= width else text[: width - 3] + "..."


def main():
    parser = argparse.ArgumentParser(description="Compares the conformance oracle with PyTorch and NumPy.")
    parser.add_argument("folder", type=pathlib.Path, help="what `keyway conformance --export` wrote")
    parser.add_argument("--op", default="*", help="only the ops of this glob")
    parser.add_argument("--verbose", action="store_true", help="show every difference, not the first of its kind")
    options = parser.parse_args()

    tables = Tables()
    columns = ("agree", "explained", "differ", "none", "unknown")
    counts = collections.OrderedDict()
    notes = collections.OrderedDict()
    for file in sorted(options.folder.glob("*.jsonl")):
        if not fnmatch.fnmatchcase(file.stem, options.op):
            continue
        row = counts.setdefault(file.stem, collections.Counter())
        for line in lines_of(file):
            op, dtype = line["op"], line["dtype"]
            where = f"{op} sample {line['sample']} {dtype}"
            if "unknown" in line:
                outcome = "unknown"
                try:
                    answered = "NumPy has one" if call(line, tables)[0][0] is None else "PyTorch has one"
                except (NoCounterpart, Difference):
                    answered = "nor has PyTorch"
                note = f"{line['unknown'].removeprefix('the oracle cannot judge this: ')} ({answered})"
                key = (op, outcome, note)
            else:
                try:
                    judge(line, tables)
                    outcome, key, note = "agree", None, None
                except NoCounterpart as error:
                    outcome, note = "none", str(error)
                    key = (op, outcome, note)
                except Difference as error:
                    reason = tables.explanation(op, dtype, error.kind, line["sample"])
                    outcome = "differ" if reason is None else "explained"
                    note = f"{error.kind}: {error}" if reason is None else reason
                    key = (op, outcome, error.kind if reason is None else reason)
            row[outcome] += 1
            if key is not None:
                if options.verbose:
                    key += (where,)
                first, number_of, _ = notes.get(key, (where, 0, note))
                notes[key] = (first, number_of + 1, note)

    print(f"{'op':32}" + "".join(f"{c:>10}" for c in columns))
    for op, row in counts.items():
        print(f"{op:32}" + "".join(f"{row[c] or '':>10}" for c in columns))
    total = sum(counts.values(), collections.Counter())
    print(f"{'in all: ' + str(len(counts)) + ' ops':32}" + "".join(f"{total[c]:>10}" for c in columns))
    agreeing = sum(1 for row in counts.values() if row["agree"] and not row["differ"] and not row["explained"])
    print(f"\n{agreeing} ops agree on every sample that has a counterpart; PyTorch {torch.__version__}, "
          f"NumPy {numpy.__version__}")
    titles = {"differ": "Differences", "explained": "Differences explained", "none": "No counterpart",
              "unknown": "The oracle has no answer"}
    for outcome, title in titles.items():
        rows = [(first, n, note) for key, (first, n, note) in notes.items() if key[1] == outcome]
        if rows:
            print(f"\n{title}:")
        for first, n, note in rows:
            print(f"  {first}" + (f" and {n - 1} more" if n > 1 else "") + f": {short(note)}")
    idle = [p for p in tables.explained if p not in tables.used] if options.op == "*" else []
    idle = [p for p in idle if any(fnmatch.fnmatchcase(op, p.split("/")[0]) for op in counts)]
    for pattern in idle:
        print(f"\nThe explanation `{pattern}` explains nothing")
    return 1 if total["differ"] or idle else 0


if __name__ == "__main__":
    sys.exit(main())

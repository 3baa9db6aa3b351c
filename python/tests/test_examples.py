"""The example programs, on few epochs."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ROOT = EXAMPLES.parents[1]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the examples share memory between processes")


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # Processes that are spawned find its functions by this name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def command():
    """The command `keyway`, if it was built."""
    folders = [os.environ.get("KEYWAY_COMMAND", ""), *(ROOT / folder / "keyway" for folder in ("dist/bin", "target/release", "target/debug"))]
    found = [str(path) for path in folders if path and Path(path).is_file()]
    return found[0] if found else shutil.which("keyway")


def test_digits_learns_the_same_weights_whatever_the_number_of_workers():
    digits = example("digits")
    alone, with_workers = digits.train(4), digits.train(4, workers=2)
    assert alone == with_workers and alone["test_accuracy"] > 0.88
    assert digits.train(4, seed=1)["weights_sha256"] != alone["weights_sha256"]


def test_digits_learns_the_weights_of_the_command(tmp_path):
    program = command()
    if program is None:
        pytest.skip("the command `keyway` is not built")
    results = tmp_path / "results.json"
    subprocess.run([program, "train", "digits", "--epochs", "4", "--json", results], check=True, timeout=120)
    expected = json.loads(results.read_text())
    got = example("digits").train(4)
    assert {name: expected[name] for name in got} == got


def test_hogwild_learns_as_well_as_one_process():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "hogwild.py", "--epochs", "8"], capture_output=True, text=True, timeout=120, check=True
    )
    together, alone = (float(line.split("accuracy ")[1].split()[0]) for line in done.stdout.splitlines())
    assert together > 0.8 and together > alone - 0.08, done.stdout


def test_the_cells_of_the_notebook_run(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    cells = json.loads((EXAMPLES / "tour.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile(cell["source"], cell["id"], "exec"), names)
    assert names["accuracy"] > 0.85

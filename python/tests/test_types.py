"""The type stubs that are written from the table of ops."""

import shutil
import subprocess
import sys
from pathlib import Path

import keyway

HERE = Path(__file__).parent


def check(folder, program):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), str(program)]
    environment = {"MYPYPATH": str(folder), "PATH": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_program_passes_strict_checks_and_a_wrong_one_does_not(tmp_path):
    package = tmp_path / "keyway"
    shutil.copytree(Path(keyway.__file__).parent, package, ignore=shutil.ignore_patterns("*.so"))
    # The program checks what a user installs: Python files and stubs, without the extension module.
    subprocess.run([sys.executable, "-m", "keyway._stubs", str(package)], check=True)
    right = check(tmp_path, HERE / "typed_program.py")
    assert right.returncode == 0, right.stdout + right.stderr
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import keyway as kw\nkw.ones(2).sum(dimension=0)\nx: str = kw.add(kw.ones(1), 2)\n")
    refused = check(tmp_path, wrong)
    assert refused.stdout.count("error:") == 2, refused.stdout

"""Builds the wheels in ``dist/wheels`` from what ``cargo xtask dist`` staged; run by ``cargo xtask wheel``.

``keyway-tensor`` has the extension module, the programs and the CPU backend of each level. Each other backend is a wheel that holds
its library and names the folder in the entry-point group ``keyway.backends``; it has no code. A third party's backend is a wheel by
the same rule, see ``backend_wheel``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIST = HERE.parent / "dist"
WHEELS = DIST / "wheels"
CPU = "libkeyway_backend_cpu"


def backend_wheel(name: str, version: str, libraries: list[Path], folder: Path, tag: str) -> Path:
    """Writes the wheel of a backend: its files in ``PACKAGE/backends``, and the entry point that names that folder."""
    package = name.replace("-", "_")
    info = f"{package}-{version}.dist-info"
    files = {f"{package}/backends/{path.name}": path.read_bytes() for path in libraries}
    # A package without code: a folder that the import system finds.
    files[f"{package}/__init__.py"] = b""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: keyway-tensor\n"
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: keyway\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/entry_points.txt"] = f"[keyway.backends]\n{name} = {package}:backends\n".encode()
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = folder / f"{package}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return wheel


def lay_into_package() -> None:
    """Copies the CPU backend and the programs into the package's folder."""
    for folder, names in (("backends", sorted((DIST / "backends").glob(f"{CPU}*"))), ("bin", sorted((DIST / "bin").iterdir()))):
        target = HERE / "keyway" / folder
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for path in names:
            shutil.copy(path, target)


def write_stubs() -> None:
    """Builds the extension module and writes the type stubs that it describes into the package."""
    subprocess.run(["cargo", "build", "--release"], cwd=HERE, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=HERE, check=True, capture_output=True
    )
    target = Path(json.loads(metadata.stdout)["target_directory"])
    module = HERE / "keyway" / "_keyway.abi3.so"
    shutil.copy(target / "release" / "lib_keyway.so", module)
    try:
        subprocess.run([sys.executable, "-m", "keyway._stubs", "keyway"], cwd=HERE, check=True)
    finally:
        module.unlink()


def main() -> None:
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir(parents=True)
    lay_into_package()
    write_stubs()
    # maturin names the oldest manylinux whose symbols suffice: that of this machine's C library.
    build = [sys.executable, "-m", "maturin", "build", "--release", "--out", str(WHEELS), "--auditwheel", "check"]
    subprocess.run(build, cwd=HERE, check=True)
    platform = next(WHEELS.glob("keyway_tensor-*.whl")).stem.rpartition("-")[2]
    version = tomllib.loads((HERE / "Cargo.toml").read_text())["package"]["version"]
    others: dict[str, list[Path]] = {}
    for path in sorted((DIST / "backends").iterdir()):
        if not path.name.startswith(CPU):
            # `libkeyway_backend_sparse-x86-64-v3.so` and the files beside it.
            stem = path.name.partition(".")[0].partition("-")[0].removeprefix("libkeyway_backend_")
            others.setdefault("keyway-" + stem.replace("_", "-"), []).append(path)
    for name, libraries in others.items():
        backend_wheel(name, version, libraries, WHEELS, f"py3-none-{platform}")
    for wheel in sorted(WHEELS.iterdir()):
        print(f"{wheel.relative_to(DIST.parent)}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

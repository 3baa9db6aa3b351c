"""Where backends are looked for: this package, and packages that name one in the entry-point group ``keyway.backends``.

The value of an entry point, ``package:folder``, is read as metadata: no foreign code is imported to find a backend. The folder is
relative to the package's own.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import os
import sys

GROUP = "keyway.backends"
_HERE = os.path.dirname(os.path.abspath(__file__))


def _folder_of(package: str) -> str | None:
    """The folder of a top-level package, found on ``sys.path`` without importing it."""
    spec = importlib.machinery.PathFinder.find_spec(package, sys.path)
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(spec.submodule_search_locations), None)


def search_path() -> list[str]:
    """The folders of the backends of this package and of installed packages, this package's first."""
    folders = [os.path.join(_HERE, "backends")]
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        package, _, folder = entry.value.partition(":")
        found = _folder_of(package.strip())
        if found is not None:
            folders.append(os.path.join(found, folder.strip()))
    # The program that tries a library before it is loaded here.
    probe = os.path.join(_HERE, "bin", "keyway-probe")
    if os.path.exists(probe):
        os.environ.setdefault("KEYWAY_PROBE", probe)
    return [folder for folder in folders if os.path.isdir(folder)]

"""The listings of the documents run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTINGS = [
    (f"{page}:{number}", listing)
    for page in ("python/README.md", "book/src/python.md")
    for number, listing in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
]


@pytest.mark.parametrize("listing", [code for _, code in LISTINGS], ids=[name for name, _ in LISTINGS])
def test_a_listing_runs(listing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(listing, "listing", "exec"), {})


def test_there_are_listings():
    assert len(LISTINGS) >= 6

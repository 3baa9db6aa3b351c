"""Profiles of a thread: calls, times and bytes by op, a trace for Chrome or Perfetto, and memory by the op that allocated it."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

from ._keyway import _enter_memory_profile, _enter_profile, _enter_scope, _memory_snapshot, _profile_trace
from .autograd.modes import Block

__all__ = ["memory", "profile", "record_function"]

_MAX_EVENTS = 100_000


class Row(NamedTuple):
    """The calls of one op by one backend; times are in microseconds."""

    key: str
    served_by: str
    calls: int
    self_cpu_time_total: float
    cpu_time_total: float
    bytes: int


class Rows(list[Row]):
    """The rows of a profile."""

    def table(self, sort_by: str = "self_cpu_time_total", row_limit: int = 100) -> str:
        """The rows as text, largest first by a field of ``Row``."""
        if sort_by not in Row._fields:
            raise ValueError(f"table: expected `sort_by` to be one of {', '.join(Row._fields)}, got {sort_by}")
        rows = sorted(self, key=lambda row: getattr(row, sort_by), reverse=sort_by not in ("key", "served_by"))
        lines = [("op", "backend", "calls", "self us", "total us", "bytes")]
        for row in rows[: row_limit if row_limit >= 0 else None]:
            times = f"{row.self_cpu_time_total:.1f}", f"{row.cpu_time_total:.1f}"
            lines.append((row.key, row.served_by, str(row.calls), *times, str(row.bytes)))
        widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)


class profile(Block):
    """Records the calls of this thread in a block.

    ``str(p)`` is the report, ``p.key_averages()`` its rows, and ``p.export_chrome_trace`` writes the events.
    """

    def __init__(self, activities: Any = None, record_shapes: bool = False, profile_memory: bool = False) -> None:
        super().__init__()
        self._memory = memory() if profile_memory else None
        self._trace: Any = None

    def _begin(self) -> int | None:
        return _enter_profile(_MAX_EVENTS)

    def __enter__(self) -> profile:
        if self._memory is not None:
            self._memory.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._trace = self._read()
        super().__exit__(*raised)
        if self._memory is not None:
            self._memory.__exit__(*raised)

    def _read(self) -> Any:
        """The recorded calls, also while the block runs."""
        number = self._entered[-1] if self._entered else None
        if number is not None:
            return _profile_trace(number)
        if self._trace is None:
            raise RuntimeError("profile: expected a block `with profile() as p:` before its report is read")
        return self._trace

    def __str__(self) -> str:
        text: str = self._read().table()
        return text

    def table(self) -> str:
        """The report as text."""
        return str(self)

    def key_averages(self) -> Rows:
        """A row for each op and backend."""
        return Rows(
            Row(row["op"], row["served_by"], row["calls"], row["self_ns"] / 1e3, row["total_ns"] / 1e3, row["bytes"])
            for row in self._read().rows()
        )

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Writes the events for chrome://tracing or Perfetto."""
        self._read().write(path)

    def memory_usage(self) -> list[dict[str, Any]]:
        """The present and the largest number of bytes by device, with ``profile_memory``."""
        if self._memory is None:
            raise RuntimeError("profile: expected `profile_memory=True` where memory is read")
        return self._memory.usage()


class memory(Block):
    """Records the memory of storages in a block, by the op that allocated them."""

    def __init__(self) -> None:
        super().__init__()
        self._snapshot: Any = None

    def _begin(self) -> int | None:
        return _enter_memory_profile()

    def __exit__(self, *raised: Any) -> None:
        self._snapshot = self._read()
        super().__exit__(*raised)

    def _read(self) -> Any:
        number = self._entered[-1] if self._entered else None
        if number is not None:
            return _memory_snapshot(number)
        if self._snapshot is None:
            raise RuntimeError("memory: expected a block `with memory() as m:` before it is read")
        return self._snapshot

    def usage(self) -> list[dict[str, Any]]:
        """The present and the largest number of bytes by device: dicts of ``device``, ``current`` and ``peak``."""
        found: list[dict[str, Any]] = self._read().usage()
        return found

    def export(self, path: str | PathLike[str]) -> None:
        """Writes a page with a timeline if the path ends in ``.html``, else JSON."""
        self._read().write(path)


class record_function(Block):
    """A named part of a profile."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def _begin(self) -> int | None:
        return _enter_scope(self._name)

    def _copy(self) -> Block:
        return record_function(self._name)

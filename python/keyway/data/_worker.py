"""The worker processes of a loader."""

from __future__ import annotations

import pickle
import random
import signal
import traceback
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, parent_process
from typing import Any, Callable

from .. import _keyway
from . import _seed


@dataclass(frozen=True)
class WorkerInfo:
    """The worker process in which a data set is used: its ``id`` from 0, the number of workers, a seed, and its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker in which this is called; ``None`` in the main process."""
    return _info


@dataclass
class Job:
    """The data set of a loader, and the functions by which a worker makes its batches."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool
    drop_last: bool
    iterable: bool
    worker_init_fn: Callable[[int], None] | None = None


@dataclass
class Failure:
    """An exception of a worker: the exception if it can be sent, its type's name, its message, and the traceback."""

    worker: int
    pickled: bytes | None
    name: str
    message: str
    text: str

    @staticmethod
    def of(worker: int, error: BaseException) -> Failure:
        """The failure of an exception that was just caught."""
        text = "".join(traceback.format_exception(error))
        pickled: bytes | None
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)
        except Exception:
            pickled = None
        return Failure(worker, pickled, type(error).__name__, str(error), text)

    def exception(self) -> BaseException:
        """The exception, with the worker's traceback as a note."""
        error: BaseException | None = None
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception:
                error = None
        if error is None:
            error = RuntimeError(f"{self.name}: {self.message}")
        error.add_note(f"\nIn worker {self.worker} of the DataLoader:\n{self.text}")
        return error


class Fetcher:
    """Makes batches of a data set: of indices, or of the next samples."""

    def __init__(self, job: Job) -> None:
        from .collate import default_collate

        self.job = job
        self.samples = iter(job.dataset) if job.iterable else None
        self.rows = getattr(job.dataset, "_rows", None) if job.collate_fn is default_collate and job.batched else None
        self.several = getattr(job.dataset, "__getitems__", None)

    @property
    def draws(self) -> bool:
        """Whether the data set's code, which may draw random numbers, is run."""
        return self.rows is None

    def fetch(self, wanted: Any) -> Any:
        """A batch. Raises StopIteration behind the last samples."""
        job = self.job
        if self.samples is not None:
            if not job.batched:
                return job.collate_fn(next(self.samples))
            batch = []
            for _ in range(wanted):
                try:
                    batch.append(next(self.samples))
                except StopIteration:
                    break
            if not batch or job.drop_last and len(batch) < wanted:
                raise StopIteration
            return job.collate_fn(batch)
        if not job.batched:
            return job.collate_fn(job.dataset[wanted])
        if self.rows is not None:
            members = self.rows(wanted)
            if members is not None:
                from .collate import rows

                return rows(members)
        if self.several is not None:
            return job.collate_fn(self.several(wanted))
        return job.collate_fn([job.dataset[index] for index in wanted])


# The message of a worker whose data set has no more samples.
END = "end"


def run(channel: Any, inherited: list[Any], job: Job, worker: int, workers: int, seed: int) -> None:
    """The main function of a worker: answers requests until its peer is gone."""
    global _info
    # Ctrl-C reaches all processes of a terminal; the main one ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for end in inherited:
        end.close()
    parent = parent_process()
    alive = [channel] if parent is None else [channel, parent.sentinel]
    _keyway.set_num_threads(1)
    fetcher: Fetcher | None = None
    failed: Failure | None = None
    # The number of the iteration over the loader, from 1.
    current = 0
    try:
        while True:
            if channel not in connection.wait(alive):
                return
            iteration, epoch, batch, wanted = channel.receive()
            if iteration != current:
                first, current = current == 0, iteration
                own = _seed.mixed(seed, epoch, worker)
                _info = WorkerInfo(worker, workers, own, job.dataset)
                fetcher, failed = None, None
                random.seed(own)
                _keyway.manual_seed(own)
                try:
                    _seed._set(own)
                    if first and job.worker_init_fn is not None:
                        job.worker_init_fn(worker)
                    fetcher = Fetcher(job)
                except Exception as error:
                    failed = Failure.of(worker, error)
            made: Any = failed
            if fetcher is not None:
                try:
                    made = _seed.run_in_worker(_seed.mixed(seed, epoch, batch), partial(_one, fetcher, wanted))
                except Exception as error:
                    made = Failure.of(worker, error)
            try:
                channel.send((iteration, made))
            except EOFError:
                raise
            except Exception as error:
                channel.send((iteration, Failure.of(worker, error)))
    except EOFError:
        return


def _one(fetcher: Fetcher, wanted: Any) -> Any:
    try:
        return (fetcher.fetch(wanted),)
    except StopIteration:
        return END

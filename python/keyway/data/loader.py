"""``DataLoader``."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections import deque
from multiprocessing import connection
from typing import Any, Callable, Iterable, Iterator

from . import _seed, _worker
from ._channel import Channel
from ._worker import END, Failure, Fetcher, Job
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

# Seconds that a worker has to end by itself.
_GRACE = 0.5


class DataLoader:
    """Batches of a data set, made by worker processes if ``num_workers`` is above 0. Each iteration is an epoch.

    The arguments are those of PyTorch, and ``seed``: with the same seed, the batches of an epoch are the same whatever the number of
    workers, also random numbers that the data set draws from Keyway, ``random`` or ``numpy.random``. Without a seed, one is drawn from
    the default generator. ``generator`` is an int too.

    Workers hand their batches over in shared memory. An exception of a worker is raised here with its type and the worker's traceback;
    a worker that is killed is a RuntimeError that names the signal.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: int | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        seed: int | None = None,
    ) -> None:
        iterable = isinstance(dataset, IterableDataset)
        if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
            raise ValueError(f"DataLoader: expected num_workers of at least 0, got {num_workers!r}")
        if timeout < 0:
            raise ValueError(f"DataLoader: expected a timeout of at least 0 seconds, got {timeout}")
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers or timeout):
            raise ValueError("DataLoader: prefetch_factor, persistent_workers and timeout need num_workers above 0")
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(f"DataLoader: expected a prefetch_factor of at least 1, got {prefetch_factor}")
        if iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader: an IterableDataset has an order of its own; leave shuffle, sampler and batch_sampler out")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: shuffle and sampler exclude each other")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last needs a batch_size")
        if pin_memory:
            warnings.warn("pin_memory has no effect: batches are in memory that processes share", stacklevel=2)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.drop_last, self.persistent_workers = drop_last, persistent_workers
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.worker_init_fn, self.pin_memory = worker_init_fn, pin_memory
        self.seed = _seed.given("DataLoader", seed, generator)
        self.multiprocessing_context = _context(multiprocessing_context)
        self.batch_size = None if batch_sampler is not None else batch_size
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        if not iterable:
            if sampler is None and batch_sampler is None:
                self.sampler = RandomSampler(dataset, seed=self.seed) if shuffle else SequentialSampler(dataset)
            if batch_sampler is None and batch_size is not None:
                self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        elif batch_size is not None and batch_size < 1:
            raise ValueError(f"DataLoader: expected a batch size of at least 1, got {batch_size}")
        batched = self.batch_sampler is not None or iterable and batch_size is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._job = Job(dataset, self.collate_fn, batched, drop_last, iterable, worker_init_fn)
        self._epoch = 0
        self._pool: _Pool | None = None

    def set_epoch(self, epoch: int) -> None:
        """Sets the index of the next epoch, which seeds its order and random numbers: for a resumed training."""
        self._epoch = epoch

    def __len__(self) -> int:
        if self._job.iterable:
            length = len(self.dataset)
            if self.batch_size is None:
                return length
            return length // self.batch_size if self.drop_last else -(-length // self.batch_size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)

    def __iter__(self) -> Iterator[Any]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        if self.num_workers == 0:
            return self._here(epoch)
        pool = self._pool if self.persistent_workers else None
        if pool is None or not pool.usable:
            pool = _Pool(self)
            if self.persistent_workers:
                self._pool = pool
        return _Epoch(self, pool, epoch)

    def _requests(self, epoch: int) -> Iterator[Any]:
        """The indices of the samples of each batch, or their number."""
        if self._job.iterable:
            while True:
                yield self.batch_size
        source = self.batch_sampler if self.batch_sampler is not None else self.sampler
        change = getattr(source, "set_epoch", None)
        if change is not None:
            change(epoch)
        for wanted in source:
            yield list(wanted) if self.batch_sampler is not None else wanted

    def _here(self, epoch: int) -> Iterator[Any]:
        fetcher = Fetcher(self._job)
        for batch, wanted in enumerate(self._requests(epoch)):
            if fetcher.draws:
                made = _seed.run(_seed.mixed(self.seed, epoch, batch), lambda: _worker._one(fetcher, wanted))
            else:
                made = _worker._one(fetcher, wanted)
            if made is END:
                return
            yield made[0]


def _context(context: Any) -> Any:
    if context is None or isinstance(context, str):
        return multiprocessing.get_context(context)
    if not hasattr(context, "Process"):
        raise TypeError(f"DataLoader: expected the name of a start method or a context, got {type(context).__name__}")
    return context


class _Pool:
    """The worker processes of a loader, and the connections to them."""

    def __init__(self, loader: DataLoader) -> None:
        self.usable = True
        self.owner = os.getpid()
        # The number of iterations so far.
        self.iterations = 0
        self.channels: list[Channel] = []
        self.processes: list[Any] = []
        context = loader.multiprocessing_context
        try:
            for worker in range(loader.num_workers):
                own, other = Channel.pair()
                self.channels.append(own)
                inherited = list(self.channels) if context.get_start_method() == "fork" else []
                arguments = other, inherited, loader._job, worker, loader.num_workers, loader.seed
                process = context.Process(target=_worker.run, args=arguments, daemon=True, name=f"DataLoader worker {worker}")
                try:
                    process.start()
                finally:
                    other.close()
                self.processes.append(process)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the workers: those that are busy are killed."""
        self.usable = False
        for channel in self.channels:
            channel.close()
        if os.getpid() != self.owner:
            # A fork of the owner: the workers are not its children.
            return
        deadline = time.monotonic() + _GRACE
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def __del__(self) -> None:
        if self.usable:
            self.close()

    def ended(self, worker: int) -> RuntimeError:
        """The error for a worker that is gone."""
        process = self.processes[worker]
        process.join(5.0)
        code = process.exitcode
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            how = f"was killed by {name}"
            if name == "SIGKILL":
                how += ", as the system does when memory runs out; use smaller batches, fewer workers or a lower prefetch_factor"
            elif name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"):
                how += "; set num_workers=0 to find the call that crashes"
        else:
            how = f"ended with exit code {code}; its messages are above"
        return RuntimeError(f"DataLoader: worker {worker} (pid {process.pid}) {how}")


class _Epoch:
    """The batches of one epoch from workers. Worker ``i`` makes the batches ``i``, ``i + num_workers``, and so on."""

    def __init__(self, loader: DataLoader, pool: _Pool, epoch: int) -> None:
        self.loader, self.pool, self.epoch = loader, pool, epoch
        pool.iterations += 1
        self.iteration = pool.iterations
        self.requests = enumerate(loader._requests(epoch))
        self.more = True
        # The workers of the requested batches, in the order of the batches.
        self.order: deque[int] = deque()
        try:
            for _ in range(loader.prefetch_factor):
                for worker in range(loader.num_workers):
                    self._request(worker)
        except BaseException:
            pool.close()
            raise

    def __iter__(self) -> _Epoch:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def _request(self, worker: int) -> None:
        following = next(self.requests, None) if self.more else None
        if following is None:
            self.more = False
            return
        self.order.append(worker)
        try:
            self.pool.channels[worker].send_or_receive((self.iteration, self.epoch, *following))
        except EOFError:
            # Reported when its batch is due.
            pass

    def __next__(self) -> Any:
        if self.order and self.iteration != self.pool.iterations:
            raise RuntimeError("DataLoader: a later iteration has begun, and its persistent workers make one at a time")
        while self.order:
            worker = self.order[0]
            try:
                made = self._receive(worker)
                self.order.popleft()
                if made is not END and made != END:
                    self._request(worker)
            except BaseException:
                # Also an interrupt: the state of a connection is unknown.
                self.order.clear()
                self.pool.close()
                raise
            if isinstance(made, Failure):
                raise made.exception()
            if isinstance(made, tuple):
                return made[0]
        self._finish()
        raise StopIteration

    def _receive(self, worker: int) -> Any:
        channel = self.pool.channels[worker]
        deadline = time.monotonic() + self.loader.timeout if self.loader.timeout else None
        while True:
            try:
                iteration, made = channel.receive(wait=False)
                if iteration == self.iteration:
                    return made
            except BlockingIOError:
                self._wait(channel, deadline)
            except EOFError:
                raise self.pool.ended(worker) from None

    def _wait(self, channel: Channel, deadline: float | None) -> None:
        """Waits for a message of a worker, or for the end of any."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        sentinels = [process.sentinel for process in self.pool.processes]
        ready: list[Any] = connection.wait([channel, *sentinels], left)  # type: ignore[list-item]
        if not ready:
            raise RuntimeError(
                f"DataLoader: no batch within {self.loader.timeout} seconds; raise `timeout`, or find what the data set waits for"
            )
        if channel in ready:
            return
        for worker, sentinel in enumerate(sentinels):
            if sentinel in ready:
                raise self.pool.ended(worker)

    def _finish(self) -> None:
        if not self.loader.persistent_workers and self.pool.usable:
            self.pool.close()

    def __del__(self) -> None:
        pool = getattr(self, "pool", None)
        if pool is not None and pool.usable and not self.loader.persistent_workers:
            pool.close()

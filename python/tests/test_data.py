"""Data sets, samplers, and the loader with and without worker processes."""

import collections
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import keyway as kw
from keyway import data
from keyway.data import DataLoader

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers hand batches over in memory of Linux")


class Squares(data.Dataset):
    def __init__(self, length=10):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return kw.full((3,), float(index)), index * index


class Drawing(Squares):
    """Samples with random numbers of each source."""

    def __getitem__(self, index):
        return kw.rand(2), random.random(), np.random.rand(2)


class Failing(Squares):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def __getitem__(self, index):
        if index == 5:
            raise self.error
        return index


class Unpicklable(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Counting(data.IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.length, step))


def listed(batches):
    return [[member.tolist() for member in batch] if isinstance(batch, list) else batch.tolist() for batch in batches]


def test_data_sets():
    rows = data.TensorDataset(kw.arange(6).reshape(3, 2), kw.arange(3))
    assert len(rows) == 3 and rows[1][0].tolist() == [2, 3] and rows[-1][1].item() == 2
    with pytest.raises(ValueError, match="one length"):
        data.TensorDataset(kw.zeros(2), kw.zeros(3))
    part = data.Subset(rows, [2, 0])
    assert len(part) == 2 and part[0][1].item() == 2
    both = Squares(3) + Squares(2)
    assert [both[index][1] for index in range(len(both))] == [0, 1, 4, 0, 1] and both[-1][1] == 1
    with pytest.raises(IndexError):
        both[5]
    assert list(data.ChainDataset([Counting(2), Counting(3)])) == [0, 1, 0, 1, 2]
    first, second = data.random_split(Squares(10), [7, 3], seed=1)
    assert sorted([*first.indices, *second.indices]) == list(range(10))
    assert [len(part) for part in data.random_split(Squares(10), [0.25, 0.75])] == [3, 7]
    assert data.random_split(Squares(10), [7, 3], seed=1)[1].indices == second.indices
    with pytest.raises(ValueError, match="sum 10"):
        data.random_split(Squares(10), [7, 4])
    assert len(data.digits()) == 1437 and len(data.digits(train=False)) == 360


def test_samplers():
    order = data.RandomSampler(range(20), seed=3)
    one, two = list(order), list(order)
    assert sorted(one) == sorted(two) == list(range(20)) and one != two
    order.set_epoch(0)
    assert list(order) == one
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=50, seed=0))
    assert len(drawn) == 50 and set(drawn) == {0, 1, 2}
    assert len(list(data.RandomSampler(range(3), num_samples=7, seed=0))) == 7
    assert sorted(data.SubsetRandomSampler([5, 6, 7], seed=0)) == [5, 6, 7]
    weighted = list(data.WeightedRandomSampler([0.0, 1.0, 3.0], 400, seed=0))
    assert 0 not in weighted and 200 < weighted.count(2) < 380
    assert sorted(data.WeightedRandomSampler([0.0, 1.0, 3.0], 2, replacement=False, seed=0)) == [1, 2]
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert len(data.BatchSampler(range(5), 2, True)) == 2
    for wrong in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match="batch size"):
            data.BatchSampler(range(5), wrong, False)


def test_collation():
    Pair = collections.namedtuple("Pair", "a b")
    made = data.default_collate([{"x": np.ones(2, "float32"), "y": (1, 2.0), "z": "a"}, {"x": np.zeros(2, "float32"), "y": (3, 4.0), "z": "b"}])
    assert made["x"].tolist() == [[1.0, 1.0], [0.0, 0.0]] and made["z"] == ["a", "b"]
    assert made["y"][0].dtype == kw.int64 and made["y"][1].dtype == kw.float64
    assert isinstance(data.default_collate([Pair(1, 2), Pair(3, 4)]), Pair)
    assert data.default_collate([True, False]).dtype == kw.bool
    with pytest.raises(ValueError, match="collate_fn"):
        data.default_collate([kw.zeros(2), kw.zeros(3)])
    with pytest.raises(TypeError, match="object"):
        data.default_collate([object()])


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_are_those_of_one_process(workers):
    loader = DataLoader(Squares(10), 4, num_workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    assert [batch[1].tolist() for batch in batches] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    assert batches[2][0].tolist() == [[8.0] * 3, [9.0] * 3]
    assert len(list(DataLoader(Squares(10), 4, drop_last=True, num_workers=workers))) == 2
    assert [int(sample[1]) for sample in DataLoader(Squares(4), None, num_workers=workers)] == [0, 1, 4, 9]
    rows = DataLoader(data.TensorDataset(kw.arange(6)), 4, num_workers=workers)
    assert listed(rows) == [[[0, 1, 2, 3]], [[4, 5]]]


def test_the_same_seed_draws_the_same_whatever_the_number_of_workers():
    runs = []
    for workers in (0, 1, 3):
        loader = DataLoader(Drawing(9), 2, shuffle=True, num_workers=workers, seed=5)
        runs.append([listed(loader), listed(loader)])
    assert runs[0] == runs[1] == runs[2] and runs[0][0] != runs[0][1]
    assert listed(DataLoader(Drawing(9), 2, shuffle=True, seed=6)) != runs[0][0]
    resumed = DataLoader(Drawing(9), 2, shuffle=True, num_workers=2, seed=5)
    resumed.set_epoch(1)
    assert listed(resumed) == runs[0][1]


def test_random_states_are_restored_without_workers():
    def draws():
        return random.random(), float(np.random.rand()), kw.rand(1).item()

    def seeded():
        random.seed(1), np.random.seed(1), kw.manual_seed(1)

    seeded()
    expected = draws()
    seeded()
    list(DataLoader(Drawing(4), 2, seed=0))
    assert draws() == expected


def test_iterable_data_sets_are_shared_out():
    for workers in (0, 2):
        batches = [batch.tolist() for batch in DataLoader(Counting(7), 2, num_workers=workers)]
        assert sorted(sum(batches, [])) == list(range(7))
    assert len(list(DataLoader(Counting(7), 2, num_workers=2, drop_last=True))) == 3
    with pytest.raises(ValueError, match="order of its own"):
        DataLoader(Counting(3), shuffle=True)


def test_persistent_workers_are_the_same_processes():
    class Pids(Squares):
        def __getitem__(self, index):
            return os.getpid()

    def pids(loader):
        return {pid for batch in loader for pid in batch.tolist()}

    loader = DataLoader(Pids(8), 1, num_workers=2, persistent_workers=True)
    first = pids(loader)
    assert len(first) == 2 and pids(loader) == first and os.getpid() not in first
    for _ in loader:
        break
    assert pids(loader) == first
    stopped = iter(loader)
    next(stopped)
    loader.set_epoch(0)
    assert pids(loader) == first
    with pytest.raises(RuntimeError, match="later iteration"):
        next(stopped)
    del stopped
    other = DataLoader(Pids(8), 1, num_workers=2)
    assert not pids(other) & pids(other)
    del loader
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in first) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in first)


@pytest.mark.parametrize("error", [KeyError("five"), ZeroDivisionError("by five"), OSError(2, "no", "five")])
def test_an_exception_has_its_type_and_the_traceback_of_the_worker(error):
    loader = iter(DataLoader(Failing(error), 2, num_workers=2))
    assert [next(loader).tolist(), next(loader).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(type(error)) as caught:
        next(loader)
    assert caught.value.args == error.args
    assert "worker 0" in caught.value.__notes__[0] and "__getitem__" in caught.value.__notes__[0]
    assert next(loader).tolist() == [6, 7]


def test_an_exception_that_cannot_be_sent_is_named():
    with pytest.raises(RuntimeError, match="Unpicklable: one and two"):
        list(DataLoader(Failing(Unpicklable("one", "two")), 2, num_workers=1))


def test_worker_init_and_info():
    seen = []

    class Infos(Squares):
        def __getitem__(self, index):
            info = data.get_worker_info()
            return {"id": info.id, "workers": info.num_workers, "seed": info.seed % 1000, "init": self.number}

    def init(worker):
        data.get_worker_info().dataset.number = 10 + worker

    for batch in DataLoader(Infos(4), 1, num_workers=2, worker_init_fn=init):
        seen.append((batch["id"].item(), batch["workers"].item(), batch["init"].item()))
    assert seen == [(0, 2, 10), (1, 2, 11)] * 2 and data.get_worker_info() is None

    def fail(worker):
        raise LookupError("init")

    with pytest.raises(LookupError, match="init"):
        list(DataLoader(Infos(4), 1, num_workers=2, worker_init_fn=fail))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_killed_worker_is_an_error_that_names_the_signal(number):
    class Killed(Squares):
        def __getitem__(self, index):
            if index == 3:
                os.kill(os.getpid(), number)
                time.sleep(30)
            return index

    start = time.monotonic()
    with pytest.raises(RuntimeError, match=number.name):
        list(DataLoader(Killed(8), 1, num_workers=2))
    assert time.monotonic() - start < 20


def test_a_worker_that_exits_or_waits_is_an_error():
    class Exits(Squares):
        def __getitem__(self, index):
            os._exit(3)

    with pytest.raises(RuntimeError, match="exit code 3"):
        list(DataLoader(Exits(8), 1, num_workers=2))

    class Waits(Squares):
        def __getitem__(self, index):
            time.sleep(60)

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="within 0.3 seconds"):
        list(DataLoader(Waits(8), 1, num_workers=2, timeout=0.3))
    assert time.monotonic() - start < 20


def test_large_objects_and_many_tensors_pass():
    class Large(Squares):
        def __getitem__(self, index):
            return "x" * 300_000, [kw.full((1000,), float(number)) for number in range(400)]

    text, many = next(iter(DataLoader(Large(1), None, num_workers=1, collate_fn=lambda sample: sample)))
    assert text == "x" * 300_000 and [int(member[999].item()) for member in many] == list(range(400))


def test_many_outstanding_requests_do_not_block():
    loader = DataLoader(Squares(3000), 1, num_workers=1, prefetch_factor=2000, collate_fn=lambda batch: "y" * 9000)
    assert len(list(loader)) == 3000


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(tmp_path, method):
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(
            """
            import sys
            import keyway as kw
            from keyway.data import DataLoader, TensorDataset, digits

            class Own(TensorDataset):
                def __getitems__(self, indices):
                    return [self[index] for index in indices]

            if __name__ == "__main__":
                for dataset in (digits(), Own(*digits().tensors)):
                    plain = DataLoader(dataset, 100, shuffle=True, seed=1)
                    loader = DataLoader(dataset, 100, shuffle=True, seed=1, num_workers=2, multiprocessing_context=sys.argv[1])
                    for (x, y), (a, b) in zip(plain, loader, strict=True):
                        assert kw.equal(x, a) and kw.equal(y, b) and a.is_shared()
                print("done")
            """
        )
    )
    done = subprocess.run([sys.executable, path, method], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "done\n", done.stderr


def test_loaders_of_several_threads_do_not_mix():
    def read(value, results):
        dataset = data.TensorDataset(kw.full((40, 700), float(value)))
        loader = DataLoader(dataset, 2, num_workers=1)
        results.append(all(bool((batch[0] == value).all()) for _ in range(3) for batch in loader))

    results = []
    threads = [threading.Thread(target=read, args=(value, results)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


INTERRUPTED = """
    import os, signal, sys, time
    from keyway.data import DataLoader, Dataset

    # A shell ignores the signal for its background jobs, and their child processes inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    class Slow(Dataset):
        def __len__(self):
            return 1000
        def __getitem__(self, index):
            os.write(1, str(os.getpid()).encode() + bytes([10]))
            time.sleep(0.05)
            return index

    for batch in DataLoader(Slow(), 1, num_workers=3):
        pass
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_an_interrupt_leaves_no_process(number):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = {process.stdout.readline().strip() for _ in range(30)}
    assert len(pids) == 3, process.stderr.read() if process.poll() is not None else pids
    if number == signal.SIGINT:
        # As a terminal does: to the whole group.
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode in (-number, 1)
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_no_mapping_and_no_descriptor_is_left():
    def counts():
        with open("/proc/self/maps") as maps:
            return sum("memfd:keyway" in line for line in maps), len(os.listdir("/proc/self/fd"))

    loader = DataLoader(data.TensorDataset(kw.rand(64, 1000)), 8, num_workers=2)
    list(loader)
    before = counts()
    for _ in range(3):
        list(loader)
    for batch in loader:
        del batch
        break
    assert counts() == before


def test_wrong_arguments_are_refused():
    for wrong in (
        {"num_workers": -1}, {"num_workers": 1.5}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True},
        {"timeout": 1}, {"num_workers": 1, "prefetch_factor": 0}, {"shuffle": True, "sampler": [0]}, {"batch_size": 0},
        {"batch_sampler": [[0]], "batch_size": 2}, {"batch_size": None, "drop_last": True},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="DataLoader|BatchSampler"):
            DataLoader(Squares(4), **wrong)
    with pytest.raises(TypeError, match="seed"):
        DataLoader(Squares(4), seed="a")
    with pytest.warns(UserWarning, match="pin_memory"):
        DataLoader(Squares(4), pin_memory=True)

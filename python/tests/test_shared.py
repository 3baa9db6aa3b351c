"""Memory that processes share: names, messages, files, and processes that are killed."""

import os
import pickle
import subprocess
import sys
import textwrap

import pytest

import keyway as kw
from keyway import nn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="anonymous files of sealed size are of Linux")


def run(program, *args, timeout=120):
    """The output of a program in a process of its own, so that forks and kills do not meet the tests."""
    code = textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def program(tmp_path, text):
    """A file for a program whose processes are spawned: they import it."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def run_file(path, *args, timeout=120):
    done = subprocess.run([sys.executable, path, *args], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_a_tensor_is_moved_and_stays_the_same_object():
    x = kw.arange(6.0).reshape(2, 3).clone()
    x.requires_grad_()
    (x * 2).sum().backward()
    assert not x.is_shared()
    assert x.share_memory_() is x and x.is_shared() and x.share_memory_() is x
    assert x.requires_grad and x.grad.tolist() == [[2.0] * 3] * 2 and x.grad.is_shared()
    y = kw.open_shared(x.shared_name())
    with kw.no_grad():
        y += 1
    assert x[0].tolist() == [1.0, 2.0, 3.0] and y.is_shared() and x[0].is_shared()


def test_strides_are_preserved_and_gaps_are_not():
    x = kw.zeros(2, 3, 4, 5).permute(0, 2, 3, 1)._to_shared()
    assert x.stride() == (60, 5, 1, 20)
    assert kw.zeros(4, 6)[:, ::2]._to_shared().stride() == (3, 1)
    assert kw.zeros(0, 3)._to_shared().shape == (0, 3) and kw.zeros(())._to_shared().item() == 0.0


def test_views_would_keep_the_old_memory():
    x = kw.zeros(4)
    view = x[1:]
    with pytest.raises(kw.Error, match="views"):
        x.share_memory_()
    with pytest.raises(kw.Error, match="views"):
        view.share_memory_()
    del view
    assert x.share_memory_()[1:].is_shared()
    state = nn.Linear(2, 2)
    kept = state.state_dict()
    with pytest.raises(kw.Error, match="state_dict"):
        state.share_memory()
    del kept


def test_a_gradient_is_not_lost():
    x = kw.ones(3, requires_grad=True)
    loss = (x * x).sum()
    with pytest.raises(kw.Error, match="graph|other tensor"):
        x.share_memory_()
    loss.backward()
    del loss
    x.share_memory_()
    assert x.grad.tolist() == [2.0] * 3
    y = kw.ones(3, requires_grad=True)
    loss = (y + 1).sum()
    with pytest.raises(kw.Error, match="graph"):
        y.share_memory_()
    with pytest.raises(kw.Error, match="leaf|result"):
        (y * 2).share_memory_()
    hooked = kw.ones(3, requires_grad=True)
    hooked.register_hook(lambda gradient: None)
    with pytest.raises(kw.Error, match="hooks"):
        hooked.share_memory_()


def test_a_model_is_shared_and_its_parameters_stay_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    before = list(model.parameters())
    assert model.share_memory() is model
    assert all(a is b and a.is_shared() and isinstance(a, nn.Parameter) for a, b in zip(before, model.parameters()))
    model(kw.ones(2, 3)).sum().backward()
    assert all(parameter.grad is not None for parameter in before)


@pytest.mark.parametrize("lie", ["", "keyway-memory", "keyway-memory:1:2", "x" * 10_000, "keyway-memory:-1:0:0:0:0:f32:0::", "\0"])
def test_a_text_that_is_no_name_is_refused(lie):
    with pytest.raises((kw.Error, ValueError)):
        kw.open_shared(lie)


def test_a_lying_name_gives_no_memory_outside_the_file():
    x = kw.zeros(8, dtype="int32").share_memory_()
    parts = x.shared_name().split(":")

    def lied(**changes):
        names = ["scheme", "process", "descriptor", "device", "inode", "bytes", "dtype", "offset", "sizes", "strides"]
        return ":".join(str(changes.get(name, part)) for name, part in zip(names, parts))

    assert kw.open_shared(lied(sizes=4, strides=2)).shape == (4,)
    for lie in (
        lied(sizes=9), lied(offset=1), lied(strides=2), lied(dtype="f64"), lied(sizes=2**62), lied(offset=2**62),
        lied(strides=2**62), lied(bytes=64), lied(inode=1), lied(offset=-1), lied(sizes="8,8"),
    ):  # fmt: skip
        with pytest.raises(kw.Error):
            kw.open_shared(lie)
    # A process that has the memory open needs no descriptor of another one, so these are tried elsewhere.
    lies = [lied(descriptor=0), lied(descriptor=10_000), lied(process=2**31 - 1), lied(inode=1), lied(bytes=64), lied(sizes=9)]
    run(
        """
        import sys
        import keyway as kw
        true, *lies = sys.argv[1:]
        for lie in lies:
            try:
                kw.open_shared(lie)
            except kw.Error:
                continue
            raise AssertionError(lie)
        kw.open_shared(true)[3] = 7
        """,
        x.shared_name(),
        *lies,
    )
    assert x.tolist() == [0, 0, 0, 7, 0, 0, 0, 0]
    truths = kw.zeros(4, dtype="bool").share_memory_()
    as_bytes = kw.open_shared(truths.shared_name().replace(":bool:", ":u8:"))
    as_bytes[2] = 7
    with pytest.raises(kw.Error, match="0 or 1"):
        kw.open_shared(truths.shared_name())


def test_a_file_that_may_be_truncated_is_refused(tmp_path):
    from keyway import _keyway

    with (tmp_path / "a").open("w+b") as file:
        file.truncate(64)
        with pytest.raises(kw.FileError, match="sealed"):
            _keyway._from_shared_parts(file.fileno(), "float32", 0, [4], [1])
    for wrong in (-1, 1_000_000):
        with pytest.raises(OSError):
            _keyway._from_shared_parts(wrong, "float32", 0, [4], [1])
    x = kw.zeros(16).share_memory_()
    descriptor = x._shared_parts()[0]
    try:
        with pytest.raises(OSError):
            os.ftruncate(descriptor, 4)
    finally:
        os.close(descriptor)


def test_from_file_shares_or_reads(tmp_path):
    path = tmp_path / "values"
    x = kw.from_file(path, shared=True, size=4)
    x += 3
    assert path.stat().st_size == 16
    again = kw.from_file(str(path), shared=True, size=4)
    again[0] = 5
    copy = kw.from_file(path, size=2)
    copy[0] = 9
    assert x.tolist() == [5.0, 3.0, 3.0, 3.0] and copy.tolist() == [9.0, 3.0]
    os.truncate(path, 8)
    assert copy.tolist() == [9.0, 3.0]
    with pytest.raises(kw.Error, match="at most the 2 values"):
        kw.from_file(path, size=4)
    with pytest.raises(OSError, match="values2"):
        kw.from_file(tmp_path / "values2", size=4)
    with pytest.raises(OSError):
        kw.from_file(tmp_path / "no" / "folder", shared=True, size=4)
    (tmp_path / "bools").write_bytes(b"\0\1\2")
    for shared in (False, True):
        with pytest.raises(kw.Error, match="0 or 1"):
            kw.from_file(tmp_path / "bools", shared=shared, size=3, dtype="bool")


def test_plain_pickles_are_copies():
    x = kw.ones(3).share_memory_()
    y = pickle.loads(pickle.dumps(x))
    y += 1
    assert x.tolist() == [1.0] * 3 and not y.is_shared()


QUEUES = """
    import sys
    import keyway as kw
    from keyway import multiprocessing as mp, nn

    def work(x, model, tasks, answers):
        x += 1
        with kw.no_grad():
            model.weight.mul_(0)
        while (task := tasks.get()) is not None:
            a, b, strided, parameter = task
            a += 1
            same = a.data_ptr() + 8 == b.data_ptr()
            answers.put((same, b.tolist(), strided.stride(), isinstance(parameter, nn.Parameter), parameter.requires_grad, a))

    def main(method):
        context = mp.get_context(method)
        x, model = kw.zeros(3).share_memory_(), nn.Linear(2, 2).share_memory()
        tasks, answers = context.Queue(), context.Queue()
        process = context.Process(target=work, args=(x, model, tasks, answers))
        process.start()
        base = kw.zeros(5).share_memory_()
        strided = kw.zeros(2, 3, 4).permute(0, 2, 1)
        tasks.put((base, base[2:], strided, nn.Parameter(kw.ones(2))))
        same, values, stride, is_parameter, requires_grad, back = answers.get(timeout=60)
        assert same and values == [1.0, 1.0, 1.0] and stride == (12, 1, 4) and is_parameter and requires_grad
        assert base.tolist() == [1.0] * 5 and back.data_ptr() == base.data_ptr()
        moved = kw.zeros(4)
        tasks.put((moved, moved[2:], moved, moved))
        answers.get(timeout=60)
        tasks.put(None)
        process.join(60)
        assert process.exitcode == 0 and x.tolist() == [1.0] * 3 and not model.weight.any()
        print("done")

    if __name__ == "__main__":
        main(sys.argv[1])
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_values_are_seen_both_ways(tmp_path, method):
    assert run_file(program(tmp_path, QUEUES), method) == "done\n"


def test_results_of_ops_with_history_are_not_sent():
    from multiprocessing.reduction import ForkingPickler

    from keyway import multiprocessing as _  # noqa: F401

    x = kw.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="detach"):
        ForkingPickler.dumps(x * 2)
    copy = pickle.loads(ForkingPickler.dumps(x))
    assert copy.requires_grad and copy.is_shared() and copy.data_ptr() == x.data_ptr()


def test_a_name_of_a_dead_owner_is_an_error():
    output = run(
        """
        import multiprocessing, os
        import keyway as kw
        def work(pipe):
            x = kw.ones(3).share_memory_()
            pipe.send((x.shared_name(), x))
            os.kill(os.getpid(), 9)
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=work, args=(there,))
        process.start()
        process.join()
        try:
            here.recv()
        except kw.FileError as error:
            print(error)
        """
    )
    assert "has ended" in output and "keep a tensor" in output


def test_a_child_of_a_fork_computes():
    run(
        """
        import os, sys
        import keyway as kw
        a, b = kw.rand(600, 600), kw.rand(600, 600)
        shared = kw.zeros(600, 600).share_memory_()
        expected = a @ b
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                result = a @ b
                shared.copy_(result)
                os._exit(0 if kw.equal(result, expected) else 1)
            children.append(child)
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert kw.equal(shared, expected) and kw.equal(a @ b, expected)
        """,
        timeout=60,
    )


KILLS = """
    import os, random, sys, time
    import keyway as kw
    from keyway import multiprocessing as mp

    def send(queue):
        number = 0
        while True:
            queue.put(kw.full((5000,), float(number)).share_memory_())
            number += 1

    def receive(queue, done):
        while True:
            tensor = queue.get()
            tensor += 1
            done.put(tensor)

    def mapped():
        with open("/proc/self/maps") as maps:
            return sum("memfd:keyway" in line for line in maps)

    def drained(queue):
        # Messages of a killed process, whose memory is gone, and of this one.
        import queue as names
        while True:
            try:
                queue.get(timeout=0.05)
            except names.Empty:
                return
            except OSError as error:
                assert "has ended" in str(error) or "dropped" in str(error), error

    def main(method, kills):
        context = mp.get_context(method)
        before, counts = set(os.listdir("/dev/shm")), []
        draw = random.Random(0)
        for kill in range(kills):
            queue, done = context.Queue(), context.Queue()
            sends = kill % 2 == 0
            process = context.Process(target=send if sends else receive, args=(queue,) if sends else (queue, done))
            process.start()
            if sends:
                assert queue.get(timeout=60).shape == (5000,)
            else:
                for number in range(20):
                    queue.put(kw.full((5000,), float(number)))
            time.sleep(draw.uniform(0, 0.02))
            os.kill(process.pid, 9)
            process.join()
            drained(queue)
            drained(done)
            for used in (queue, done):
                used.close()
                used.join_thread()
            mp.release_unreceived()
            counts.append((mapped(), len(os.listdir("/proc/self/fd"))))
        left = {name for name in set(os.listdir("/dev/shm")) - before if not name.startswith("sem.")}
        assert not left, left
        assert counts[-1][0] <= counts[1][0] + 1 and counts[-1][1] <= counts[1][1] + 2, counts
        print("done")

    if __name__ == "__main__":
        main(sys.argv[1], int(sys.argv[2]))
"""


@pytest.mark.parametrize(("method", "kills"), [("fork", 90), ("spawn", 10)])
def test_killed_processes_leave_nothing(tmp_path, method, kills):
    assert run_file(program(tmp_path, KILLS), method, str(kills), timeout=300) == "done\n"

"""Faults on purpose: the program's values stay, one warning, and all else of the dump is there."""

import builtins
import collections
import contextlib
import errno
import logging
import os
import re
import shutil
import threading
import warnings
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.capture import store  # noqa: E402
from depyf.capture.session import Session  # noqa: E402
from depyf.capture.torch_private import hooks, touchpoints, versions  # noqa: E402
from depyf.capture.torch_private.shared import shared  # noqa: E402
from depyf.output import directory  # noqa: E402

#: The name of each touchpoint in its module.
NAMES = [name for name, value in vars(touchpoints).items() if isinstance(value, touchpoints.Touchpoint)]


def broken(x, y):
    x = torch.sin(x) + 1
    if y.sum() < 0:
        y = -y
    return x * y


def trained(x):
    return torch.nn.functional.gelu(x) * 2


def program():
    """A graph break, a recompile, gradients; every value that comes out."""
    torch._dynamo.reset()
    eager = torch.compile(broken, backend="eager", dynamic=False)
    found = [eager(torch.ones(n), torch.full((n,), sign)) for n, sign in ((2, 1.0), (2, -1.0), (3, 1.0))]
    x = torch.ones(4, requires_grad=True)
    out = torch.compile(trained, backend="aot_eager")(x)
    out.sum().backward()
    return [*found, out.detach(), x.grad]


def small_program():
    torch._dynamo.reset()
    return [torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))]


def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right))


def kinds(path):
    """Names of files without numbers (Dynamo counts on through the process), and how often."""
    return collections.Counter(re.sub(r"\d+", "N", name) for name in os.listdir(path) if name != "notes.txt")


def state_of_torch():
    """What a session changes."""
    values = []
    for point in touchpoints.TABLE:
        with contextlib.suppress(touchpoints.MissingTouchpoint):
            values.append(point.get())
    return (values, list(logging.getLogger(hooks.TRACE_LOGGER).handlers),
            list(torch._dynamo.convert_frame._bytecode_hooks.values()))


@contextlib.contextmanager
def warned(times):
    """Exactly so many warnings of ours."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    ours = [str(w.message) for w in seen if "depyf" in str(w.message)]
    assert len(ours) == times, ours


@pytest.fixture(scope="module")
def plain():
    return program()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The dump without faults."""
    with depyf.prepare_debug(str(tmp_path_factory.mktemp("whole") / "d")) as on:
        program()
    return kinds(on.path)


@pytest.fixture(autouse=True)
def said_nothing(monkeypatch):
    monkeypatch.setattr(versions, "_said", set())
    before = state_of_torch()
    yield
    monkeypatch.undo()
    assert state_of_torch() == before
    torch._dynamo.reset()


# --- names of torch's --------------------------------------------------------------------------------
#: Files that may be absent, or have other names, without a touchpoint. All others need none of them.
LOST = {
    "BYTECODE_HOOK": r".*",  # no name of a function and none of a graph is known
    "COMPILED_FRAME": r"__transformed_code.*|full_code.*",
    "GRAPH_NAME": r".*",
    "RESUME_NAME": r"full_code.*|__transformed_code.*",
    "RESUME_CODE": "",
    "COMPILE_ID": r"__compiled_fn.*|__graph.*|__transformed_code.*|full_code.*",
    "TRACE_LOG": r".*\.Joint_graph\..*",
    "CAPTURED_GRAPH": "",
    "READABLE_GRAPH": "",
}


@pytest.mark.parametrize("name", NAMES)
def test_torch_without_a_name(name, plain, whole, tmp_path, monkeypatch, capfd):
    point = getattr(touchpoints, name)
    gone = replace(point, places=("torch:gone_in_this_version",), key=point.key and "gone_in_this_version")
    monkeypatch.setattr(touchpoints, name, gone)
    monkeypatch.setattr(touchpoints, "TABLE", tuple(gone if each is point else each for each in touchpoints.TABLE))
    with warned(0):
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = program()
        with depyf.debug(pause=False):
            again = program()
    assert same(plain, watched) and same(plain, again)
    assert capfd.readouterr().err.count("lacks 1 of the names that depyf uses") == 1
    notes = (tmp_path / "d" / "notes.txt").read_text()
    assert f"lost: {point.lost}" in notes and "internal error" not in notes
    found, may = kinds(on.path), LOST.get(name, "")
    absent = [each for each in (whole - found) if not re.fullmatch(may, each)]
    assert absent == [], f"lost, and not by what the table says: {absent}"
    assert store.read(os.path.join(on.path, store.FILE)).environment["torch"] == torch.__version__


# --- our own code ------------------------------------------------------------------------------------
#: Files that the hook would have led to.
OF_HOOK = {
    "_on_bytecode": r".*",
    "_on_trace": r"__compiled_fn.*",
    "_wanted": r"__compiled_fn.*",
    "_before_backend": r"__compiled_fn.*\.Captured_Graph\..*",
    "_after_backend": "",
    "_on_aot_graph": "",
}


@pytest.mark.parametrize("hook", OF_HOOK)
def test_a_hook_that_raises(hook, plain, whole, tmp_path, monkeypatch):
    calls = []

    def raises(self, *args):
        calls.append(args)
        raise RecursionError("ours")

    monkeypatch.setattr(Session, hook, raises)
    # Where others listen (pytest does), nobody asks us what we want.
    monkeypatch.setattr(logging.getLogger(hooks.TRACE_LOGGER), "handlers", [])
    with warned(1):
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = program()
    assert same(plain, watched) and calls
    assert "internal error: RecursionError: ours" in (tmp_path / "d" / "notes.txt").read_text()
    absent = [each for each in whole - kinds(on.path) if not re.fullmatch(OF_HOOK[hook], each)]
    assert absent == []
    store.read(os.path.join(on.path, store.FILE))


def test_full_code_of_one_function_that_cannot_be_made(plain, whole, tmp_path, monkeypatch):
    from depyf.output import full_code

    real = full_code.full_code

    def raises(function, graphs):
        if function.name == "broken":
            raise ZeroDivisionError("ours")
        return real(function, graphs)

    monkeypatch.setattr(full_code, "full_code", raises)
    with warned(1):
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = program()
    assert same(plain, watched)
    assert list(whole - kinds(on.path)) == ["full_code_for_broken_N.py"]


# --- the disk ----------------------------------------------------------------------------------------
class Disk:
    """Stands in for ``open`` in the module that writes: some writes fail in the middle.

    Args:
        fails: whether the n-th write fails (from 0).
        code: the system's error number.
    """

    def __init__(self, fails, code=errno.ENOSPC):
        self.fails = fails
        self.code = code
        self.count = 0

    def open(self, path, mode="r", *args, **kwargs):
        file = builtins.open(path, mode, *args, **kwargs)
        if "r" not in mode:
            return _File(file, self)
        return file


class _File:
    def __init__(self, file, disk):
        self.file, self.disk = file, disk

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        number, self.disk.count = self.disk.count, self.disk.count + 1
        if self.disk.fails(number):
            self.file.write(data[: len(data) // 2])
            raise OSError(self.disk.code, os.strerror(self.disk.code))
        return self.file.write(data)


def written_with(disk, path, monkeypatch):
    """The dump of the small program, and its values."""
    with monkeypatch.context() as patch:
        run = depyf.prepare_debug(str(path))
        with run:
            patch.setattr(directory, "open", disk.open, raising=False)
            values = small_program()
    return run.path, values


def test_a_full_disk_at_each_write(tmp_path, monkeypatch):
    counting = Disk(lambda number: False)
    path, plain = written_with(counting, tmp_path / "whole", monkeypatch)
    whole = kinds(path)
    assert counting.count >= 6
    for number in range(counting.count):
        for what, fails in (("once", lambda n: n == number), ("on", lambda n: n >= number)):  # noqa: B023
            with warned(1):
                path, values = written_with(Disk(fails), tmp_path / f"{what}{number}", monkeypatch)
            assert same(plain, values)
            assert not [name for name in os.listdir(path) if name.endswith(".partial")]
            absent = whole - kinds(path)
            if what == "once":
                assert sum(absent.values()) <= 1, absent
                lost = set(absent) - {store.FILE}
                if lost and os.path.exists(os.path.join(path, "notes.txt")):
                    with open(os.path.join(path, "notes.txt")) as notes:
                        assert "not written: " in notes.read()
            if os.path.exists(os.path.join(path, store.FILE)) and os.path.getsize(os.path.join(path, store.FILE)):
                store.read(os.path.join(path, store.FILE))


def test_a_directory_that_becomes_read_only(tmp_path, monkeypatch):
    with warned(1):
        _, values = written_with(Disk(lambda number: True, errno.EACCES), tmp_path / "d", monkeypatch)
    assert same(small_program(), values)


def test_a_directory_that_is_taken_away(tmp_path):
    with warned(1):
        with depyf.prepare_debug(str(tmp_path / "d")):
            shutil.rmtree(tmp_path / "d")
            (tmp_path / "d").write_text("a file now")
            values = small_program()
    assert same(small_program(), values)
    assert (tmp_path / "d").read_text() == "a file now"


# --- two at once -------------------------------------------------------------------------------------
@pytest.mark.parametrize("caches", ["separate", "bypass"])
@pytest.mark.parametrize("first_ends_first", [True, False])
def test_two_sessions_in_two_threads(first_ends_first, caches, plain, whole, tmp_path):
    """Each begins before the other ends, and they end in either order; both dumps are whole."""
    begun, over = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]
    errors, values = [], []

    def work(mine):
        try:
            with depyf.prepare_debug(str(tmp_path / str(mine)), caches=caches):
                begun[mine].set()
                assert begun[1 - mine].wait(60)
                if mine == (0 if first_ends_first else 1):
                    values.append(program())
                else:
                    assert over[1 - mine].wait(100)
                    values.append(program())
        except BaseException as error:
            errors.append(error)
        finally:
            over[mine].set()

    with warned(0):
        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        [thread.start() for thread in threads]
        [thread.join(200) for thread in threads]
    assert not errors and all(same(plain, each) for each in values) and len(values) == 2
    for name in ("0", "1"):
        assert whole - kinds(tmp_path / name) == collections.Counter()


def test_two_debug_blocks_that_end_in_the_wrong_order(tmp_path):
    from depyf.capture.torch_private.stance import no_compilation

    before = state_of_torch()
    missed = ([], [])
    first, second = no_compilation(missed[0].append), no_compilation(missed[1].append)
    first.__enter__()
    told = second.__enter__()
    small_program()
    first.__exit__(None, None, None)
    small_program()
    second.__exit__(None, None, None)
    assert state_of_torch() == before
    if told:
        assert (len(missed[0]), len(missed[1])) == (1, 2)


def test_a_shared_change_is_made_once_and_taken_back_once():
    done = []

    def make(users):
        done.append(("made", users.wanted))
        return lambda: done.append(("undone", users.wanted))

    change = shared(object())
    leave = [change.join(each, make) for each in ("a", "b", "a")]
    assert change.wanted == ("a", "b", "a")
    leave[0]()
    leave[0]()
    assert change.wanted == ("b", "a")
    leave[2]()
    assert change.wanted == ("b",)
    leave[1]()
    assert done == [("made", ()), ("undone", ())]
    change.join("c", make)()
    assert len(done) == 4

"""Faults on purpose: the program's values stay, one warning, and all else of the dump is there."""

import builtins
import collections
import contextlib
import errno
import gc
import io
import logging
import os
import re
import shutil
import sys
import threading
import types
import warnings
import zlib
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf import harmless  # noqa: E402
from depyf.capture.session import Session  # noqa: E402
from depyf.capture.torch_private import hooks, private_api, trace_events  # noqa: E402
from depyf.capture.torch_private.hooks import shared_patch  # noqa: E402
from depyf.decompiler import errors  # noqa: E402
from depyf.finishing.frames import read_records  # noqa: E402
from depyf.records import store
from depyf.report import report  # noqa: E402
from small_programs import broken, trained  # noqa: E402

#: The name of each private API in its module.
NAMES = [name for name, value in vars(private_api).items() if isinstance(value, private_api.PrivateApi)]


def is_tried(name):
    """Whether a fault in this function is tried: one of so many, chosen by its name (``make heavy`` tries all)."""
    return zlib.crc32(name.encode()) % int(os.environ.get("DEPYF_TEST_ONE_OF", "5")) == 0


def program():
    """A graph break, a recompile, gradients; every value that comes out."""
    torch._dynamo.reset()
    eager = torch.compile(broken, backend="eager", dynamic=False)
    results = [eager(torch.ones(n), torch.full((n,), sign)) for n, sign in ((2, 1.0), (2, -1.0), (3, 1.0))]
    x = torch.ones(4, requires_grad=True)
    out = torch.compile(trained, backend="aot_eager")(x)
    out.sum().backward()
    return [*results, out.detach(), x.grad]


def brief_program():
    """The same of all kinds in less time."""
    torch._dynamo.reset()
    eager = torch.compile(broken, backend="eager", dynamic=False)
    results = [eager(torch.ones(n), torch.ones(n)) for n in (2, 3)]
    return [*results, torch.compile(trained, backend="aot_eager")(torch.ones(4))]


def two_sizes():
    torch._dynamo.reset()
    double = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    return [double(torch.ones(2)), double(torch.ones(3))]


def small_program():
    torch._dynamo.reset()
    return [torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))]


def with_a_layer():
    """One with modules, whose graphs have outlines."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.ones(2, requires_grad=True)
    torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), backend="aot_eager")(x).sum().backward()
    return [x.grad]


def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right))


def kinds(path):
    """Names of files without numbers (Dynamo counts on through the process), and how often."""
    return collections.Counter(re.sub(r"\d+", "N", name) for name in os.listdir(path) if name != "notes.txt")


def state_of_torch():
    """What a session changes."""
    values = []
    for api in private_api.TABLE:
        with contextlib.suppress(private_api.MissingPrivateApi):
            values.append(api.get())
    # (Torch takes away one of its own handlers at the first event.)
    handlers = [each for each in logging.getLogger(trace_events.TRACE_LOGGER).handlers
                if type(each).__name__ != "LazyTraceHandler"]
    return (values, handlers,
            list(torch._dynamo.convert_frame._bytecode_hooks.values()))


@contextlib.contextmanager
def messages():
    """A list that gets the warnings and lines of ours."""
    ours = []
    with warnings.catch_warnings(record=True) as seen, contextlib.redirect_stderr(io.StringIO()) as lines:
        warnings.simplefilter("always")
        yield ours
    ours += [each for each in (*(str(w.message) for w in seen), *lines.getvalue().splitlines()) if "depyf" in each]


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
    monkeypatch.setattr(private_api, "_warned", set())
    gc.collect()  # what other tests left lets go of its hooks now, not in between
    before = state_of_torch()
    yield
    monkeypatch.undo()
    assert state_of_torch() == before
    torch._dynamo.reset()


# --- names of torch's --------------------------------------------------------------------------------
#: Files that may be absent, or have other names, without a private API. All others need none.
LOST = {
    "BYTECODE_HOOK": r".*",  # no name of a function and none of a graph is known
    "COMPILED_FRAME": r"__transformed_code.*|full_code.*|guards_.*",
    "GRAPH_NAME": r".*",
    "RESUME_NAME": r"full_code.*|__transformed_code.*|guards_.*",
    "RESUME_CODE": "",
    "COMPILE_ID": r"__compiled_fn.*|__graph.*|__transformed_code.*|full_code.*",
    "TRACE_LOG": r".*\.Joint_graph\..*",
    "CAPTURED_GRAPH": "",
    "READABLE_GRAPH": r".*\.Captured_Graph\..*",
}


@pytest.mark.parametrize("name", NAMES)
def test_torch_without_a_name(name, plain, whole, tmp_path, monkeypatch, capfd):
    api = getattr(private_api, name)
    gone = replace(api, places="torch:gone_in_this_version", key=api.key and "gone_in_this_version")
    monkeypatch.setattr(private_api, name, gone)
    monkeypatch.setattr(private_api, "TABLE", tuple(gone if each is api else each for each in private_api.TABLE))
    with warned(0):
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = program()
        with depyf.debug(pause=False):
            again = program()
    assert same(plain, watched) and same(plain, again)
    lacking = len(hooks.missing())  # this torch may lack others
    assert capfd.readouterr().err.count(f"lacks {lacking} of the names that depyf uses") == bool(lacking)
    notes = (tmp_path / "d" / "notes.txt").read_text()
    assert (f"lost: {api.lost}" in notes) == api.loses and "internal error" not in notes
    present, may = kinds(on.path), LOST.get(name, "")
    absent = [each for each in (whole - present) if not re.fullmatch(may, each)]
    assert absent == [], f"lost, and not by what the table says: {absent}"
    assert store.read(os.path.join(on.path, store.FILE)).environment["torch"] == torch.__version__


def test_a_line_that_cannot_be_said(plain, tmp_path, monkeypatch):
    monkeypatch.setattr(private_api, "TESTED", ((0, 1),))
    closed = open(os.devnull, "w")
    closed.close()
    with warned(0):  # (a warning would go to the same stderr)
        monkeypatch.setattr(sys, "stderr", closed)
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = program()
        monkeypatch.undo()
    assert same(plain, watched)
    assert "is newer than the newest" in (tmp_path / "d" / "notes.txt").read_text()
    assert store.read(os.path.join(on.path, store.FILE)).functions


# --- our own code ------------------------------------------------------------------------------------
#: Files that the hook would have led to.
OF_HOOK = {
    "_on_bytecode": r".*",
    "_on_trace": r"__compiled_fn.*",
    "_wanted": "",
    "_before_backend": r"__compiled_fn.*\.Captured_Graph\..*",
    "_after_backend": "",
    "_before_aot": "",
    "_on_aot_graph": r"__compiled_fn.*\.(For|Back)ward_graph\..*",
    "_on_line": "",
    "_on_frame": "",
}


@pytest.mark.parametrize("hook", OF_HOOK)
def test_a_hook_that_raises(hook, plain, whole, tmp_path, monkeypatch):
    calls = []

    def raises(self, *args):
        calls.append(args)
        raise RecursionError("ours")

    monkeypatch.setattr(Session, hook, raises)
    # Where others listen (pytest does), nobody asks us what we want.
    monkeypatch.setattr(logging.getLogger(trace_events.TRACE_LOGGER), "handlers", [])
    with warned(1):
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = program()
    assert same(plain, watched) and calls
    assert "internal error: RecursionError: ours" in (tmp_path / "d" / "notes.txt").read_text()
    absent = [each for each in whole - kinds(on.path) if not re.fullmatch(OF_HOOK[hook], each)]
    assert absent == []
    store.read(os.path.join(on.path, store.FILE))


#: What is called on the way in or out, where the program does not run, and answers to the user.
ASKED_BY_THE_USER = {
    "prepare_debug", "_arguments", "_files_wanted", "run_directory", "_claimed", "_marked", "Folder.__init__", "session_started",
    "DebugSession.__init__", "session_ended", "support_status", "numbers", "rank_and_world", "_torch_version"}
#: A line or two around the guard itself (``Session._safely``).
OUTSIDE_THE_GUARD = {"TraceHandler.handle"}
#: What takes hooks back.
TAKES_BACK = {"Session.detach", "_rebind", "_forget"}
#: How our code says that something is wrong: not what is tried.
SAYS_SO = {"guarded_call", "Session._report", "Session.note", "Session.attempt", "Directory._failed", "Linker._note"}


def functions_of_ours():
    """``{name: function}`` of all that runs while a program is watched, but for the decompiler, which has one way in
    and one guard."""
    functions = {}
    for name, module in sorted(sys.modules.items()):
        if not re.match(r"depyf\.(capture|records|torch_text|provenance|finishing|views|link|prepare|run_files|decompiler$)", name) or module is None:
            continue
        for owner, values in [("", vars(module)), *((each.__name__ + ".", vars(each)) for each in vars(module).values()
                                                    if isinstance(each, type) and each.__module__ == name)]:
            for key, value in list(values.items()):
                value = getattr(value, "fget", None) or getattr(value, "__func__", value)
                if isinstance(value, types.FunctionType) and value.__module__ == name and not value.__code__.co_freevars \
                        and value.__code__.co_filename.endswith(".py"):
                    functions.setdefault(owner + key, value)
    return {name: function for name, function in functions.items()
            if name not in ASKED_BY_THE_USER | OUTSIDE_THE_GUARD | TAKES_BACK | SAYS_SO and not name.startswith("prepare_debug.")}


def functions_that_run(ours, program, path):
    """The names of those that are called while the program is watched."""
    by_code = {id(function.__code__): name for name, function in ours.items()}  # (equal ones of two modules are equal)
    met = set()
    sys.setprofile(lambda frame, event, argument: met.add(id(frame.f_code)) if event == "call" else None)
    try:
        with depyf.prepare_debug(path):
            program()
    finally:
        sys.setprofile(None)
    return [name for code, name in by_code.items() if code in met]


def forget_results():
    """What was kept of earlier calls (``functools.lru_cache``), so that each function is called again."""
    for name, module in list(sys.modules.items()):
        if name.startswith("depyf."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    errors._warned.clear()  # of which mistakes the decompiler has warned


def fails(*args, **kwargs):
    raise LookupError("ours")


def test_each_function_of_ours_that_raises(tmp_path):
    """The program is as it was, there is one warning or one line in the notes, and what was written is there."""
    with depyf.prepare_debug(str(tmp_path / "first")):  # all of our modules are imported
        brief_program()
    ours = functions_of_ours()
    programs = {}  # the first that calls the function
    for program in (two_sizes, brief_program):
        for name in functions_that_run(ours, program, str(tmp_path / program.__name__)):
            programs.setdefault(name, program)
    assert len(programs) > 150
    programs = {name: program for name, program in programs.items() if is_tried(name)}
    assert programs
    plain = {program: program() for program in (two_sizes, brief_program)}
    wrong, torch_before = {}, state_of_torch()
    for number, (name, program) in enumerate(programs.items()):
        code = ours[name].__code__
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            ours[name].__code__ = fails.__code__
            forget_results()
            try:
                on = depyf.prepare_debug(str(tmp_path / str(number)))
                with on:
                    values = program()
                    written = set(os.listdir(on.path))
                    shutil.copytree(on.path, tmp_path / "streamed", dirs_exist_ok=True)
            except BaseException as error:
                wrong[name] = f"reached the program: {error!r}"
                continue
            finally:
                ours[name].__code__ = code
        messages = [str(each.message) for each in seen if "depyf" in str(each.message)]
        notes = ""
        if os.path.exists(os.path.join(on.path, "notes.txt")):
            with open(os.path.join(on.path, "notes.txt")) as file:
                notes = file.read()
        streamed, kept = lines_in(tmp_path / "streamed"), lines_in(on.path)
        shutil.rmtree(tmp_path / "streamed")
        gone = written - set(os.listdir(on.path))
        if not same(plain[program], values):
            wrong[name] = "other values"
        elif len(messages) > 1 or not messages and "LookupError" not in notes:
            wrong[name] = f"{len(messages)} warnings: {messages}"
        elif [each for each in gone if not re.match(r"__graph_of|__compiled_fn_\d+\.", each)]:
            wrong[name] = f"lost files: {gone}"
        elif state_of_torch() != torch_before:
            wrong[name] = "torch is not left as it was"
        elif streamed - kept:
            wrong[name] = f"lost records: {streamed - kept}"
        elif not os.path.exists(os.path.join(on.path, store.FILE)) and name not in NOTHING_WITHOUT:
            wrong[name] = "no records"
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


#: Without these no line of records can be written.
NOTHING_WITHOUT = {"line", "_line", "first_line", "_plain", "_defaults", "lines"}


def lines_in(path):
    """What the records tell of, without what they say."""
    file = os.path.join(path, store.FILE)
    if not os.path.exists(file) or not os.path.getsize(file):
        return set()
    capture = read_records(path)
    return {*(("graph", each.name) for each in capture.graphs),
            *(("compilation", each.compile_id.frame, each.compile_id.recompile) for each in capture.compilations),
            *(("code", entry.compile_id) for function in capture.functions for frame in function.frames
              for entry in frame.entries)}


# --- the disk ----------------------------------------------------------------------------------------
class Disk:
    """Stands in for ``open`` in the module that writes: the writing of some files fails.

    Args:
        fails: whether the n-th file that is opened for writing does (from 0).
        when: ``"open"``, ``"write"`` (half of it is written) or ``"close"``.
        code: the system's error number.
    """

    def __init__(self, fails, when="write", code=errno.ENOSPC):
        self.fails = fails
        self.when = when
        self.code = code
        self.names = []  # of all files so far

    def open(self, path, mode="r", *args, **kwargs):
        if "r" in mode:
            return builtins.open(path, mode, *args, **kwargs)
        failing = self.fails(len(self.names))
        self.names.append(re.sub(r"\.\d+\.partial$", "", os.path.basename(path)))
        if failing and self.when == "open":
            self.fail()
        return _File(builtins.open(path, mode, *args, **kwargs), self if failing else None)

    def fail(self):
        raise OSError(self.code, os.strerror(self.code))


class _File:
    def __init__(self, file, disk):
        self.file, self.disk = file, disk

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        self.file.close()
        if self.disk is not None and self.disk.when == "close" and kind is None:
            self.disk.fail()

    def close(self):
        self.__exit__(None)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        if self.disk is not None and self.disk.when == "write":
            self.file.write(data[: len(data) // 2])
            self.disk.fail()
        return self.file.write(data)


def written_with(disk, path, monkeypatch, program):
    """The dump of the program, and its values."""
    with monkeypatch.context() as patch:
        run = depyf.prepare_debug(str(path))
        with run:
            patch.setattr(harmless, "open", disk.open, raising=False)
            patch.setattr(store, "open", disk.open, raising=False)
            values = program()
    return run.path, values


def notes_of(path):
    with open(os.path.join(path, "notes.txt")) as file:
        return file.read()


@pytest.mark.parametrize("when", ["open", "write", "close"])
@pytest.mark.parametrize("program", [small_program, with_a_layer])
def test_a_full_disk_at_each_write(program, when, tmp_path, monkeypatch):
    """That file is lost, and nothing else."""
    counting = Disk(lambda number: False)
    path, plain = written_with(counting, tmp_path / "whole", monkeypatch, program)
    whole, records = kinds(path), lines_in(path)
    assert {store.FILE, "index.md", "notes.txt"} <= set(counting.names) and len(counting.names) >= 8
    for number in range(len(counting.names)):
        disk = Disk(lambda n: n == number, when)
        with messages() as ours:
            path, values = written_with(disk, tmp_path / str(number), monkeypatch, program)
        assert same(plain, values)
        assert not [name for name in os.listdir(path) if name.endswith(".partial")]
        lost = disk.names[number]
        absent = set(whole - kinds(path))
        assert [f"missing in {path}: {lost}" in each for each in ours] == [True] * bool(absent), (ours, absent)
        # Graphs are written again when they are linked, notes when there is more to say.
        # (An outline tells of lines in the file of its graph.)
        name = re.sub(r"\d+", "N", lost)
        assert absent <= {name, name.removesuffix(".py") + ".outline.txt"}, (lost, absent)
        # Without the last form of the records there is what was written while the program ran.
        assert len(lines_in(path)) == len(records) or lost == store.FILE
        assert len(lines_in(path)) >= len(records) - 1
        if lost not in (store.FILE, "notes.txt"):
            assert f"not written: {lost}" in notes_of(path)


@pytest.mark.parametrize("when", ["open", "write", "close"])
def test_a_disk_that_is_full_from_then_on(when, tmp_path, monkeypatch):
    counting = Disk(lambda number: False)
    whole, plain = written_with(counting, tmp_path / "whole", monkeypatch, small_program)
    for number in range(len(counting.names)):
        with messages() as ours:
            path, values = written_with(
                Disk(lambda n: n >= number, when), tmp_path / str(number), monkeypatch, small_program)
        assert len(ours) == bool(kinds(whole) - kinds(path)), ours
        assert same(plain, values)
        # What was written before is there, as a whole.
        assert {name for name in counting.names[:number] if name.endswith(".py")} <= {
            re.sub(r"(?<=_fn_)\d+", found_number(counting.names), name) for name in os.listdir(path)}
        lines_in(path)


def test_a_report_on_a_full_disk_names_what_is_missing(tmp_path, monkeypatch):
    with depyf.prepare_debug(str(tmp_path / "d")):
        small_program()
    monkeypatch.setattr(harmless, "open", Disk(lambda number: number > 1).open, raising=False)
    with messages() as ours:
        report(str(tmp_path / "d"), str(tmp_path / "out"))
    assert [f"missing in {tmp_path / 'out'}: " in each and "(No space left on device); the report is incomplete" in each
            for each in ours] == [True], ours


def found_number(names):
    """Dynamo counts graphs on through the process: the number in these names."""
    return re.search(r"_fn_(\d+)", " ".join(names))[1]


@pytest.mark.torch_since((2, 11), "a message says that it lacks names")
def test_a_directory_that_becomes_read_only(tmp_path, monkeypatch):
    with messages() as ours:
        _, values = written_with(
            Disk(lambda number: True, "open", errno.EROFS), tmp_path / "d", monkeypatch, small_program)
    assert same(small_program(), values)
    assert ["missing in" in each for each in ours] == [True], ours


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_to_write(tmp_path):
    with messages() as ours:
        with depyf.prepare_debug(str(tmp_path / "d")):
            (tmp_path / "d").chmod(0o555)
            values = small_program()
    (tmp_path / "d").chmod(0o755)
    assert same(small_program(), values)
    assert ["missing in" in each for each in ours] == [True], ours


@pytest.mark.torch_since((2, 11), "a message says that it lacks names")
def test_a_directory_that_is_taken_away(tmp_path):
    with messages() as ours:
        with depyf.prepare_debug(str(tmp_path / "d")):
            shutil.rmtree(tmp_path / "d")
            (tmp_path / "d").write_text("a file now")
            values = small_program()
    assert same(small_program(), values)
    assert ["missing in" in each for each in ours] == [True], ours
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


@pytest.mark.parametrize("lacking", ["", "STANCE_ANSWER"])
def test_two_debug_blocks_that_end_in_the_wrong_order(lacking, tmp_path, monkeypatch):
    from depyf.capture.torch_private.hooks import no_compilation

    if lacking:
        monkeypatch.setattr(private_api, lacking, replace(
            getattr(private_api, lacking), places="torch:gone_in_this_version"))
    before = state_of_torch()
    missed = ([], [])
    first, second = no_compilation(missed[0].append), no_compilation(missed[1].append)
    first.__enter__()
    session = second.__enter__()
    small_program()
    first.__exit__(None, None, None)
    small_program()
    second.__exit__(None, None, None)
    assert state_of_torch() == before
    if session:
        assert (len(missed[0]), len(missed[1])) == (1, 2)
    torch._dynamo.reset()
    compiled = []
    torch.compile(lambda x: x + 1, backend=lambda gm, _: compiled.append(gm) or gm.forward)(torch.ones(2))
    assert len(compiled) == 1, "torch compiles again"


def test_a_shared_change_is_made_once_and_taken_back_once():
    done = []

    def make(users):
        done.append(("made", users.wanted))
        return lambda: done.append(("undone", users.wanted))

    change = shared_patch(object())
    release = [change.acquire(each, make) for each in ("a", "b", "a")]
    assert change.wanted == ("a", "b", "a")
    release[0]()
    release[0]()
    assert change.wanted == ("b", "a")
    release[2]()
    assert change.wanted == ("b",)
    release[1]()
    assert done == [("made", ()), ("undone", ())]
    change.acquire("c", make)()
    assert len(done) == 4

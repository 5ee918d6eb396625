"""Hooks of pytest around each test: record it, judge it, report it.

A test is recorded from before its fixtures are set up to the end of its call. With xdist the workers record and send
the accounts to the controller, which reports; the controller names the directory, so that all write to the same.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from ..capture.torch_private import trace_events
from ..capture.torch_private.trace_events import TRACE_LOGGER
from ..records.model import Capture
from ..records.run_directory import shown
from ..values import frozen
from ..views.budgets import Budget, BudgetError, budgets, exceeded, judge
from ..views.causes import cause
from ..views.markdown import count, one_line
from ..views.run_index import RunIndex
from ..views.verdict import Totals

if TYPE_CHECKING:
    from ..prepare import Recording

#: The key by which workers of xdist get and send our data.
_KEY = "depyf"
_HEADING = "beyond the budgets of depyf"


class Recorder:
    """Records and judges the tests of a session."""

    def __init__(self, config: pytest.Config) -> None:
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        wanted = config.getoption(_KEY)
        self.directory: str | None = None  #: Of all dumps of the session; ``None``: they are deleted.
        if wanted is not None:
            if os.path.exists(wanted) and not os.path.isdir(wanted):
                raise pytest.UsageError(f"--depyf={wanted}: that is a file; give the name of a directory")
            self.directory = worker[_KEY] if worker is not None and worker.get(_KEY) else session_directory(wanted)
        #: One process reports what is compiled while test files are imported: each worker imports all of them.
        self.collects = self.directory is not None and (worker is None or worker.get("workerid") == "gw0")
        self.accounts: list[Account] = []
        self.collected: list[Account] = []  # of files, while they were imported
        self.troubles: list[str] = []
        # Until the report of a test is made, by node id: its account and trouble, and what it is beyond, having failed.
        self._recorded: dict[str, dict[str, Any]] = {}
        self._complaints: dict[str, str] = {}
        # Of what is recorded now: ends the wait for the first compilation, where the dump goes (``None``: nowhere).
        self._cancel: Callable[[], None] = lambda: None
        self._folder: str | None = None
        self._temporary = ""
        self._recording: Recording | None = None
        self._trouble = ""

    # --- what is compiled between two moments ------------------------------------------------------------
    # Nothing is done, written or imported before the first frame is compiled, so that a test which compiles nothing
    # runs as it would without.
    def _begin(self, nodeid: str) -> None:
        """Wait for the first compilation of a test or file."""
        self._end()
        self._folder = os.path.join(self.directory, folder_name(nodeid)) if self.directory is not None else None
        self._cancel = trace_events.before_first(self._first)

    def _first(self) -> None:
        try:
            from ..prepare import Recording

            if self._folder is None:
                self._temporary = tempfile.mkdtemp(prefix="depyf-")
            recording = Recording(self._folder or self._temporary, (), "pytest", first=False, page=False,
                                  link=None if self._folder is not None else False, files="now")
            recording.__enter__()
            self._recording = recording
        except Exception as error:  # ours: the test goes on
            self._trouble = f"{error or type(error).__name__}"

    def _end(self) -> tuple[Capture | None, str, str]:
        """Return what was compiled since :meth:`_begin`, the folder of its dump, and why it could not be recorded."""
        self._cancel()
        recording, self._recording = self._recording, None
        temporary, self._temporary = self._temporary, ""
        trouble, self._trouble = self._trouble, ""
        try:
            if recording is None:
                return None, "", trouble
            recording.__exit__(None, None, None)
            return recording.capture, "" if temporary else recording.path, ""
        except Exception as error:  # ours: the test is not to see it
            return None, "", f"{type(error).__name__}: {error}"
        finally:
            if temporary:
                shutil.rmtree(temporary, ignore_errors=True)

    # --- while test files are imported -----------------------------------------------------------------
    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Record what is compiled while a file is imported."""
        if not self.collects or not isinstance(collector, pytest.File):
            return (yield)
        self._begin(f"{collector.nodeid}::collected")
        try:
            return (yield)
        finally:
            capture, folder, trouble = self._end()
            if trouble:
                self.troubles.append(trouble)
            elif capture is not None and capture.compilations:
                self.collected.append(Account.of(f"{collector.nodeid} (while it was imported)", folder, capture))

    # --- a test ----------------------------------------------------------------------------------------
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin to record, before the fixtures are set up; tests that are skipped do not come here."""
        try:
            marked = Marked.of(item)
        except BudgetError as error:
            pytest.fail(f"@pytest.mark.compiles: {error}", pytrace=False)
        if marked is not None or self.directory is not None:
            _show_no_events(item.config)
            self._begin(item.nodeid)
        if marked is not None and marked.reset and trace_events.FRAME.first_place[0] in sys.modules:
            sys.modules["torch"].compiler.reset()  # (so that it does not matter which tests ran before)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """End the recording, and fail the test where it is beyond its budgets."""
        marked = Marked.of(item)
        try:
            result = yield
        except pytest.skip.Exception:
            self._judge(item, None)
            raise
        except BaseException:
            self._complaints[item.nodeid] = self._judge(item, marked, failed=True)
            raise
        complaint = self._judge(item, marked)
        if complaint:
            pytest.fail(complaint, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Add to the report of a test its account and, after its own failure, what is beyond its budgets."""
        if call.when == "setup" and call.excinfo is not None:
            self._judge(item, None)
        report = yield
        if complaint := self._complaints.pop(item.nodeid, ""):
            report.sections.append((_HEADING, complaint))
        vars(report).update(self._recorded.pop(item.nodeid, {}))
        return report

    def _judge(self, item: pytest.Item, marked: Marked | None, failed: bool = False) -> str:
        """End the recording of a test and return what is beyond its budgets."""
        capture, folder, trouble = self._end()
        complaint = ""
        sent = self._recorded[item.nodeid] = {}
        try:
            if capture is not None and folder and capture.compilations:
                sent["depyf"] = asdict(Account.of(item.nodeid, folder, capture))
            complaint = marked.complaint(capture, failed) if marked is not None else ""
        except Exception as error:  # ours: it is not to look like the test's
            trouble = trouble or f"internal error: {type(error).__name__}: {error}"
        if not trouble:
            return complaint
        sent["depyf_trouble"] = trouble
        return f"What this test compiled cannot be judged: {trouble}" if marked is not None else ""

    # --- the session -----------------------------------------------------------------------------------
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the account of a test, also from a worker."""
        if (account := getattr(report, "depyf", None)) is not None:
            self.accounts.append(Account(**account))
        if trouble := getattr(report, "depyf_trouble", ""):
            self.troubles.append(trouble)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker of xdist the directory."""
        node.workerinput[_KEY] = self.directory

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take from a worker what it recorded while files were imported."""
        output = getattr(node, "workeroutput", {}).get(_KEY) or {}
        self.collected += [Account(**each) for each in output.get("collected", ())]
        self.troubles += output.get("troubles", ())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Leave torch as it was; in a worker, send what no report carries."""
        self._end()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_KEY] = {"collected": [asdict(each) for each in self.collected], "troubles": self.troubles}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Report what the tests compiled."""
        if self.directory is None:
            return
        terminalreporter.section("depyf")
        for line in summary(self.collected + self.accounts, self.directory, self.troubles):
            terminalreporter.line(line)


def _show_no_events(config: pytest.Config) -> None:
    """Keep torch's trace events, which have no text, out of the log that pytest (9 on) shows."""
    plugin = config.pluginmanager.get_plugin("logging-plugin")
    for name in ("report_handler", "log_cli_handler"):
        handler = getattr(plugin, name, None)
        if isinstance(handler, logging.Handler):
            handler.addFilter(_has_text)  # (which adds it once)


def _has_text(record: logging.LogRecord) -> bool:
    return record.name != TRACE_LOGGER or bool(record.msg)


# --- folders of tests --------------------------------------------------------------------------------
#: Longer names are cut: some file systems take 255 bytes, and files within have names, too.
_LONGEST = 100
_OURS = re.compile(r"(run|rank)_\d+", re.IGNORECASE)  #: What depyf itself calls folders in a dump.


def folder_name(nodeid: str) -> str:
    """Return the name of a test's folder; one that was changed by more than separators ends in a hash of the whole."""
    parts = re.sub(r"::|/|\\", ".", nodeid).strip(".")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", parts)[:_LONGEST].strip(".-")
    if safe and safe == parts and not _OURS.fullmatch(safe):
        return safe
    return f"{safe or 'test'}-{hashlib.sha256(nodeid.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def session_directory(wanted: str) -> str:
    """Return the directory of a session: the wanted one, or a folder in it where it has an earlier session."""
    path = os.path.abspath(wanted)
    names = itertools.chain([path], (os.path.join(path, f"run_{number}") for number in itertools.count(2)))
    return next(each for each in names if not (os.path.isdir(each) and os.listdir(each)))


# --- ``@pytest.mark.compiles(...)``: budgets of a test, and what is said where one is exceeded ------
NOTHING = ("Nothing was compiled while this test ran, so its budgets say nothing about it. (It is marked `compiles`; "
           "leave the marker out, or call what torch.compile returned.)")
STALE = " With reset=False, what an earlier test compiled is not compiled again."


@frozen
class Marked:
    """The merged markers of a test, the nearest first; ``reset``: torch forgets what it compiled before the test."""

    budgets: tuple[Budget, ...]
    reset: bool = True

    @classmethod
    def of(cls, item: pytest.Item) -> Marked | None:
        """Return the merged markers of a test, ``None`` where it has none; :class:`BudgetError` for wrong arguments."""
        given: dict[str, object] = {}
        markers = list(item.iter_markers("compiles"))
        for marker in markers:
            if marker.args:
                raise BudgetError("compiles takes its budgets by name: @pytest.mark.compiles(breaks=0)")
            given = {**marker.kwargs, **given}
        if not markers:
            return None
        reset = given.pop("reset", True)
        if not isinstance(reset, bool):
            raise BudgetError(f"reset={reset!r} is not known; give True or False")
        return cls(tuple(budgets(given)), reset)

    def complaint(self, capture: Capture | None, failed: bool) -> str:
        """Return what is beyond the budgets, as ``depyf check`` says it; empty where nothing is."""
        if capture is None or not capture.compilations:
            return "" if failed else NOTHING + ("" if self.reset else STALE)
        if not self.budgets:
            return ""
        try:
            return "\n".join(exceeded(judge({"": capture}, self.budgets)))
        except BudgetError as error:
            return "" if failed else str(error)


# --- What each test compiled, in numbers, and the lines at the end of ``pytest --depyf`` -------------
#: Tests that are listed one by one.
MOST = 20


def summary(accounts: Sequence[Account], directory: str, troubles: Sequence[str]) -> list[str]:
    """Return what the tests compiled: in all, then each test in which something broke or was compiled again."""
    lines = [f"not recorded: {trouble}" for trouble in dict.fromkeys(troubles)]
    if not accounts:
        return lines or ["no test compiled anything, so nothing was written"]
    lines.append(f"{count(len(accounts), 'test')} compiled something: {_numbers(*accounts)}, "
                 f"{sum(each.seconds for each in accounts):.1f} s of compiling")
    worth = [each for each in accounts if not each.well]
    for each in worth[:MOST]:
        first = f" ({each.first})" if each.first else ""
        lines.append(f"  {each.name}: {_numbers(each)}{first}")
    if len(worth) > MOST:
        lines.append(f"  ... and {len(worth) - MOST} more")
    example = (worth or accounts)[0]
    return [*lines, f"written to {shown(directory)}, a folder for each test: depyf explain {shown(example.folder)}"]


def _numbers(*accounts: Account) -> str:
    graphs, breaks, recompiles, skipped = (
        sum(getattr(each, name) for each in accounts) for name in ("graphs", "breaks", "recompiles", "skipped"))
    parts = [count(graphs, "graph")]
    parts += [count(number, word) for number, word in ((breaks, "graph break"), (recompiles, "recompile")) if number]
    return ", ".join([*parts, f"{skipped} skipped"] if skipped else parts)


# --- the account of one test -------------------------------------------------------------------------
@frozen
class Account:
    """What a test, or a file that was collected, compiled; ``first``: the first graph break, in words."""

    name: str
    folder: str
    graphs: int
    breaks: int
    recompiles: int
    skipped: int
    seconds: float
    first: str = ""

    @classmethod
    def of(cls, name: str, folder: str, capture: Capture) -> Account:
        """Return the account of what was recorded."""
        run = RunIndex(capture)
        totals = Totals.of(run)
        broken = next((each for c in capture.compilations for each in c.breaks), None)
        first = ""
        if broken is not None:
            where = broken.location
            first = (f"{run.short_place(where)}: " if where else "") + one_line(cause(broken), 100)
        return cls(name, folder, totals.graphs, totals.breaks, totals.recompiles, totals.skipped, totals.seconds, first)

    @property
    def well(self) -> bool:
        """Return whether nothing broke, was compiled again or was left out."""
        return not (self.breaks or self.recompiles or self.skipped)

"""Hooks of pytest around each test: record it, judge it, tell of it.

A test is recorded from before its fixtures are set up to the end of its call. With xdist the workers record, and send
the accounts to the controller, which tells; the controller names the directory, so that all write to the same.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import re
import sys
from collections.abc import Generator
from typing import Any

import pytest

from ..capture.torch_private import first_compilation
from ..capture.torch_private.trace_events import TRACE_LOGGER
from ..views.budgets import BudgetError
from .marker import Marked
from .summary import Account, summary
from .watch import CompileWatch

#: The key by which workers of xdist get and give what is ours.
_KEY = "depyf"
_HEADING = "beyond the budgets of depyf"


class Recorder:
    """Records and judges the tests of a session."""

    def __init__(self, config: pytest.Config) -> None:
        worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        wanted = config.getoption(_KEY)
        #: Of all dumps of the session; ``None``: they are not kept.
        self.directory: str | None = None
        if wanted is not None:
            if os.path.exists(wanted) and not os.path.isdir(wanted):
                raise pytest.UsageError(f"--depyf={wanted}: that is a file; give the name of a directory")
            self.directory = worker[_KEY] if worker is not None and worker.get(_KEY) else session_directory(wanted)
        #: One process tells of what is compiled while test files are imported: each worker imports all of them.
        self.collects = self.directory is not None and (worker is None or worker.get("workerid") == "gw0")
        self.watch = CompileWatch()
        self.accounts: list[Account] = []
        self.collected: list[Account] = []  # of files, while they were imported
        self.troubles: list[str] = []
        # Until the report of a test is made, by node id:
        self._accounts: dict[str, Account] = {}
        self._troubles: dict[str, str] = {}
        self._complaints: dict[str, str] = {}  # of a test that failed by itself

    # --- while test files are imported -----------------------------------------------------------------
    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Record what is compiled while a file is imported."""
        if not self.collects or not isinstance(collector, pytest.File):
            return (yield)
        self.watch.begin(self._folder(f"{collector.nodeid}::collected"))
        try:
            return (yield)
        finally:
            recorded = self.watch.end()
            if recorded.trouble:
                self.troubles.append(recorded.trouble)
            elif recorded.capture is not None and recorded.capture.compilations:
                name = f"{collector.nodeid} (while it was imported)"
                self.collected.append(Account.of(name, recorded.folder, recorded.capture))

    # --- a test ----------------------------------------------------------------------------------------
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin to record, before the fixtures are set up; tests that are skipped do not come here."""
        try:
            marked = Marked.of(item)
        except BudgetError as error:
            pytest.fail(f"@pytest.mark.compiles: {error}", pytrace=False)
        if marked is not None or self.directory is not None:
            _show_no_events(item.config)
            self.watch.begin(self._folder(item.nodeid))
        if marked is not None and marked.reset:
            _reset_torch()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """End the recording, and fail the test where it is beyond its budgets."""
        marked = Marked.of(item)
        try:
            result = yield
        except pytest.skip.Exception:
            self._end(item, None)
            raise
        except BaseException:
            self._complaints[item.nodeid] = self._end(item, marked, failed=True)
            raise
        complaint = self._end(item, marked)
        if complaint:
            pytest.fail(complaint, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Add to the report of a test its account and, behind its own failure, what is said of it."""
        if call.when == "setup" and call.excinfo is not None:
            self._end(item, None)
        report = yield
        complaint = self._complaints.pop(item.nodeid, "")
        if complaint:
            report.sections.append((_HEADING, complaint))
        account, trouble = self._accounts.pop(item.nodeid, None), self._troubles.pop(item.nodeid, "")
        if account is not None:
            report.depyf = account.plain()
        if trouble:
            report.depyf_trouble = trouble
        return report

    def _end(self, item: pytest.Item, marked: Marked | None, failed: bool = False) -> str:
        """End the recording of a test and return what is beyond its budgets."""
        recorded = self.watch.end()
        trouble, complaint = recorded.trouble, ""
        try:
            if recorded.capture is not None and recorded.folder and recorded.capture.compilations:
                self._accounts[item.nodeid] = Account.of(item.nodeid, recorded.folder, recorded.capture)
            complaint = marked.complaint(recorded.capture, failed) if marked is not None else ""
        except Exception as error:  # ours: it is not to look like the test's
            trouble = trouble or f"internal error: {type(error).__name__}: {error}"
        if not trouble:
            return complaint
        self._troubles[item.nodeid] = trouble
        return f"What this test compiled cannot be judged: {trouble}" if marked is not None else ""

    def _folder(self, nodeid: str) -> str | None:
        return os.path.join(self.directory, folder_name(nodeid)) if self.directory is not None else None

    # --- the session -----------------------------------------------------------------------------------
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the account of a test, also from a worker."""
        account = getattr(report, "depyf", None)
        if account is not None:
            self.accounts.append(Account.read(account))
        trouble = getattr(report, "depyf_trouble", "")
        if trouble:
            self.troubles.append(trouble)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist the directory."""
        node.workerinput[_KEY] = self.directory

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take from a worker what it recorded while files were imported."""
        output = getattr(node, "workeroutput", {}).get(_KEY) or {}
        self.collected += [Account.read(each) for each in output.get("collected", ())]
        self.troubles += output.get("troubles", ())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Leave torch as it was; in a worker, send what no report carries."""
        self.watch.close()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_KEY] = {"collected": [each.plain() for each in self.collected], "troubles": self.troubles}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell what the tests compiled."""
        if self.directory is None:
            return
        terminalreporter.section("depyf")
        for line in summary(self.collected + self.accounts, self.directory, self.troubles):
            terminalreporter.line(line)


def _reset_torch() -> None:
    """Have torch forget what was compiled, so that it does not matter which tests ran before."""
    if first_compilation.FRAME.module in sys.modules:
        sys.modules["torch"].compiler.reset()


def _show_no_events(config: pytest.Config) -> None:
    """Keep the events of torch's trace, which have no text, out of what pytest shows of the log.

    (From 9 on, pytest attaches its handlers to loggers that do not propagate, too.)
    """
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
#: What depyf itself calls folders in a dump.
_OURS = re.compile(r"(run|rank)_\d+", re.IGNORECASE)


def folder_name(nodeid: str) -> str:
    """Return the name of a test's folder: ``tests.test_model.py.TestNet.test_forward-8-3f2a91c4``.

    Names that were changed by more than their separators end in a hash of the whole, so that no two are the same.
    """
    parts = re.sub(r"::|/|\\", ".", nodeid).strip(".")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", parts)[:_LONGEST].strip(".-")
    if safe and safe == parts and not _OURS.fullmatch(safe):
        return safe
    return f"{safe or 'test'}-{hashlib.sha256(nodeid.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def session_directory(wanted: str) -> str:
    """Return where a session writes: the directory, or a folder in it where that holds an earlier session.

    It is made when a test compiles something.
    """
    path = os.path.abspath(wanted)
    return next(each for number in itertools.count(1)
                if not _holds_something(each := path if number == 1 else os.path.join(path, f"run_{number}")))


def _holds_something(path: str) -> bool:
    return os.path.isdir(path) and bool(os.listdir(path))

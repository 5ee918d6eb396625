"""The plugin for pytest: a dump for each test that compiles something, and a verdict on its budgets.

    pytest --depyf                                  a folder for each test in depyf_output, a summary at the end
    @pytest.mark.compiles(breaks=0, recompiles=1)   fails the test beyond that (with ``--depyf`` or without)

This module is loaded at each start of pytest, so it has hooks alone and imports nothing else. Where ``--depyf`` or the
marker is used, ``recorder`` watches test by test, judges and reports.
"""

from __future__ import annotations

import copy

import pytest

#: Where the dumps go, unless ``--depyf=DIR`` says so.
DIRECTORY = "depyf_output"
_OPTION = "--depyf"
_NAME = "depyf-recorder"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--depyf[=DIR]``."""
    group = parser.getgroup("depyf", "what torch.compile does in tests")
    group.addoption(
        _OPTION, metavar="DIR", nargs="?", const=DIRECTORY, default=None, dest="depyf",
        help="write what torch.compile does in each test that compiles something to a folder of its own in DIR (after "
             f"an equals sign; default: {DIRECTORY}), with a summary at the end")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Let ``pytest --depyf tests/test_model.py`` mean the file, not the directory for the dumps."""
    end = args.index("--") if "--" in args else len(args)
    if _OPTION in args[:end]:
        args[:end] = [f"{_OPTION}={DIRECTORY}" if each == _OPTION else each for each in args[:end]]
        # The conftest files that are loaded now are those of the paths among the arguments.
        early_config.known_args_namespace = parser.parse_known_args(args, namespace=copy.copy(early_config.option))


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and, where ``--depyf`` is given, what records."""
    config.addinivalue_line(
        "markers", "compiles(breaks=N, recompiles=N, skipped=N, versions=N, graphs=N, guards=N, kernels=N, seconds=S, "
        "reset=True): the test fails where torch.compile does more than that in it (a budget can be 'FUNCTION:N', or a "
        "list of budgets), or compiles nothing; torch forgets what was compiled before, unless reset=False (depyf)")
    if config.getoption("depyf") is not None:
        _register(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record where a test has the marker."""
    if any(item.get_closest_marker("compiles") for item in session.items):
        _register(session.config)


def _register(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin(_NAME):
        from .recorder import Recorder

        config.pluginmanager.register(Recorder(config), _NAME)

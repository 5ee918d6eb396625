"""Faults on purpose: the program's values stay, one warning, and all else of the dump is there."""

import collections
import contextlib
import gc
import logging
import os
import re
import warnings
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.capture import store  # noqa: E402
from depyf.capture.session import Session  # noqa: E402
from depyf.capture.torch_private import hooks, touchpoints, versions  # noqa: E402

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


def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right))


def kinds(path):
    """Names of files without numbers (Dynamo counts on through the process), and how often."""
    return collections.Counter(re.sub(r"\d+", "N", name) for name in os.listdir(path) if name != "notes.txt")


def state_of_torch():
    """What a session changes."""
    gc.collect()  # what other tests left lets go of its hooks now, not in between
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
    "_before_backend": r"__compiled_fn.*\.Captured_Graph\..*",
}


@pytest.mark.parametrize("hook", OF_HOOK)
def test_a_hook_that_raises(hook, plain, whole, tmp_path, monkeypatch):
    calls = []

    def raises(self, *args):
        calls.append(args)
        raise RecursionError("ours")

    monkeypatch.setattr(Session, hook, raises)
    with warned(1):
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = program()
    assert same(plain, watched) and calls
    assert "internal error: RecursionError: ours" in (tmp_path / "d" / "notes.txt").read_text()
    absent = [each for each in whole - kinds(on.path) if not re.fullmatch(OF_HOOK[hook], each)]
    assert absent == []
    store.read(os.path.join(on.path, store.FILE))

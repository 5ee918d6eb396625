"""Nothing that a graph takes or returns lives longer with the tool than without.

Looked at are the programs with graph breaks; ``DEPYF_TEST_LIFETIMES=all`` takes every program of the zoo.
"""

import contextlib
import gc
import io
import os
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from programs import PROGRAMS, Compiled, breaks

import depyf
from depyf.capture.torch_private import cache_entries
from depyf.link import transformed

CHOSEN = [name for name, function in PROGRAMS.items()
          if os.environ.get("DEPYF_TEST_LIFETIMES") == "all" or function.__module__ == breaks.__name__]


class Watch:
    """A backend that notes at each call of a graph which tensors of earlier calls are alive."""

    def __init__(self):
        self.tensors = []
        self.points = []
        self.calls = 0

    def backend(self, graph_module, inputs):
        def run(*arguments):
            self.point()
            self.calls += 1
            self.add("in", arguments)
            results = graph_module.forward(*arguments)
            self.add("out", results)
            return results
        return run

    def add(self, kind, values):
        self.tensors += [((self.calls, kind, index), weakref.ref(value)) for index, value in enumerate(values)
                         if isinstance(value, torch.Tensor)]

    def point(self):
        self.points.append({name for name, ref in self.tensors if ref() is not None})


def watched(function, folder):
    """What is alive at each call of a graph, and at the end."""
    torch._dynamo.reset()
    watch = Watch()
    gc.collect()
    gc.disable()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            if folder is not None:
                stack.enter_context(depyf.prepare_debug(str(folder)))
            with contextlib.suppress(Exception):
                function(Compiled(watch.backend))
        watch.point()
    finally:
        gc.enable()
    return watch.points


def longer(function, folder):
    plain, linked = watched(function, None), watched(function, folder)
    assert len(plain) == len(linked)
    return [(number, sorted(there - here)) for number, (here, there) in enumerate(zip(plain, linked)) if there - here]


@pytest.fixture(autouse=True)
def linked_code_runs(monkeypatch):
    """As it does inside ``debug()``."""
    monkeypatch.setattr(cache_entries, "can_replace", lambda: False)


@pytest.mark.parametrize("name", CHOSEN)
def test_nothing_lives_longer(name, tmp_path):
    assert longer(PROGRAMS[name], tmp_path / "d") == []


def handed_on(compiled):
    """A result of the graph that only the call at the break needs."""
    @torch._dynamo.disable
    def look(value):
        return value.shape[0]

    @compiled
    def f(x):
        used = x * 2
        x = x + 1
        look(used)
        x = x + 2
        torch._dynamo.graph_break()
        return x * 3
    with torch.no_grad():
        return f(torch.ones(3))


def test_nothing_lives_longer_behind_a_break(tmp_path):
    assert longer(handed_on, tmp_path / "d") == []


def test_the_text_as_it_stands_would_keep_values_longer(tmp_path, monkeypatch):
    monkeypatch.setattr(transformed, "_freed", lambda *_: None)
    assert longer(handed_on, tmp_path / "d") != []

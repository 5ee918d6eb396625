"""A loop in the text of transformed code is stepped through as one, though what runs has no loop."""

import glob
import os
import sys

import pytest

torch = pytest.importorskip("torch")

import depyf


class Layer:
    pass


class Cache:
    def __init__(self, count):
        self.layers = [Layer() for _ in range(count)]


def fill(cache, x):
    for number, layer in enumerate(cache.layers):
        layer.keys = x + number
        layer.values = x * number
    return x.sum()


@pytest.mark.torch_since((2, 9), "attributes are set in another order, which is no loop")
def test_a_loop_over_layers_is_stepped_through(tmp_path):
    torch._dynamo.reset()
    compiled = torch.compile(fill, backend="eager")
    with depyf.prepare_debug(str(tmp_path)) as on:
        compiled(Cache(4), torch.ones(2))
    (path,) = glob.glob(os.path.join(on.path, "__transformed_code_0_for_fill.py"))
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    begin = next(number for number, line in enumerate(lines, 1) if line.lstrip().startswith("for layer, keys, values in"))
    hit = {}

    def tracer(frame, event, _):
        if frame.f_code.co_filename != path:
            return None
        if event == "line":
            hit.setdefault(frame.f_lineno, []).append({name for name in frame.f_locals if not name.startswith(".")})
        return tracer

    cache = Cache(4)
    before = sys.gettrace()
    with depyf.debug(pause=False):
        sys.settrace(tracer)
        try:
            compiled(cache, torch.ones(2))
        finally:
            sys.settrace(before)
    assert [len(hit[line]) for line in (begin, begin + 1, begin + 2)] == [4, 4, 4]
    assert all({"layer", "keys", "values"} <= names for names in hit[begin + 1])
    assert [layer.keys.tolist() for layer in cache.layers] == [[1.0 + n] * 2 for n in range(4)]
    assert [list(vars(layer)) for layer in cache.layers] == [["keys", "values"]] * 4

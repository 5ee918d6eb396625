"""From Dynamo's bytecode over its proven source to lines that are visited, with live locals."""

import re
import sys

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.convert_frame import register_bytecode_hook

from depyf.decompiler import decompile_code
from depyf.link.linker import Linker

HEADER = "# a header\n# of three\n# lines\n"


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


class Tied:
    """Links what the hook gives it, and notes the lines of its files that run."""

    def __init__(self, directory):
        self.directory = directory
        self.linker = Linker()
        self.texts = {}
        self.codes = []
        self.visited = set()
        self.names = {}

    def hook(self, original, code):
        rename = {n: m.group(1) for n in code.co_names if (m := re.match(r"(__compiled_fn_\d+)_", n))}
        shown = decompile_code(code, simplify=True, rename=rename)
        if shown.fidelity.value not in ("exact", "equivalent"):
            pytest.skip(f"{code.co_name} is not proven on this torch: {shown.note}")
        path = str(self.directory / f"{len(self.texts)}.py")
        text = HEADER + shown.text
        self.texts[path] = text
        linked = self.linker.link_transformed(original, code, shown, (path, 4, text), rename)
        self.codes.append(linked)
        return linked

    def trace(self, frame, event, arg):
        path = frame.f_code.co_filename
        if path not in self.texts:
            return None
        if event == "line":
            self.visited.add((path, frame.f_lineno))
        self.names.setdefault(path, set()).update(frame.f_locals)
        return self.trace


def test_every_line_is_hit_and_every_name_is_a_local(tmp_path):
    torch._dynamo.reset()
    tied = Tied(tmp_path)
    handle = register_bytecode_hook(tied.hook)
    try:
        compiled = torch.compile(toy_example, backend="eager")
        inputs = []
        for seed in range(6):
            torch.manual_seed(seed)
            inputs.append((torch.randn(10), torch.randn(10)))
            compiled(*inputs[-1])
    finally:
        handle.remove()
    assert len(tied.codes) == 3
    assert tied.linker.notes == [], "all of it is recompiled source"
    before = sys.gettrace()
    sys.settrace(tied.trace)
    try:
        values = [compiled(*given) for given in inputs]
    finally:
        sys.settrace(before)
    assert all(map(torch.equal, values, [toy_example(*given) for given in inputs]))
    executable = {
        (code.co_filename, line)
        for code in tied.codes
        for _, _, line in code.co_lines()
        if line is not None and line != code.co_firstlineno
    }
    assert executable
    assert executable <= tied.visited
    for code in tied.codes:
        assert set(code.co_varnames) <= tied.names[code.co_filename]
        assert tied.texts[code.co_filename].splitlines()[code.co_firstlineno - 1].startswith("def ")
    torch._dynamo.reset()

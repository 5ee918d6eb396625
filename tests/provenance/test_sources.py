"""The user's files in the records, and what stands for them where there are none."""

import dataclasses
import os
import sysconfig

from depyf.provenance import sources
from depyf.records.model import (
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    Frame,
    GraphBreak,
    GraphStage,
    SourceFile,
    SourceLocation,
    TracedLines,
)

IDS = CompileId(0, 0)
LIBRARY = os.path.join(sysconfig.get_paths()["purelib"], "torch", "nn", "linear.py")
STANDARD = os.path.join(sysconfig.get_paths()["stdlib"], "contextlib.py")
OTHERS = os.path.join(sysconfig.get_paths()["purelib"], "transformers", "model.py")
TEXT = f"""class GraphModule(torch.nn.Module):
    def forward(self, x):
         # File: {LIBRARY}:12 in forward, code: return F.linear(x)
        a = x + 1
         # File: {OTHERS}:3 in inner, code: return a.sin()
        b = a.sin()
        # File: {STANDARD}:3 in inner, code: return a.sin()
        b = a.sin()
"""
FRAME = Frame("f", "f", SourceLocation("/u/model.py", 5, "f"), CodeText("def f(x):\n    return x\n", "exact"), True, ("x",),
              (), ())
BREAK = GraphBreak(IDS, "why", stack=(SourceLocation("/u/main.py", 9, "main", "f(x)"),
                                      SourceLocation("/u/model.py", 6, "f", "return x")))
CAPTURE = Capture(
    (CompiledFunction("f", (FRAME,)),), (CompiledGraph("g", "g", IDS, "eager", (GraphStage("C", 0, TEXT),)),),
    compilations=(Compilation(IDS, "f", SourceLocation("/u/model.py", 5, "f"), breaks=(BREAK,)),))
DISK = {"/u/model.py": ["\n"] * 4 + ["def f(x):\n", "    return x\n", "# the end\n"],
        OTHERS: ["1\n", "2\n", "return a.sin()\n"], LIBRARY: ["torch's\n"], STANDARD: ["with\n"]}


def read(path):
    return DISK.get(path, [])


def test_files_of_the_user_are_collected_whole():
    assert sources.collect(CAPTURE, read) == (
        SourceFile("/u/model.py", "".join(DISK["/u/model.py"])), SourceFile(OTHERS, "".join(DISK[OTHERS])))


def test_of_a_long_file_without_compiled_functions_the_traced_ones_are_kept():
    functions = [f"def f{number}(x):\n    # {'x' * 100}\n    return x\n" for number in range(300)]
    disk = {**DISK, OTHERS: functions, "/u/model.py": functions}
    traced = dataclasses.replace(CAPTURE.compilations[0], traced=(
        TracedLines(OTHERS, (6,)), TracedLines("/u/model.py", (6,))))
    capture = dataclasses.replace(CAPTURE, compilations=(traced,))
    model, other = sources.collect(capture, lambda path: disk.get(path, []))
    assert model.text == "".join(functions), "a compiled function is in it"
    assert other.text.count("    return x") == 1 and other.text.split("\n")[5] == "    return x"


def test_a_library_counts_where_a_frame_of_its_own_is_in_it():
    compiled = Compilation(CompileId(1, 0), "forward", SourceLocation(LIBRARY, 10, "forward"))
    capture = dataclasses.replace(CAPTURE, compilations=(*CAPTURE.compilations, compiled))
    assert LIBRARY in [source.path for source in sources.collect(capture, read)]


def test_recorded_files_count_first():
    recorded = SourceFile("/u/model.py", "as it was\n")
    assert sources.sources_of_capture(dataclasses.replace(CAPTURE, sources=(recorded,)), read)[0] == recorded


def test_a_file_on_the_disk_counts_if_it_is_the_one_that_ran():
    assert sources.sources_of_capture(CAPTURE, read)[0].text == "".join(DISK["/u/model.py"])


def test_a_file_that_was_changed_does_not():
    changed = {**DISK, "/u/model.py": ["import torch\n", *DISK["/u/model.py"]]}
    pieces = "\n\n\n\ndef f(x):\n    return x\n"
    assert sources.sources_of_capture(CAPTURE, lambda path: changed.get(path, []))[0].text == pieces
    assert sources.sources_of_capture(CAPTURE, None)[0].text == pieces


def test_lines_that_graphs_name_tell_whether_a_file_is_the_one():
    files = sources.sources_of_capture(CAPTURE, read)
    assert [source.path for source in files] == ["/u/model.py", OTHERS]
    changed = {**DISK, OTHERS: ["1\n", "2\n", "return a.cos()\n"]}
    assert sources.sources_of_capture(CAPTURE, lambda path: changed.get(path, []))[1].text == "\n\nreturn a.sin()\n"


def test_functions_of_which_no_line_was_traced_have_no_bodies():
    text = """\
import torch

class Model(Base):
    @property
    def size(self):
        return 3

    def forward(self, x):
        \"\"\"Two lines.

        \"\"\"
        return x

def one_line(): return 1

def traced(x):
    return x
"""
    assert sources.only_traced(text, [17]) == text.replace(
        "        return 3", "        ...  # (lines 6 to 6: nothing of them was traced)").replace(
        '''        """Two lines.

        """
        return x''', "        ...  # (lines 9 to 12: nothing of them was traced)\n\n\n")
    assert sources.only_traced("def (", []) == "def ("

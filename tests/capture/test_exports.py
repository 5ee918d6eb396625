"""Live: what ``torch.export`` returned, or why it failed, is recorded with the call."""

import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.capture.torch_private import private_api
from depyf.records.store import read
from torch_forks import torch_python

pytestmark = pytest.mark.skipif(not private_api.EXPORT.present(), reason="this torch exports otherwise")

PROGRAM = textwrap.dedent("""
    import torch

    class Sine(torch.nn.Module):
        def forward(self, x):
            return x.sin()

    class Branch(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x + 1
            return x - 1

    for strict in (False, True):
        torch.export.export(Sine(), (torch.ones(3),), strict=strict)
    try:
        torch.export.export(Branch(), (torch.ones(3),), strict=False)
    except Exception as error:
        print(type(error).__name__, "depyf" in repr(error.__traceback__.tb_next.tb_frame))
""")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """``(records, what the program printed, the folder)`` of a program that compiles nothing but exports."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "program.py").write_text(PROGRAM)
    ended = subprocess.run([*torch_python(), "-m", "depyf", "run", "-o", str(folder / "dump"), str(folder / "program.py")],
                           check=True, capture_output=True, text=True)
    return read(str(folder / "dump")), ended, folder


@pytest.mark.torch_since((2, 10), "a strict export compiles a frame, which has its own graph")
def test_each_export_is_a_graph_with_its_program(run):
    capture, _, _ = run
    exported = {graph.name: [stage.text for stage in graph.stages if stage.stage == "exported_program"]
                for graph in capture.graphs if not graph.issues}
    assert list(exported) == ["export_1", "export_2"]
    assert all(len(texts) == 1 and "ops.aten.sin.default" in texts[0] for texts in exported.values())
    assert [graph.call.line for graph in capture.graphs] == [15, 15, 17]


DRAFT = textwrap.dedent("""
    import sys
    import torch
    from torch.export._draft_export import draft_export

    class Pick(torch.nn.Module):
        def forward(self, x, n):
            count = n.item()
            return x[:count].sum() if count > 2 else x.sum()

    program = draft_export(Pick(), (torch.ones(4, 3), torch.tensor(3)))
    print([(failure.data["frame_locals"]["locals"], failure.data["user_stack"][-1]["line"])
           for failure in program._report.failures])
""")


@pytest.mark.torch_since((2, 10), "the report of a draft has no variables")
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="torch 2.13 names no variables on Python 3.13")
def test_a_draft_names_the_same_places_and_variables(tmp_path):
    program, dump = tmp_path / "draft.py", tmp_path / "dump"
    program.write_text(DRAFT)
    alone, watched = (subprocess.run(
        [*torch_python(), *before, str(program)], check=True, capture_output=True, text=True)
        for before in ((), ("-m", "depyf", "run", "-o", str(dump))))
    assert watched.stdout == alone.stdout
    assert "count" in alone.stdout
    graph, = read(str(dump)).graphs
    decided, = (issue for issue in graph.issues if issue.kind == "data")
    assert (decided.location.filename, decided.location.line) == (str(program), 9)
    assert not read(str(dump)).events


def test_why_an_export_failed(run):
    capture, ended, folder = run
    issue, = capture.graphs[-1].issues
    assert (issue.kind, issue.location.line, issue.location.text) == ("failed", 10, "if x.sum() > 0:")
    assert ended.stdout.startswith(issue.subject) and "False" in ended.stdout
    text = (folder / "dump" / "index.md").read_text()
    assert "Why `export_3` was not exported:" in text and "1 failed export" in text
    assert "1 failed export" in ended.stderr


def test_an_error_of_ours_at_its_beginning_does_not_reach_the_program(tmp_path, monkeypatch):
    def fails():
        raise ValueError("ours")

    monkeypatch.setattr("depyf.capture.torch_private.current_compilation.begin_export", fails)
    with pytest.warns(RuntimeWarning, match="ours"), depyf.prepare_debug(str(tmp_path), page=False):
        program = torch.export.export(torch.nn.ReLU(), (torch.ones(3),), strict=False)
    assert program.graph is not None


def test_what_torch_suggests_is_recorded():
    from depyf.torch_text.trace_table import export_failure

    issue = export_failure("UserError", "Constraints violated (b)!\n  - no\n\nSuggested fixes:\n  b = 4\n\nmore", None)
    assert (issue.outcome, issue.values) == ("Constraints violated (b)!", (("b", "4"),))


def test_aot_inductor_has_the_numbers_of_the_export_and_compiles_no_frame():
    """`compile_fx_aot` restores those under which Dynamo traced the program (strict=True)."""
    from torch._guards import CompileContext, CompileId, compile_context
    from torch._inductor.virtualized import V

    from depyf.capture.torch_private import current_compilation

    with compile_context(CompileContext(CompileId(frame_id=0, frame_compile_id=0))):
        assert current_compilation.compile_id() == (0, 0, 0)
        with V.set_aot_compilation(True):
            assert current_compilation.compile_id() is None and current_compilation.is_exporting()

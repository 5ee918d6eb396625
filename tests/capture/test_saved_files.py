"""Files that torch saved are read without torch, and damaged ones are refused."""

import json
import platform
import re
import subprocess
import sys
import zipfile

import pytest

torch = pytest.importorskip("torch")

from depyf.capture import saved_files  # noqa: E402
from depyf.capture.exported_program import _value_text  # noqa: E402
from depyf.records.store import RecordsError, read  # noqa: E402
from depyf.report import report  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")
#: Runs `depyf` where no torch can be imported.
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from depyf.cli import main; sys.exit(main())"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x, k: int, *, bias):
        self.steps.add_(1)
        h = torch.cond(x.sum() > 0, torch.sin, torch.cos, (self.linear(x),))
        first, second = h.split([1, 2], dim=1)
        return {"top": torch.topk(second, k).values.to(torch.bfloat16), "rest": [first * x.shape[0], None]}


def exported():
    batch = torch.export.Dim("batch", min=2, max=64)
    return torch.export.export(Model().eval(), (torch.ones(5, 4), 2), kwargs={"bias": torch.ones(3)},
                               dynamic_shapes={"x": {0: batch}, "k": None, "bias": None})


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """``(exported program, its archive)``."""
    path = str(tmp_path_factory.mktemp("saved") / "model.pt2")
    result = exported()
    torch.export.save(result, path)
    return result, path


def statements(text):
    """Return the statements of a printed graph, without what torch prints to free values early."""
    lines = (re.sub(r";  [\w =]+ = None$", "", line.strip()) for line in text.splitlines())
    return [line for line in lines if line.startswith(("def ", "class ", "return ")) or " = torch.ops.aten" in line
            or re.match(r"\w+(: \".*\")? = \w+\[\d\]$", line)]


@pytest.mark.torch_since((2, 10), "the archive has no name of a node with several results")
def test_an_exported_program_is_as_torch_prints_it(program):
    result, path = program
    graph, = saved_files.read(path).graphs
    text = graph.stages[0].text
    assert graph.stages[0].stage == "exported_program"
    printed = [line for line in statements(str(result)) if "cond[" not in line]  # (the archive has no such node)
    assert statements(text) == [line for line in printed if "higher_order.cond(" not in line]
    assert "b_steps: BUFFER target='steps' persistent=True" in text
    assert re.search(r"Range constraints: \{s\d+: VR\[2, 64\]\}", text)
    assert "test_saved_files.py:" in text
    contents = graph.stages[1].text
    assert f"torch: {torch.__version__}" in contents and "called with: (..., ..., bias=...)" in contents
    assert "returns: {'top': ..., 'rest': [..., ...]}" in contents and "model.json" in contents


def test_no_torch_is_needed(program, tmp_path):
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, "report", program[1], "-o", str(tmp_path / "dump")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "dump" / "index.md").read_text()
    assert index.startswith("# What is in the file\n")
    assert "1 graph in the file." in index and "no function was compiled" not in index
    assert "ExportedProgram:" in (tmp_path / "dump" / "exported_model.exported_program.0.txt").read_text()


@pytest.mark.torch_since((2, 11), "Inductor cannot compile this model")
@pytest.mark.slow
def test_a_package_of_aot_inductor(program, tmp_path):
    path = torch._inductor.aoti_compile_and_package(program[0], package_path=str(tmp_path / "compiled.pt2"))
    capture = saved_files.read(path)
    graph, = capture.graphs
    texts = {stage.stage: stage.text for stage in graph.stages}
    assert "AOTInductorModel::AOTInductorModel(" in texts["inductor_aot_wrapper_code"]
    assert 'extern "C"' in texts["inductor_aot_kernel_code"]
    assert re.search(r"linear.weight: parameter float32\[3, 4\] on cpu, \d+ bytes stored", texts["contents"])
    assert "called with: (..., ..., bias=...)" in texts["contents"]
    assert re.search(r"arg\d+_1: float32\[from 2 to \d+, 4\]", texts["contents"]), texts["contents"]
    assert any("built for what this machine has: device cpu" in note for note in capture.notes), capture.notes
    report(path, str(tmp_path / "dump"))
    assert read(str(tmp_path / "dump")).graphs[0].stages[0].file == "aoti_model.inductor_aot_wrapper_code.0.txt"


def package(path, **metadata):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("p/data/aotinductor/model/a.wrapper_metadata.json", json.dumps(metadata))
        archive.writestr("p/data/aotinductor/model/a.wrapper.cpp", 'inputs_info_[0].name = "x";')
    return str(path)


def test_what_another_machine_made_is_said_to_be(tmp_path):
    notes = saved_files.read(package(
        tmp_path / "m.pt2", AOTI_DEVICE_KEY="cuda", AOTI_MACHINE="riscv", AOTI_PLATFORM=sys.platform,
        AOTI_COMPUTE_CAPABILITY="90", AOTI_CPU_ISA="AVX_UNHEARD_OF")).notes
    other = next(note for note in notes if "another machine" in note)
    assert f"machine riscv (here {platform.machine()})" in other and "device" not in other
    assert any("not compared" in note and "device cuda, compute capability 90" in note.replace(
        "CPU instruction set AVX_UNHEARD_OF, ", "") for note in notes)


@pytest.mark.parametrize("damage, message", [
    (lambda data: data[:-30], "is damaged"),
    (lambda data: data.replace(b"graph_module", b"graph-module"), "is damaged"),
    (lambda data: data[:4], "is damaged"),
    (lambda data: b"", "no event"),
])
def test_a_damaged_archive_is_refused(program, tmp_path, damage, message):
    broken = tmp_path / "broken.pt2"
    with open(program[1], "rb") as file:
        broken.write_bytes(damage(file.read()))
    with pytest.raises(RecordsError, match=message):
        report(str(broken), str(tmp_path / "dump"))
    assert not (tmp_path / "dump").exists()


def test_an_archive_of_other_files_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("letter.txt", "")
    with pytest.raises(RecordsError, match=r"It has 1 file.*letter\.txt"):
        saved_files.read(str(tmp_path / "other.zip"))
    log = tmp_path / "a.log"
    log.write_text("no zip")
    assert saved_files.read(str(log)) is None


@pytest.mark.parametrize("expression, text", [
    ("Mul(Integer(2), Symbol('s25', integer=True))", "2*s25"),
    ("Add(Symbol('s0'), Mul(Integer(-1), Symbol('s1')))", "s0 + -1*s1"),
    ("FloorDiv(Symbol('s0'), FloorDiv(Symbol('s1'), Integer(2)))", "s0//(s1//2)"),
    ("Pow(Pow(Symbol('s0'), Integer(2)), Symbol('s1'))", "(s0**2)**s1"), ("Pow(Integer(-1), Symbol('s0'))", "(-1)**s0"),
    ("Mul(Add(Symbol('s0'), Integer(1)), Symbol('s1'))", "(s0 + 1)*s1")])
def test_expressions_have_the_value_that_they_have_in_the_file(expression, text):
    assert _value_text({"as_expr": {"expr_str": expression}}) == text

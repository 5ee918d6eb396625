"""``%%depyf`` and ``depyf.explain.interactive`` in a real kernel, run by nbclient."""

import os
import pathlib
import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")
NotebookClient = pytest.importorskip("nbclient").NotebookClient

from depyf import page  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def execute(cells, folder, **options):
    """The cells with their outputs; ``folder`` is where the kernel runs."""
    notebook = cells if isinstance(cells, dict) else nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}, kernel_name="python3", **options)
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")})
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def views(cell):
    return [output["data"] for output in cell.outputs if "depyf" in output.get("data", {}).get("text/plain", "")[:6]]


def plain(cell, names=()):
    """What a reader sees of a cell, but for ours; numbers that differ from kernel to kernel left out."""
    texts = []
    for output in cell.outputs:
        output = dict(output)
        if "depyf" in output.get("data", {}).get("text/plain", "")[:6]:
            continue
        output.pop("metadata", None)
        if "traceback" in output:
            output["traceback"] = [re.sub(r"ipykernel_\d+/\d+|\x1b\[[\d;]*m", "", line) for line in output["traceback"]]
        texts.append(output)
    return texts, cell.execution_count


BEFORE = [
    "import sys, torch, asyncio\n%load_ext depyf\n%load_ext depyf",
    "def f(a):\n    b = a.abs() + 1\n    if b.sum() < 0:\n        b = -b\n    return b * 2\ncompiled = torch.compile(f, backend='eager')",
]
CELLS = [
    "y = compiled(torch.ones(3))\nprint('said')\nprint('complained', file=sys.stderr)\ny.tolist()",
    "y.sum().item();",
    "# nothing but a comment",
    "z = compiled(torch.ones(2, 2))\nraise KeyError('mine')",
    "1 +",
    "_, z.shape, [name for name in globals() if 'epyf' in name], len(Out)",
    "await asyncio.sleep(0.01)\n%time w = compiled(torch.ones(4))\nw.shape",
    "def inner():\n    return compiled(torch.ones(5))[0] / 0, undefined\ninner()",
    "from IPython.display import display\ndisplay('shown')\nfor i in range(2):\n    i",
    "raise SystemError",
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The same cells in two kernels: plain, and with the magic."""
    folder = tmp_path_factory.mktemp("cells")
    outputs = []
    for mark in ("# plain\n", "%%depyf\n"):
        outputs.append(execute([*BEFORE, *(mark + cell for cell in CELLS)], folder, allow_errors=True)[len(BEFORE):])
    return outputs


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_a_cell_does_what_it_does_without_the_magic(ran, number):
    without, with_magic = plain(ran[0][number]), plain(ran[1][number])
    # (A traceback shows an empty first line from IPython 9 on, and leaves it out before.)
    text, with_magic = (re.sub(r" +1 (# plain)?\\n", "", str(each)) for each in (without, with_magic))
    if "Wall time" in text:
        assert with_magic.count("Wall time") == 1
        text, with_magic = (re.sub(r"(CPU times|Wall time)[^']*", "", each) for each in (text, with_magic))
    assert re.sub(r"----> \d|\d+\.py", "", with_magic) == re.sub(r"----> \d|\d+\.py", "", text)
    assert len(views(ran[1][number])) == 1 and not views(ran[0][number])


def test_what_the_views_say(ran):
    texts = [views(cell)[0]["text/plain"] for cell in ran[1]]
    assert "1 function, 2 versions, 2 graphs, 1 graph break, 0 recompiles" in texts[0]
    assert "graph break at In[2]:3: Data-dependent branching" in texts[0]
    assert texts[1].splitlines()[1:] == ["  Nothing was compiled."]
    assert "<iframe" not in views(ran[1][1])[0]["text/html"]
    assert "Compiled before this cell" not in texts[0] and "before this cell" in texts[3]
    assert "compiled (1 version)" in texts[3]
    assert "recompiled f: a." in texts[3], "also of a cell that raises"
    assert "before this cell" in texts[6] and "compiled (" in texts[6], "named in a line magic"
    assert "before this cell" in texts[7], "called by a function of the notebook"


def test_the_page_has_the_text_of_cells(ran):
    html = views(ran[1][0])[0]["text/html"]
    inline = html.partition('srcdoc="')[2].partition('"')[0].replace("&quot;", '"').replace("&amp;", "&")
    assert 'sandbox="allow-scripts allow-popups allow-popups-to-escape-sandbox"' in html
    assert "Content-Security-Policy" in inline and "default-src 'none'" in inline
    run = page.unpacked(inline)["runs"][0]
    shown = [doc for doc in run["docs"] if doc["kind"] == "source"]
    assert [doc["title"] for doc in shown] == ["In[2]"]
    assert shown[0]["text"].rstrip("\n") == BEFORE[1]
    statuses = {line: kind for line, kind, *_ in shown[0]["status"]}
    assert statuses[2] == "graph" and statuses[3] == "break"


def test_options_and_interactive(tmp_path):
    cells = execute([
        "%load_ext depyf\nimport torch, depyf, os\nfrom depyf import explain\n@torch.compile(backend='eager')\ndef g(a):\n    return a + 1",
        "%%depyf --output kept --height 300\ng(torch.ones(2))",
        "sorted(os.listdir('kept'))[-4:]",
        "%%depyf --hight 300\nprint('does not run')",
        "%%depyf --height 3\nprint('does not run')",
        "%%depyf\ng(torch.ones(2))",
        "explain.interactive(g)",
        "explain.interactive('kept', height=444)",
        "v = explain.interactive(lambda a: a * 3, torch.ones(2))\nv",
        "v.result.tolist(), os.path.isdir(v.path)",
        "explain.interactive(len)",
        "explain.interactive('no such directory')",
        "import depyf.notebook.view as view\nview.INLINE = 1000\nexplain.interactive('kept')",
        "get_ipython().run_cell_magic('depyf', '', 'g(torch.ones(3, 3))\\n1 / 0')",
        "%unload_ext depyf",
        "%%depyf\n1",
        "%load_ext depyf",
        "%%depyf -o /dev/null/not/here\nprint('runs')",
    ], tmp_path, allow_errors=True)
    texts = ["\n".join(data["text/plain"] for data in views(cell)) for cell in cells]
    seen = ["".join(output.get("text", "") + str(output.get("evalue", "")) for output in cell.outputs) for cell in cells]
    assert "1 version, 1 graph" in texts[1] and f"The page: {tmp_path}/kept/index.html" in texts[1].replace("/private", "")
    assert "height: 300px" in views(cells[1])[0]["text/html"]
    assert "index.html" in str(cells[2].outputs)
    assert "unrecognized arguments: --hight 300" in seen[3] and "does not run" not in seen[3]
    assert "too low" in seen[4] and "does not run" not in seen[4]
    assert "before this cell" in texts[5] and "What torch still has" in texts[5] and "1 graph" in texts[5]
    assert "As torch has it now" in texts[6] and "1 graph." in texts[6]
    assert "height: 444px" in views(cells[7])[0]["text/html"] and "1 graph" in texts[7]
    assert "1 function, 1 version, 1 graph, 0 graph breaks" in texts[8]
    assert cells[9].outputs[0]["data"]["text/plain"] == "([3.0, 3.0], True)"
    assert "so it has no bytecode" in seen[10] and "is not there" in seen[11]
    large = views(cells[12])[0]["text/html"]
    assert "<iframe" not in large and '<a href="kept/index.html"' in large and "too much for a notebook" in large
    assert "1 recompile" in texts[13] and seen[13].count("division by zero") >= 1
    assert "UsageError" in seen[15] or "not found" in seen[15]
    assert "runs" in seen[17] and "this cell is not watched" in seen[17]


def test_the_example_runs(tmp_path):
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    cells = execute(notebook, tmp_path)
    shown = [views(cell) for cell in cells]
    assert [len(each) for each in shown] == [0, 0, 1, 1, 1, 0]
    assert "1 graph break" in shown[2][0]["text/plain"]
    assert "recompile" in shown[3][0]["text/plain"]
    assert all("<iframe" in each[0]["text/html"] for each in shown if each)
    assert max(len(each[0]["text/html"]) for each in shown if each) < 1_000_000


def test_the_core_imports_without_ipython():
    import subprocess
    import sys

    code = ("import sys; sys.modules['IPython'] = None; import depyf, depyf.explain, depyf.notebook; "
            "print('torch' in sys.modules, 'IPython.core' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    assert done.stdout.split() == ["False", "False"], done.stderr

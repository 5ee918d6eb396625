"""What the page is made of: links counted, lines judged, one file with a strict policy. Without a browser."""

import base64
import dataclasses
import hashlib
import html.parser
import json
import os
import re
import shutil
import subprocess
import textwrap

import pytest

from depyf import page
from depyf.reading import own_text
from depyf.records.model import (
    Capture,
    Compilation,
    CompileId,
    GuardFailure,
    SourceFile,
    SourceLocation,
    TracedLines,
    UserFunction,
)
from depyf.torch_text.user_expressions import path_steps
from depyf.views import page as building
from depyf.views.dump.directory import Directory
from depyf.views.dump.files import write_views
from depyf.views.markdown import spans
from depyf.views.page import run_data
from depyf.views.page.run import BREAK, FOLDED, GRAPH, PYTHON, UNKNOWN, UNREACHED, FileLines, failed

DUMPS = ("toy", "decoder", "gradient", pytest.param("training", marks=pytest.mark.heavy), "shapes", "ranks", "large")


def shares(run):
    """Return the numbers of operations and kernel calls, and of those that lead somewhere.

    ``(operations of graphs, those that lead to a place, calls of kernels, those that lead to operations)``.
    """
    nodes = leading = calls = known = 0
    for document in run["docs"]:
        if document["kind"] == "graph":
            rows = list(zip(*[iter(document["nodes"])] * 5))
            nodes += sum(row[4] for row in rows)
            leading += sum(row[4] and row[1] >= 0 for row in rows)
        elif document["kind"] == "kernel":
            calls += len(document["calls"])
            known += sum(bool(call[5]) for call in document["calls"])
    return nodes, leading, calls, known


# --- links ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", DUMPS)
def test_graph_nodes_lead_to_user_lines_and_kernels_to_nodes(name, page_of):
    """The share of operations that lead to a line of the user's, and of calls of kernels that lead to operations,
    counted from the data in the page."""
    totals = [0, 0, 0, 0]
    for run in building.unpacked(page_of(name).read_text())["runs"]:
        totals = [a + b for a, b in zip(totals, shares(run))]
    nodes, leading, calls, known = totals
    assert nodes > 0 and leading / nodes >= 0.98, totals
    assert calls == 0 or known / calls >= 0.95, totals
    if name in ("toy", "gradient", "training", "shapes"):
        assert calls > 0


@pytest.mark.parametrize("name", DUMPS)
def test_every_number_leads_somewhere(name, page_of):
    for run in building.unpacked(page_of(name).read_text())["runs"]:
        places, docs, files = run["places"], run["docs"], run["files"]
        assert len({doc["key"] for doc in docs}) == len(docs)
        assert all(0 <= file < len(files) for file in places[::2]) and all(line > 0 for line in places[1::2])
        count = len(places) // 2
        for doc in docs:
            lines = doc["text"].count("\n") + 1
            if doc["kind"] == "graph":
                rows = list(zip(*[iter(doc["nodes"])] * 5))
                assert len(rows) == len(doc["names"])
                captured = next(docs[i] for i in run["graphs"][doc["graph"]]["stages"] if docs[i]["captured"])
                for line, place, origin, module, _ in rows:
                    assert 0 <= line <= lines and -1 <= place < count and -1 <= origin < len(captured["names"])
                    assert -1 <= module < len(run["graphs"][doc["graph"]]["modules"])
            elif doc["kind"] == "kernel":
                for _, _, first, last, call, nodes, _ in doc["calls"]:
                    assert 0 <= first <= last <= lines and 0 < call <= lines
                    assert all(0 <= node < len(docs[doc["stage"]]["names"]) for node in nodes)
            elif doc["kind"] == "source":
                assert all(0 < status[0] <= lines for status in doc["status"])


def test_a_captured_line_of_the_toy_leads_to_forward_graph_and_kernel(page_of):
    run = building.unpacked(page_of("toy").read_text())["runs"][0]
    source = next(doc for doc in run["docs"] if doc["kind"] == "source")
    line = 1 + next(at for at, text in enumerate(source["text"].split("\n")) if "torch.abs(a) + 1" in text)
    pairs = list(zip(run["places"][::2], run["places"][1::2]))
    place = pairs.index((source["file"], line))
    stages = [run["docs"][i] for i in run["graphs"][0]["stages"]]
    assert [doc["stage"] for doc in stages] == ["captured graph", "forward graph", "after Inductor's passes"]
    for doc in stages:
        names = [name for name, at in zip(doc["names"], doc["nodes"][1::5]) if at == place]
        assert any("abs" in name for name in names) and any("add" in name for name in names)
    kernel = run["docs"][run["graphs"][0]["kernels"][0]]
    assert any(stages[-1]["names"][node].startswith("abs") for call in kernel["calls"] for node in call[5])


# --- lines ----------------------------------------------------------------------------------------
SOURCE = textwrap.dedent('''\
    import torch

    @torch.compile
    def f(x,
          y):
        """Nothing to run."""
        n = x.shape[0]
        if n > 3:
            return x + 1
        z = (x *
             y)
        print(z)
        def inner():
            return z
        try:
            return z.sin()
        finally:
            pass

    def given_up(x):
        return x

    def never(x):
        return x
''')


def judged(known, text=SOURCE):
    lines = text.split("\n")
    return {lines[status[0] - 1].strip(): status[1] for status in known.statuses(text)}


def test_what_became_of_lines():
    known = FileLines()
    known.compiled.add(3)
    known.traced.update([3, 4, 7, 8, 10, 11, 12, 16])
    known.graphs[10].add(0)
    known.graphs[16].add(1)
    known.breaks[12].append("print")
    known.python[20] = "skipped"
    assert judged(known) == {
        "n = x.shape[0]": FOLDED, "if n > 3:": FOLDED, "return x + 1": UNREACHED, "z = (x *": GRAPH, "y)": FOLDED,
        "print(z)": BREAK, "return z.sin()": GRAPH, "return x": PYTHON}


def test_without_traced_lines_nothing_is_claimed():
    known = FileLines()
    known.compiled.add(3)
    known.graphs[10].add(0)
    by_line = judged(known)
    assert by_line["z = (x *"] == by_line["y)"] == GRAPH
    assert {by_line["n = x.shape[0]"], by_line["return x + 1"], by_line["print(z)"]} == {UNKNOWN}


def test_a_file_that_this_python_cannot_read():
    known = FileLines()
    known.graphs[2].add(0)
    known.traced.update([1, 2])
    assert judged(known, "f(: new syntax\nx + 1\n") == {"f(: new syntax": FOLDED, "x + 1": GRAPH}


def test_lines_of_the_dumps(page_of):
    for name, wanted in (("toy", {"if b.sum() < 0:": BREAK, "b = b * -1": GRAPH}),
                         ("decoder", {"if token.item() == 2:  # the end of the text": BREAK, "return tokens": UNREACHED}),
                         ("shapes", {"if x.shape[0] > 6:": FOLDED, 'if mode == "twice":': FOLDED}),
                         ("ranks", {"y = x.sin()": GRAPH})):
        run = building.unpacked(page_of(name).read_text())["runs"][0]
        source = next(doc for doc in run["docs"] if doc["kind"] == "source" and doc["key"] == "programs.py")
        lines = source["text"].split("\n")
        by_line = {lines[line - 1].strip(): status for line, status, *_ in source["status"]}
        assert {text: by_line.get(text) for text in wanted} == wanted


# --- the file -------------------------------------------------------------------------------------
class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], {}

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.texts.setdefault((self.tags[-1][0], self.tags[-1][1].get("type", "")), []).append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_policy_allows_the_script_and_the_style_and_nothing_else():
    reader = read(page.build(Capture()))
    policy = next(attributes["content"] for tag, attributes in reader.tags
                  if attributes.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for kind, rule in (("script", "script-src"), ("style", "style-src")):
        [text] = reader.texts[(kind, "")]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert "unsafe" not in policy and "http" not in policy
    assert [tag for tag, _ in reader.tags].count("script") == 3  # the program, the head of the data, the part of the run
    names = {name for _, attributes in reader.tags for name in attributes}
    assert not names & {"src", "href", "style"} and not any(name.startswith("on") for name in names)


def test_the_script_has_no_way_to_read_text_as_html():
    script = own_text("views/page/static/page.js")
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"):
        assert sink not in script
    assert "</script" not in script.lower() and "<!--" not in script


HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "$title ${script} $data", "\u2028\u2029",
           "\udc80", "\0", "\u202e", "]]>", "<!--", "&lt;b&gt;", "`${alert(1)}`", "javascript:alert(1)"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_what_it_is(text):
    whole = page.build(Capture(notes=(text,), environment={text: text}, sources=(SourceFile(text, text),)), title=text)
    assert building.unpacked(whole)["runs"][0]["notes"] == [text]
    reader, plain = read(whole), read(page.build(Capture()))
    assert [tag for tag, _ in reader.tags] == [tag for tag, _ in plain.tags]


def test_the_same_records_give_the_same_page(captures):
    capture = captures("toy")[""]
    assert page.build(capture) == page.build(capture)
    assert page.build(capture).isascii()


def test_sources_that_are_given_count(captures):
    capture = captures("toy")[""]
    given = page.build(dataclasses.replace(capture, sources=()), [SourceFile(capture.sources[0].path, "given\n")])
    docs = building.unpacked(given)["runs"][0]["docs"]
    assert [doc["text"] for doc in docs if doc["kind"] == "source"] == ["given\n"]


def test_an_empty_run_has_a_page():
    data = building.unpacked(page.build(Capture()))
    assert data["runs"][0]["docs"] == [] and data["runs"][0]["summary"]["versions"] == 0


def test_paths_of_guarded_objects():
    assert path_steps("self.layers[i].w") == ["self", "layers", "[i]", "w"]
    assert path_steps("self._modules['my-norm'].w") == ["self", "my-norm", "w"]
    assert path_steps("torch.nn.functional") == ["torch", "nn", "functional"]
    assert path_steps("len(x)") == ["len(x)"]
    assert path_steps("x.size()[0]") == ["x", "size()", "[0]"]
    assert path_steps("") == []


def test_cut_paths_in_guards_lead_to_the_file(captures):
    run = run_data(captures("decoder")[""])
    shown = [file for file in run["files"] if file["path"].endswith("transformers/masking_utils.py")]
    assert len(shown) == 1 and shown[0]["doc"] >= 0


def test_guards_that_failed_stand_at_their_object(captures):
    run = run_data(captures("shapes")[""])
    failed = {entry["id"]: {group[0]: group[4] for group in entry["groups"] if group[4]} for entry in run["guards"]}
    assert failed["[0/0]"] == {"x": ["x.shape[0]: expected 3, seen 4, 9"]}
    assert "x.shape[0]" in failed["[0/1]"]
    assert "mode: expected 'twice', seen 'once', 'other', 'more'" in failed["[1/0]"]["mode"]
    assert [entry["failed"] for entry in run["guards"]] == [[]] * len(run["guards"])


# --- who writes it --------------------------------------------------------------------------------
def test_it_is_written_when_the_run_ends(dump):
    text = (dump("toy") / "index.html").read_text()
    assert building.unpacked(text)["runs"][0]["units"][0]["title"] == "toy.toy_example"
    assert "(index.html)" in (dump("toy") / "index.md").read_text()
    assert "index.html" not in (dump("toy") / "records.jsonl").read_text().split("\n", 1)[0]


def test_report_makes_the_page_of_all_ranks(dump, tmp_path):
    from depyf.cli import main

    shutil.copytree(dump("ranks"), tmp_path / "ranks")
    assert main(["report", str(tmp_path / "ranks")]) == 0
    data = building.unpacked((tmp_path / "ranks" / "index.html").read_text())
    assert [run["name"] for run in data["runs"]] == ["rank 0", "rank 1"]
    assert [run["summary"]["breaks"] for run in data["runs"]] == [0, 1]
    os.unlink(tmp_path / "ranks" / "index.html")
    assert main(["report", str(tmp_path / "ranks"), "--no-page"]) == 0
    assert not (tmp_path / "ranks" / "index.html").exists()


# --- the built files ------------------------------------------------------------------------------
def test_the_built_files_are_those_of_the_sources(tmp_path):
    """``make page-assets`` gives what is in the package."""
    frontend = os.path.join(os.path.dirname(__file__), "..", "..", "frontend")
    if shutil.which("node") is None or not os.path.isdir(os.path.join(frontend, "node_modules")):
        pytest.skip("the front-end's packages are not installed (make page-assets)")
    subprocess.run(["node", "build.mjs"], cwd=frontend, check=True, env={**os.environ, "OUT": str(tmp_path)})
    for name in ("page.js", "page.css"):
        assert (tmp_path / name).read_text(encoding="utf-8") == own_text(f"views/page/static/{name}"), f"{name} is stale: make page-assets"


def test_the_lock_names_every_package():
    frontend = os.path.join(os.path.dirname(__file__), "..", "..", "frontend")
    with open(os.path.join(frontend, "package.json")) as file:
        wanted = json.load(file)
    with open(os.path.join(frontend, "package-lock.json")) as file:
        locked = json.load(file)["packages"]
    for name, version in {**wanted["dependencies"], **wanted["devDependencies"]}.items():
        assert re.fullmatch(r"[\d.]+", version) and locked[f"node_modules/{name}"]["version"] == version


def test_only_pages_that_take_long_are_left_to_the_report(captures, tmp_path):
    capture = captures("toy")[""]
    assert not page.is_large(capture)
    graph = capture.graphs[0]
    stage = dataclasses.replace(graph.stages[0], text="x" * 2_000_000)
    large = dataclasses.replace(capture, graphs=(dataclasses.replace(graph, stages=(stage,)),))
    assert page.is_large(large)
    errors = []
    for chosen, words in ((None, "run `depyf open` with this directory"), (True, "open [`index.html`]"), (False, "")):
        folder = tmp_path / str(chosen)
        folder.mkdir()
        write_views(large, Directory(str(folder)), errors.append, page=chosen)
        assert (folder / page.FILE).exists() == bool(chosen)
        text = (folder / "index.md").read_text()
        assert words in text and ("To read it in a browser" in text) == bool(words)
    assert errors == []


FILE_OF_A_LIBRARY = """
import long

TEXT = '''
def f(x):
    return x
'''


@decorated(
    by="something"
)
def f(x):
    return x + 1


class A:
    def g(self, x):
        if x:
            def h(y):
                return y
            x = h(x)
        return x * 2
"""


def test_functions_are_found_in_files_of_which_little_was_used():
    """Strings and long decorators do not mislead."""
    known = FileLines()
    lines = FILE_OF_A_LIBRARY.split("\n")
    body = lines.index("        if x:") + 1
    known.graphs[body].add(0)
    by_line = {number: status for number, status, *_ in known.statuses(FILE_OF_A_LIBRARY)}
    assert by_line == {body: "graph", body + 3: "unknown", body + 4: "unknown"}
    known.compiled.add(lines.index("@decorated(") + 1)
    by_line = {number: status for number, status, *_ in known.statuses(FILE_OF_A_LIBRARY)}
    assert by_line[lines.index("    return x + 1") + 1] == "unknown" and len(by_line) == 4


CLASSES = """class Fields:
    x: int = 1

class Outer:
    \"\"\"Use it so::

    def example():
        pass
    \"\"\"
    @long(
        1)
    def first(self, x):
        return x

    class Inner:
        async def second(self):
            text = \"\"\"
def not_a_function():
\"\"\"
            return text

    @property
    def third(self):
        def inside():
            return 3
        return inside
"""


@pytest.mark.parametrize("wanted", ["return x", "return text", "return 3", "return inside"])
def test_methods_are_found_in_classes_of_which_little_was_used(wanted):
    lines = [line.strip() for line in CLASSES.split("\n")]
    at = lines.index(wanted) + 1
    known = FileLines()
    known.traced.update([at])
    named = {"return x": "def first(self, x):", "return text": "async def second(self):", "return 3": "def inside():",
             "return inside": "def third(self):"}
    known.compiled.add(lines.index(named[wanted]) + 1)
    by_line = {line: status for line, status, *_ in known.statuses(CLASSES)}
    assert by_line.pop(at) == FOLDED
    assert by_line == {at - 3 + k: UNREACHED for k in range(3 if wanted == "return text" else 0)}


def test_lines_of_a_class_without_methods_are_no_error():
    known = FileLines()
    known.traced.update([2])
    assert [row[:2] for row in known.statuses(CLASSES)] == [[2, FOLDED]]


# --- what comes first -------------------------------------------------------------------------------
def given_up(**more):
    lost = Compilation(CompileId(0, 0), "f", SourceLocation("m.py", 3, "f"), outcome="skipped",
                       traced=(TracedLines("m.py", (3, 4, 7, 8, 10, 11)),), **more)
    return Capture(compilations=(lost,), sources=(SourceFile("m.py", SOURCE),), environment={
        "torch": "2.13.0", "command": "python train.py --steps 3", "date": "2026-11-22 10:00"})


def test_all_lines_of_a_function_that_was_given_up_run_in_plain_python():
    [source] = [doc for doc in run_data(given_up())["docs"] if doc["kind"] == "source"]
    assert {row[1] for row in source["status"]} == {PYTHON} and len(source["status"]) > 5


def test_what_was_not_compiled_comes_first():
    run = run_data(given_up())
    assert "f runs in plain Python" in "".join(text for _, text in run["verdict"][0])
    assert run["lost"][0]["text"][0] == ["code", "f"]
    assert run_data(Capture())["verdict"] == []


def test_the_title_says_what_was_run_and_when(captures):
    assert "<title>train.py --steps 3 &#183; 2026-11-22 10:00</title>" in page.build(given_up())
    capture = captures("toy")[""]
    assert " &#183; inductor &#183; 20" in page.build(capture)
    assert "<title>torch.compile: toy.toy_example</title>" in page.build(dataclasses.replace(capture, environment={}))


def test_resume_functions_that_no_call_reached_say_so(captures):
    run = run_data(captures("toy")[""])
    fates = [frame["fate"] for unit in run["units"] for frame in unit["frames"]]
    assert fates[0] == "" and set(fates) <= {"", "unreached", "plain"}


def test_stages_and_kernels_know_their_direction(captures):
    run = run_data(captures("gradient")[""])
    kinds = [(doc.get("stage") if doc["kind"] == "graph" else doc["shown"], doc["direction"]) for doc in run["docs"]
             if doc["kind"] in ("graph", "kernel")]
    assert kinds == [
        ("captured graph", ""), ("joint graph", ""), ("forward graph", "forward"), ("backward graph", "backward"),
        ("after Inductor's passes, forward", "forward"), ("after Inductor's passes, backward", "backward"),
        ("forward kernels", "forward"), ("backward kernels", "backward")]


def test_without_a_backward_all_that_was_made_of_a_graph_is_of_the_forward(captures):
    run = run_data(captures("shapes")[""])
    made = [(doc.get("stage") if doc["kind"] == "graph" else doc["shown"], doc["direction"]) for doc in run["docs"]
            if doc["kind"] in ("graph", "kernel")]
    assert {("forward graph", "forward"), ("after Inductor's passes", "forward"), ("kernels", "forward")} <= set(made)


def test_a_compilation_is_at_the_function_that_the_user_means():
    wrapper, function = SourceLocation("/lib/generic.py", 1019, "wrapper"), SourceLocation("/me/model.py", 4, "forward")
    compilation = Compilation(CompileId(0, 0), "wrapper", wrapper, outcome="skipped",
                              user_function=UserFunction("Net.forward", function, (wrapper,)))
    run = run_data(Capture(compilations=(compilation,)))
    for data in (run["compilations"][0], run["lost"][0], run["units"][0]):
        file, line = run["places"][2 * data["place"] : 2 * data["place"] + 2]
        assert (run["files"][file]["path"], line) == ("/me/model.py", 4)


@pytest.mark.parametrize(("failure", "failing"), [
    (GuardFailure(None, "tensor 'x' size mismatch at index 0. expected 4, actual 6", "L['x']", "4", "6"), [{1}, set()]),
    (GuardFailure(None, "len(L['x']) == 3", "L['x']", "3", "4"), [{2}, set()]),
    (GuardFailure(None, "x is something", "L['x']", "3", "4"), [{2}, set()]),
    (GuardFailure(None, "2 <= x", "L['x']"), [set(), {0}]),
    (GuardFailure(None, "not known", "L['x']"), [{0}, set()]), (GuardFailure(None, "not known"), [set(), set()])])
def test_the_condition_that_failed_is_found(failure, failing):
    groups = [("L['x']", ["has_no_marks(L['x'])", "check_tensor(L['x'], size=(4, 16))", "len(L['x']) == 3"]), ("", ["2 <= x"])]
    of_groups, rest = failed(groups, [failure], str)
    assert [set(each) for each in of_groups] == failing and bool(rest) == (not any(failing))


def test_markdown_as_pieces():
    assert spans("`x.shape[0]`: 4 \u2192 6, **not `f`**, \\*a\\*") == [
        ["code", "x.shape[0]"], ["", ": 4 \u2192 6, "], ["bold", "not "], ["code", "f"], ["", ", *a*"]]

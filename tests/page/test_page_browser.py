"""The page in a real Chromium: every view used on every dump, without an error, a request or a serious complaint of axe.

Needs playwright (pip) and a Chromium (``CHROMIUM`` names it, else it is looked for); skipped otherwise. axe comes from
``frontend/node_modules`` (``make page`` sets all of it up).
"""

import dataclasses
import os
import pathlib
import shutil
import types
import typing

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from depyf import page  # noqa: E402
from depyf.records import model as records  # noqa: E402
from depyf.records.model import Capture, CompileId, GraphStage  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
AXE = pathlib.Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
DUMPS = ("toy", "decoder", "training", "shapes", "ranks", "large")
VIEWS = ("overview", "source", "side", "guards", "graph")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """``visit(path, route)``: the page; at the end nothing may have gone wrong in it."""
    contexts, troubles = [], []

    def go(path, route="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(15000)
        tab.on("console", lambda message: message.type in ("error", "warning") and troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda request: None if request.url.startswith(f"file://{path}") else troubles.append(
            f"request: {request.url}"))
        tab.goto(f"file://{path}#/{route}")
        tab.wait_for_selector("html[data-ready]", state="attached")
        return tab

    yield go
    for context in contexts:
        context.close()
    assert troubles == []


def data(tab, expression):
    """Evaluates with ``run``, the data of the run that is shown."""
    return tab.evaluate(f"(() => {{ const app = document.querySelector('#app').app; const run = app.data.runs[app.number]; "
                        f"return {expression}; }})()")


def until(tab, expression):
    """Waits until it is true. (``wait_for_function`` asks again by ``eval``, which the page's policy forbids.)"""
    for _ in range(100):
        if tab.evaluate(expression):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(expression)


def line_of(tab, pane, number):
    """The element of a line in a pane, scrolled into view."""
    gutter = tab.locator(".pane").nth(pane).locator(".cm-lineNumbers .cm-gutterElement", has_text=f"{number}")
    items = [item for item in gutter.all() if item.text_content() == str(number)]
    box = items[-1].bounding_box()
    return box["y"] + box["height"] / 2


def click_line(tab, pane, number):
    box = tab.locator(".pane").nth(pane).locator(".cm-content").bounding_box()
    area = tab.locator(".pane").nth(pane).locator(".cm-scroller").bounding_box()
    left = max(box["x"], area["x"])
    tab.mouse.click(left + 12, line_of(tab, pane, number))


def marked(tab, pane, kind="exact"):
    """Numbers of the lines in a pane that are marked and in view."""
    return tab.evaluate("""([pane, kind]) => {
        const root = document.querySelectorAll('.pane')[pane].querySelector('.editor').shadowRoot;
        const top = (element) => Math.round(element.getBoundingClientRect().top);
        const numbers = new Map([...root.querySelectorAll('.cm-lineNumbers .cm-gutterElement')].map(
            (element) => [top(element), Number(element.textContent)]));
        return [...root.querySelectorAll('.cm-line.' + kind)].map((element) => numbers.get(top(element)) ?? -1);
    }""", [pane, kind])


# --- every view of every dump ---------------------------------------------------------------------
@pytest.mark.parametrize("name", DUMPS)
def test_the_overview(name, page_of, visit):
    tab = visit(page_of(name), "overview")
    assert tab.locator(".unit").count() == data(tab, "run.units.length") > 0
    assert tab.locator(".facts li").count() >= 5
    assert tab.locator("#timeline .mark").count() > 0 and tab.locator("#cost .mark").count() > 0
    if data(tab, "run.breaks.length"):
        assert tab.locator("#breaks .fix li").count() > 0
    targets = list(dict.fromkeys(tab.locator("main a[href^='#/']").evaluate_all("all => all.map(a => a.getAttribute('href'))")))
    assert targets
    for target in targets[:: max(1, len(targets) // 12)]:
        tab.evaluate("to => { location.hash = to }", target)
        tab.wait_for_timeout(50)
        view = target.split("/")[1]
        assert tab.locator("nav a[aria-current]").get_attribute("href").startswith(f"#/{view}/")
        assert tab.locator(".empty").count() == 0


@pytest.mark.parametrize("name", DUMPS)
def test_source(name, page_of, visit):
    tab = visit(page_of(name), "source")
    line = data(tab, "run.docs.filter(d => d.kind === 'source').reduce((a, b) => b.status.length > a.status.length ? b : a)"
                     ".status.find(s => s[1] === 'graph')[0]")
    assert tab.locator(".legend li").count() > 0
    tab.evaluate("line => { location.hash = location.hash.replace(/(@\\d+)?$/, '') + ''; }", line)
    key = data(tab, "run.docs.filter(d => d.kind === 'source').reduce((a, b) => b.status.length > a.status.length ? b : a).key")
    tab.evaluate("([key, line]) => { location.hash = `#/source/0/${encodeURIComponent(key)}@${line}` }", [key, line])
    tab.wait_for_selector(".went a")
    click_line(tab, 0, line)
    assert tab.locator(".detail h2").text_content().endswith(f":{line}")
    assert tab.locator(".went a").count() > 0
    tab.locator(".went a").first.click()
    tab.wait_for_selector(".panes .pane:nth-child(2)")
    assert len(marked(tab, 0)) >= 1 and len(marked(tab, 1)) >= 1


@pytest.mark.parametrize("name", DUMPS)
def test_side_by_side(name, page_of, visit):
    tab = visit(page_of(name), "side")
    assert tab.locator(".pane").count() >= 2
    captured = data(tab, "run.docs.find(d => d.captured).key")
    source = data(tab, "(() => { const d = run.docs.find(d => d.captured); const i = run.index(d); "
                       "const p = run.place([...i.byPlace.keys()].find(p => run.place(p).file.doc >= 0)); "
                       "return [run.docs[p.file.doc].key, p.line]; })()")
    tab.evaluate("([a, line, b]) => { location.hash = `#/side/0/${encodeURIComponent(a)}@${line}/${encodeURIComponent(b)}` }",
                 [*source, captured])
    until(tab, "document.querySelectorAll('.pane').length === 2")
    tab.wait_for_timeout(200)
    first = marked(tab, 1)
    assert marked(tab, 0) == [source[1]] and first
    click_line(tab, 1, first[0])  # and back
    assert marked(tab, 0) == [source[1]]
    # another text in the second pane, search, folds
    options = tab.locator(".pane").nth(1).locator("select.text option").evaluate_all("all => all.map(o => o.value)")
    for value in options[:: max(1, len(options) // 6)]:
        tab.locator(".pane").nth(1).locator("select.text").select_option(value)
        tab.wait_for_timeout(30)
    tab.locator(".pane").nth(1).get_by_role("button", name="find").click()
    tab.keyboard.type("torch")
    tab.keyboard.press("Enter")
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="+ pane").click()
    assert tab.locator(".pane").count() == 3
    tab.locator(".pane").nth(2).locator(".close").click()
    assert tab.locator(".pane").count() == 2


@pytest.mark.parametrize("name", DUMPS)
def test_guards(name, page_of, visit):
    tab = visit(page_of(name), "guards")
    assert tab.locator(".tree > details").count() > 0
    most = tab.locator(".card.cost li b").all_text_contents()
    assert most and [int(number) for number in most] == sorted(map(int, most), reverse=True)
    tab.get_by_role("searchbox").fill("check_")
    assert tab.locator(".conditions li").count() > 0
    tab.get_by_role("searchbox").fill("nothing of that kind")
    assert tab.locator(".tree .empty").count() == 1
    failed = data(tab, "(run.guards.find(g => g.failed.length || g.groups.some(x => x[4].length)) ?? {}).id ?? ''")
    if failed:
        tab.locator(".bar select").select_option(failed)
        tab.wait_for_selector(".card.warn")
        assert tab.locator(".card.warn").bounding_box()["y"] < tab.locator(".tree").bounding_box()["y"]
    assert bool(failed) == (name in ("decoder", "shapes"))


@pytest.mark.parametrize("name", DUMPS)
def test_graph(name, page_of, visit):
    tab = visit(page_of(name), "graph")
    assert tab.locator(".outline a.line").count() > 0
    for value in tab.locator(".bar select option").evaluate_all("all => all.map(o => o.value)")[:4]:
        tab.locator(".bar select").select_option(value)
        tab.wait_for_timeout(50)
    if name in ("training", "large"):
        tab.locator(".bar select").select_option(data(tab, "run.docs.find(d => d.captured && d.outline.length > 20).key"))
        tab.wait_for_selector(".like")  # repeated layers stand once
        tab.get_by_role("button", name="close all").click()
        tab.get_by_role("searchbox").fill("linear")
        assert tab.locator(".outline details[open]").count() > 0
    tab.locator(".outline a.line >> visible=true").first.click()
    tab.wait_for_selector(".panes .pane")


def test_ranks(page_of, visit):
    tab = visit(page_of("ranks"))
    assert tab.locator("nav a[aria-current]").text_content() == "Ranks"
    assert tab.locator("tr.differ", has_text="breaks").count() >= 1
    tab.locator("thead a", has_text="rank 1").click()
    assert tab.locator("#breaks").count() == 1
    tab.get_by_label("rank", exact=True).select_option("0")
    until(tab, "!document.querySelector('#breaks')")


# --- links ----------------------------------------------------------------------------------------
def test_a_line_of_the_toy_in_three_texts(page_of, visit):
    tab = visit(page_of("toy"), "side")
    text = data(tab, "run.docs.find(d => d.kind === 'source').text").split("\n")
    line = 1 + next(at for at, words in enumerate(text) if "torch.abs(a) + 1" in words)
    tab.wait_for_timeout(200)
    click_line(tab, 0, line)
    captured = data(tab, "run.docs.find(d => d.captured).text").split("\n")
    wanted = [at for at, words in enumerate(captured, 1) if words.strip().startswith(("abs_1:", "add:", "x:"))]
    assert marked(tab, 1) == wanted
    assert marked(tab, 2), "its kernel"
    assert "torch.abs(a) + 1" in tab.locator(".hint").text_content()
    address = tab.url
    assert f"@{line}" in address
    again = visit(page_of("toy"), address.partition("#/")[2])  # a link to the line
    again.wait_for_timeout(300)
    assert marked(again, 0) == [line] and marked(again, 1) == wanted


def test_names_lead_to_definitions(page_of, visit):
    tab = visit(page_of("toy"), "side")
    key = data(tab, "run.docs.find(d => d.kind === 'transformed').key")
    for name, title in (("__resume_at_", "transformed code of [1/0]"), ("__compiled_fn_1", "captured graph of __compiled_fn_1")):
        tab.evaluate("key => { location.hash = `#/side/0/${encodeURIComponent(key)}` }", key)
        until(tab, "document.querySelectorAll('.pane').length === 1")
        tab.locator(".jump", has_text=name).first.click()
        shown = tab.locator(".pane select.text").evaluate("s => s.selectedOptions[0].textContent")
        assert shown.startswith(title)
        tab.evaluate("() => { location.hash = '#/overview/0' }")


def test_the_way_back_leads_to_where_one_was(page_of, visit):
    tab = visit(page_of("training"), "side")
    tab.wait_for_timeout(200)
    scroller = "document.querySelectorAll('.pane')[1].querySelector('.editor').shadowRoot.querySelector('.cm-scroller')"
    tab.evaluate(f"() => {{ {scroller}.scrollTop = 700 }}")
    tab.wait_for_timeout(200)
    tab.mouse.click(*tab.evaluate(f"""() => {{
        const area = {scroller}.getBoundingClientRect();
        const boxes = [...{scroller}.querySelectorAll('.cm-line')].filter((line) => /\\bc[0-7]\\b/.test(line.className))
            .map((line) => line.getBoundingClientRect());
        const box = boxes.find((box) => box.top > area.top + 60);
        return [area.left + area.width / 2, box.top + 5];
    }}"""))
    tab.wait_for_timeout(200)
    place, lines, address = tab.evaluate(f"{scroller}.scrollTop"), marked(tab, 1), tab.url
    assert place > 300 and lines
    tab.keyboard.press("1")
    tab.wait_for_selector("#functions")
    tab.keyboard.press("3")
    tab.wait_for_selector(".pane")
    tab.wait_for_timeout(200)
    assert abs(tab.evaluate(f"{scroller}.scrollTop") - place) < 30 and marked(tab, 1) == lines and tab.url == address
    # a link to something else shows that, not what was kept
    key = data(tab, "run.docs.find(d => d.kind === 'transformed').key")
    tab.evaluate("key => { location.hash = `#/side/0/${encodeURIComponent(key)}` }", key)
    until(tab, "document.querySelectorAll('.pane').length === 1")
    assert tab.locator(".pane select.text").evaluate("s => s.selectedOptions[0].textContent").startswith("transformed code")


def test_a_kernel_is_gone_to_by_its_name(page_of, visit):
    tab = visit(page_of("training"), "overview")
    tab.locator(".chip.graph a", has_text="kernel call").first.click()
    tab.wait_for_selector(".pane")
    choice = tab.locator(".pane").nth(2).get_by_label("go to kernel")
    names = choice.locator("option").all_text_contents()
    assert len(names) > 3 and names[0] == "go to kernel"
    number = next(at for at, name in enumerate(names) if "cpp_fused" in name and at > 2)
    choice.select_option(str(number - 1))
    tab.wait_for_timeout(300)
    assert len(marked(tab, 2, "at")) == 1 and marked(tab, 0), "its lines"
    line = tab.locator(".pane").nth(2).locator(".cm-line.at").text_content()
    assert names[number].split(" ")[0] in line
    assert not tab.locator(".pane").first.get_by_label("go to kernel").is_visible()


def test_the_overview_says_why_and_what_to_do(page_of, visit):
    tab = visit(page_of("decoder"), "overview")
    assert "graph break" in tab.locator(".broke").first.text_content()
    assert tab.get_by_text("capture_scalar_outputs = True").count() == 1  # (the advice stands once, at the break)
    assert any("tokens.shape[1]: 8 \u2192 9" in words for words in tab.locator(".why").all_text_contents())
    row = tab.locator("#recompiles .events > li").first
    assert row.text_content().startswith("[0/1] tokens.shape[1]: 8 \u2192 9")
    assert "expected 8, actual 9" in row.locator("details").text_content()  # (torch's words, for who asks)
    assert "programs.py decoder" in tab.locator("header .environment").text_content()
    assert "eager" in tab.locator("header .environment").get_attribute("title")


@pytest.mark.parametrize(("name", "last"), [("decoder", "captured graph"), ("training", "forward kernels")])
def test_side_by_side_begins_with_the_first_operation(page_of, visit, name, last):
    """All texts show it, marked, at one height."""
    tab = visit(page_of(name), "side")
    until(tab, "document.querySelectorAll('.pane').length === 3")
    tab.wait_for_timeout(400)
    first = data(tab, "(() => { const d = run.docs.find(d => d.captured); "
                      "return Math.min(...run.index(d).places.keys()); })()")
    panes = [number for number in range(3) if marked(tab, number)]
    assert panes == [0, 1, 2]
    captured = next(number for number in panes if "captured graph" in title(tab, number))
    assert title(tab, 2).startswith(last) and first in marked(tab, captured, "at")
    heights = [tab.evaluate("""pane => document.querySelectorAll('.pane')[pane].querySelector('.editor').shadowRoot
        .querySelector('.cm-line.exact').getBoundingClientRect().top""", number) for number in panes]
    assert max(heights) - min(heights) < 30, heights


def title(tab, pane):
    return tab.locator(".pane").nth(pane).locator("select.text").evaluate("of => of.selectedOptions[0].textContent")


def test_stages_and_kernels_say_their_direction(page_of, visit):
    tab = visit(page_of("training"), "overview")
    words = tab.locator(".chip.graph").first.text_content()
    assert words.index("forward:") < words.index("kernel call") < words.index("backward:") < words.rindex("kernel call")
    assert " 2" not in words.partition("forward:")[2].replace("kernel calls", "").partition("passes")[2][:3]


def test_outcomes_of_caches_are_a_list(page_of, visit):
    words = visit(page_of("training"), "overview").get_by_text("Torch's caches:").text_content()
    assert ", " in words and " ," not in words


def test_what_failed_is_shown_as_failed(page_of, visit):
    tab = visit(page_of("shapes"), "guards/0/%5B0%2F0%5D")
    failed = tab.locator(".card.warn .conditions li")
    assert failed.count() == 1 and "check_tensor" in failed.first.text_content()
    assert tab.locator(".tree .conditions li.bad").count() == 1
    assert tab.locator(".tree .conditions li.bad .tag").text_content() == "failed"


def test_modules_fold(page_of, visit):
    tab = visit(page_of("training"), "side")
    pane = tab.locator(".pane").nth(1)
    lines = pane.locator(".cm-line").count()
    pane.get_by_role("button", name="fold").click()
    assert pane.locator(".module button[aria-expanded=false]").count() == 3  # layers.0 to layers.2
    pane.locator(".module button", has_text="layers.1").click()
    assert pane.locator(".module button", has_text="layers.1").first.get_attribute("aria-expanded") == "true"
    assert pane.locator(".module button", has_text="layers.0").first.get_attribute("aria-expanded") == "false"
    pane.get_by_role("button", name="open").click()
    assert pane.locator(".module button[aria-expanded=false]").count() == 0 and lines


def test_the_keyboard(page_of, visit):
    tab = visit(page_of("toy"), "overview")
    for number, view in enumerate(VIEWS, 1):
        tab.keyboard.press(str(number))
        until(tab, f"document.querySelector('nav a[aria-current]').getAttribute('href').startsWith('#/{view}')")
    tab.keyboard.press("3")
    tab.locator(".pane .cm-content").nth(1).focus()
    line = data(tab, "Math.min(...run.index(run.docs.find(d => d.captured)).places.keys())")
    tab.keyboard.press("Home")
    for _ in range(line - 1):
        tab.keyboard.press("ArrowDown")
    assert marked(tab, 1, "at") == [line] and marked(tab, 0) != []
    tab.keyboard.press("Escape")
    assert marked(tab, 1, "at") == [] == marked(tab, 0)
    tab.keyboard.press("/")
    tab.wait_for_selector(".cm-search")
    tab.locator("header h1").click()
    tab.keyboard.press("?")
    assert tab.get_by_role("dialog").is_visible()
    tab.keyboard.press("Escape")
    tab.keyboard.press("t")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    tab.keyboard.press("t")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("view", VIEWS)
def test_it_fits_a_phone_and_a_laptop(page_of, visit, view, width):
    tab = visit(page_of("decoder"), view, viewport={"width": width, "height": 780})
    tab.wait_for_timeout(150)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


# --- accessibility --------------------------------------------------------------------------------
@pytest.mark.skipif(not AXE.exists(), reason="axe is not installed (make page)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["toy", "shapes", "training", "ranks"])
def test_axe_finds_nothing_serious(page_of, visit, name, scheme):
    problems = []
    for view in (*VIEWS, "ranks") if name == "ranks" else VIEWS:
        tab = visit(page_of(name), view, color_scheme=scheme, bypass_csp=True)
        tab.wait_for_timeout(200)
        if view == "side":
            tab.locator(".pane .cm-content").first.focus()
            for _ in range(3):
                tab.keyboard.press("ArrowDown")
        tab.evaluate(AXE.read_text())
        result = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        problems += [(view, each["id"], each["impact"], node["target"], node["failureSummary"][:300])
                     for each in result["violations"] if each["impact"] in ("serious", "critical") for node in each["nodes"]]
    assert problems == []


# --- hostile text ---------------------------------------------------------------------------------
ATTACK = "window.hacked=1"
HOSTILE = [
    f"<script>{ATTACK}</script>", f"</script><script>{ATTACK}</script>", f"<img src=x onerror={ATTACK}>", f"<svg onload={ATTACK}>",
    f"<svg><script>{ATTACK}</script></svg>", f"<body onload={ATTACK}>", f"<iframe srcdoc='<script>parent.{ATTACK}</script>'>",
    f"<iframe src='javascript:parent.{ATTACK}'>", f"<a href='javascript:{ATTACK}'>x</a>", f"javascript:{ATTACK}",
    f"JaVaScRiPt:{ATTACK}", f"data:text/html,<script>{ATTACK}</script>", f"<details open ontoggle={ATTACK}>",
    f"<input autofocus onfocus={ATTACK}>", f"<math><mtext><script>{ATTACK}</script>", f"<style>@import 'x'</style><img onerror={ATTACK} src>",
    "</style><style>*{display:none}", "<link rel=stylesheet href=//evil.example/x.css>", "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>", "<form action=//evil.example><button>x</button></form>", f"<object data='javascript:{ATTACK}'>",
    f"<embed src='javascript:{ATTACK}'>", f"<template><script>{ATTACK}</script></template>", f"<!--><script>{ATTACK}</script>-->",
    f"<![CDATA[<script>{ATTACK}</script>]]>", f"\" onmouseover=\"{ATTACK}", f"' onmouseover='{ATTACK}", f"`${{{ATTACK}}}`",
    f"${{{ATTACK}}}", f"{{{{constructor.constructor('{ATTACK}')()}}}}", f"\\u003cscript\\u003e{ATTACK}", f"&lt;script&gt;{ATTACK}",
    f"%3Cscript%3E{ATTACK}", "__proto__", "constructor", "toString", "hasOwnProperty", "prototype", "\u2028\u2029", "\u202egnp.exe",
    "\x00\x01\x1b[31m", "\udc80\ud800", "\ufeff\u200b", "a" * 20_000, "\n" * 300, "\r\n\r", "#/side/0/../../@9", "../../etc/passwd@1",
    "https://evil.example/`x`", "", " ", "\U0001f600" * 50]


def sample(kind, text, number):
    """A record with every field filled: texts with ``text``, ids with ``number``."""
    if kind is CompileId:
        return CompileId(number, 0)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, vars(records))
        return kind(**{field.name: sample(hints[field.name], text, number) for field in dataclasses.fields(kind)})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return sample(arguments[0], text, number)
    if origin is tuple:
        return (sample(arguments[0], text, number),)
    if origin is dict:
        return {text: sample(arguments[1], text, number)}
    return {str: text, int: 2, float: 1.5, bool: True}[kind]


def hostile_capture():
    parts = []
    for number, text in enumerate(HOSTILE):
        one = sample(Capture, text, number)
        graph = one.graphs[0]
        shown = " ".join(text.split())
        stages = [GraphStage(stage, 0, f'class G(torch.nn.Module):\n    def forward(self, L_x_: "f32[2]"):\n'
                                       f'        # File: {shown}:2 in {shown}, code: {shown}\n'
                                       f'        a: "{shown}" = L_x_.sin()\n        b: "f32[2]" = torch.cos(a)\n'
                                       f'        return (b,)\n')
                  for stage in ("Captured_Graph", "Forward_graph", text)]
        compiled = dataclasses.replace(one.compilations[0], outcome="compiled" if number % 2 else "limit")
        module = dataclasses.replace(stages[0], modules=(records.ModuleCall(text, text, -1, ("a", "b")),))
        graph = dataclasses.replace(graph, stages=(module, *stages[1:], *graph.stages))
        frame = one.functions[0].frames[0]
        entry = frame.entries[0]
        code = dataclasses.replace(entry.transformed, source=records.CodeText(f"def f():\n    {shown}\n", text, text))
        frame = dataclasses.replace(frame, entries=(dataclasses.replace(entry, transformed=code), entry))
        parts.append(dataclasses.replace(
            one, graphs=(graph,), compilations=(compiled,), functions=(dataclasses.replace(one.functions[0], frames=(frame,)),)))
    joined = {field.name: sum((getattr(part, field.name) for part in parts), ())
              for field in dataclasses.fields(Capture) if field.name != "environment"}
    return Capture(**joined, environment=dict.fromkeys(HOSTILE, HOSTILE[0]) | {"torch": HOSTILE[0], "python": HOSTILE[2]})


def test_hostile_strings_in_every_text_field(tmp_path, visit):
    assert len(HOSTILE) >= 50
    path = page.write(str(tmp_path / "index.html"), {HOSTILE[0]: hostile_capture(), HOSTILE[2]: hostile_capture()}, title=HOSTILE[1])
    tab = visit(path, "overview")
    wild = "document.querySelectorAll('#app :is(script, iframe, object, embed, img, svg, math, link, meta, base, form, style, template)').length"
    routes = ["overview/0", "ranks/0", "overview/1/%00", "side/0/../..", "source/9/x@99999999", "%E0%A4%A/0", "side/0/%E0%A4%A@1"]
    routes += [f"{view}/0" for view in VIEWS]
    routes += [f"graph/0/{key}" for key in tab.evaluate(
        "document.querySelector('#app').app.data.runs[0].docs.filter(d => d.kind === 'graph').map(d => encodeURIComponent(d.key.toWellFormed()))")[::9]]
    routes += [f"guards/0/{number}%2F0" for number in (0, 7)]
    for route in routes:
        tab.evaluate("to => { location.hash = to }", f"#/{route}")
        tab.wait_for_timeout(60)
        assert tab.locator("main .view").count() == 1, route
        assert tab.evaluate(wild) == 0, route
    tab.evaluate("() => { location.hash = '#/side/0' }")
    tab.wait_for_selector(".pane")
    values = tab.locator(".pane").first.locator("select.text option").evaluate_all("all => all.map(o => o.value)")
    for value in values[::11]:
        tab.locator(".pane").first.locator("select.text").select_option(value)
        tab.wait_for_timeout(20)
        tab.locator(".pane .cm-content").first.focus()
        tab.keyboard.press("ArrowDown")
    tab.evaluate("() => { location.hash = '#/overview/0' }")
    tab.wait_for_selector(".unit")
    links = tab.locator("a[href]").evaluate_all("all => all.map(a => a.href)")
    assert all(link.startswith(("file://", "https://evil.example/")) for link in links)
    assert tab.evaluate("typeof window.hacked") == "undefined"
    assert HOSTILE[0] in tab.locator(".unit").first.text_content(), "it is shown as what it is"

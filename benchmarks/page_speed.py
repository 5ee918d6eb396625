"""The page of a large model in a headless Chromium: its size, the time until it can be used, the time per interaction.

    python benchmarks/page_speed.py DUMP [--write docs/measured/page_speed.md]

An interaction is measured in the page, from the event to the second frame after it; "work" is the time that the page's
own thread computed meanwhile, which other processes on the machine do not change. The dump of ``make large`` is one
of a llama of 48 layers, forward and backward.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import shutil
import statistics
import tempfile
import time

from _shared import dated, table
from playwright.sync_api import Browser, Page, sync_playwright

from depyf import page
from depyf.records import store

MARK = "<!-- measured -->"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

#: Milliseconds from the beginning of ``act`` to the second frame after it.
TIMED = """async (act) => {
    const begin = performance.now();
    await (new Function('return ' + act))()();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.now() - begin;
}"""
PANE = "document.querySelectorAll('.pane')[{}].querySelector('.editor').shadowRoot"


class Clock:
    """The page's own thread: seconds that it computed."""

    def __init__(self, tab: Page) -> None:
        self.session = tab.context.new_cdp_session(tab)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def __call__(self) -> float:
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def measured(tab: Page, act: str, clock: Clock, times: int = 7, before: str = "") -> tuple[str, str, str]:
    durations, worked = [], []
    for _ in range(times):
        if before:
            tab.evaluate(before)
            tab.wait_for_timeout(150)
        begun = clock()
        durations.append(tab.evaluate(TIMED, act))
        worked.append(1000 * (clock() - begun))
    return f"{statistics.median(durations):.0f} ms", f"{max(durations):.0f} ms", f"{statistics.median(worked):.0f} ms"


def scroll(pane: int) -> str:
    scroller = PANE.format(pane) + ".querySelector('.cm-scroller')"
    return f"() => {{ const s = {scroller}; s.scrollTop = Math.random() * (s.scrollHeight - 2 * s.clientHeight); }}"


def click(pane: int) -> str:
    """A click on a line that is in view."""
    return f"""() => {{
        const lines = [...{PANE.format(pane)}.querySelectorAll('.cm-line')].filter((line) => {{
            const box = line.getBoundingClientRect();
            return box.top > 200 && box.bottom < 700 && /c[0-7]|exact|same/.test(line.className); }});
        const line = lines[Math.floor(Math.random() * lines.length)];
        if (!line) throw Error('no line in view leads anywhere');
        const box = line.getBoundingClientRect();
        for (const type of ['mousemove', 'mousedown', 'mouseup', 'click']) line.dispatchEvent(new MouseEvent(type, {{
            bubbles: true, composed: true, clientX: box.left + 20, clientY: box.top + 8 }}));
    }}"""


def hover(pane: int) -> str:
    return click(pane).replace("['mousemove', 'mousedown', 'mouseup', 'click']", "['mousemove']")


def follow(selector: str) -> str:
    """A click on a link of the page."""
    return (f"() => {{ document.querySelector({selector!r}).click(); "
            "return new Promise((done) => addEventListener('hashchange', done, {once: true})); }")


#: What is clicked: the views by their number, and a graph of the overview with the source next to it.
LINKS = [*((f"to the view {view}", f"nav a:nth-child({number})") for number, view in enumerate(
    ("overview", "source", "side by side", "guards", "graph"), 1)),
    ("from the overview to a graph next to its source", ".chip.graph a:last-child")]


def first_time(browser: Browser, path: str, selector: str, times: int = 5) -> tuple[str, str, str]:
    """A link that is followed on a page that has just been opened, and looked at for a second."""
    durations, worked = [], []
    for _ in range(times):
        tab = browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
        tab.goto(f"file://{path}#/{'graph' if selector == 'nav a:nth-child(1)' else 'overview'}/0")
        tab.wait_for_selector("html[data-ready]", state="attached")
        tab.wait_for_timeout(1000)
        clock = Clock(tab)
        begun = clock()
        durations.append(tab.evaluate(TIMED, follow(selector)))
        worked.append(1000 * (clock() - begun))
        tab.close()
    return f"{statistics.median(durations):.0f} ms", f"{max(durations):.0f} ms", f"{statistics.median(worked):.0f} ms"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("dump")
    arguments.add_argument("--write", metavar="FILE")
    given = arguments.parse_args()
    capture = store.read(given.dump)
    begun = time.perf_counter()
    text = page.build(capture)
    building = time.perf_counter() - begun
    rows: list[tuple[str, ...]] = [
        ("size", f"{len(text) / 1e6:.2f} MB", "", ""), ("`depyf.page.build`", f"{building:.1f} s", "", "")]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        path = os.path.join(folder, "index.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for view in ("overview", "side/0"):
            times, worked = [], []
            for _ in range(5):
                tab = browser.new_page(viewport={"width": 1280, "height": 800})
                clock = Clock(tab)
                tab.goto(f"file://{path}#/{view}")
                tab.wait_for_selector("html[data-ready]", state="attached")
                times.append(float(tab.evaluate("Number(document.documentElement.dataset.ready)")))
                worked.append(1000 * clock())
                tab.close()
            rows.append((
                f"opened, until it can be used, at {view.partition('/')[0]}", f"{statistics.median(times):.0f} ms",
                f"{max(times):.0f} ms", f"{statistics.median(worked):.0f} ms"))
        context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
        tab = context.new_page()
        tab.goto(f"file://{path}#/side/0")
        tab.wait_for_selector("html[data-ready]", state="attached")
        tab.wait_for_timeout(1500)
        clock = Clock(tab)
        for pane in range(tab.locator(".pane").count()):
            if tab.locator(".pane").nth(pane).get_by_role("button", name="open", exact=True).is_visible():
                tab.locator(".pane").nth(pane).get_by_role("button", name="open", exact=True).click()
        names = tab.locator(".pane select.text").evaluate_all("all => all.map(s => s.selectedOptions[0].textContent)")
        for pane, name in enumerate(names):
            shown = name.partition(" of ")[0]
            for what, act in (("scroll anywhere", scroll(pane)), ("point", hover(pane)), ("click", click(pane))):
                if what == "scroll anywhere" or pane:
                    tab.wait_for_timeout(300)
                    rows.append((f"side by side: {what} in {shown}", *measured(tab, act, clock)))
        for what, link in LINKS:
            elsewhere = "graph" if "(1)" in link else "overview"
            rows.append((f"{what}, the first time", *first_time(browser, path, link)))
            rows.append((f"{what}, again", *measured(
                tab, follow(link), clock, 5, f"() => {{ location.hash = '#/{elsewhere}/0' }}")))
        version = browser.version
        browser.close()
    lines = [f"{dated()}, {platform.machine()}, {os.cpu_count()} cores (load {os.getloadavg()[0]:.0f}), "
             f"Chromium {version}. Command: `python benchmarks/page_speed.py {given.dump}`.", "",
             table(("what", "median", "most", "work, median"), rows)]
    print("\n".join(lines))
    if given.write:
        target = pathlib.Path(given.write)
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        target.write_text(old.partition(MARK)[0] + MARK + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

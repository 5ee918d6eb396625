"""The example in a real Jupyter Lab, in a Chromium: run by its menu, the page below each cell used, light and dark.

Needs jupyterlab, playwright and a Chromium (``make notebook`` sets them up); skipped otherwise. ``DEPYF_PICTURES`` names
a directory where the pictures go (``docs/images``).
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = pathlib.Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a running Jupyter Lab in whose folder the example lies."""
    folder, own = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("jupyter")
    shutil.copy(ROOT / "examples" / "notebook.ipynb", folder)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--ServerApp.port_retries=0", "--allow-root",
         "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None",
         "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"],
        env={**os.environ, "HOME": str(own), "JUPYTER_CONFIG_DIR": str(own / "config"), "JUPYTER_DATA_DIR": str(own / "data"),
             "JUPYTER_RUNTIME_DIR": str(own / "runtime"), "PYTHONPATH": str(ROOT / "src"),
             "TORCHINDUCTOR_CACHE_DIR": str(own / "cache")},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/lab/tree/notebook.ipynb?reset"
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def tab(lab):
    """The notebook after "Run All Cells", with what its browser complained of and asked for."""
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        # (playwright's own colour scheme would hide what frames get from the notebook's theme: "null" switches it off)
        tab = browser.new_page(viewport={"width": 1360, "height": 1000}, color_scheme="null")
        tab.set_default_timeout(20000)
        tab.complaints, tab.requests = [], []
        tab.on("console", lambda message: message.type == "error" and "depyf" in message.text + str(message.location)
               and tab.complaints.append(message.text))
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on("request", lambda request: tab.requests.append((request.frame.parent_frame, request.url)))
        tab.goto(lab)
        tab.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60000)
        tab.locator(".jp-NotebookPanel-toolbar").get_by_text("Python 3").wait_for()
        if tab.get_by_role("button", name="No", exact=True).count():  # (Lab asks whether it may fetch its news)
            tab.get_by_role("button", name="No", exact=True).click()
        tab.keyboard.press("Control+b")  # without the list of files
        tab.get_by_role("menuitem", name="Run", exact=True).click()
        tab.get_by_text("Run All Cells", exact=True).click()
        tab.wait_for_function("document.querySelectorAll('.depyf-frame iframe').length === 3", timeout=240000)
        tab.wait_for_function("!document.querySelector('.jp-Notebook').textContent.includes('[*]')", timeout=60000)
        for frame in frames(tab):
            frame.wait_for_selector("html[data-ready]", state="attached")
        yield tab
        browser.close()


def frames(tab):
    return [element.content_frame() for element in tab.query_selector_all(".depyf-frame iframe")]


def background(frame):
    return frame.evaluate("getComputedStyle(document.body).backgroundColor")


def theme(tab, name):
    tab.get_by_role("menuitem", name="Settings", exact=True).click()
    tab.get_by_text("Theme", exact=True).hover()
    tab.get_by_text(name, exact=True).click()
    dark = str("Dark" not in name).lower()
    tab.wait_for_function(f"document.body.dataset.jpThemeLight === '{dark}'")
    tab.wait_for_timeout(500)


def picture(tab, name):
    tab.locator(".depyf-frame").first.evaluate("frame => frame.scrollIntoView({block: 'end'})")
    tab.mouse.move(5, 400)
    tab.wait_for_timeout(500)
    if os.environ.get("DEPYF_PICTURES"):
        tab.screenshot(path=os.path.join(os.environ["DEPYF_PICTURES"], name))


def test_every_view_can_be_used_below_the_cell(tab):
    first = frames(tab)[0]
    assert "1 graph break" in tab.locator(".jp-OutputArea").filter(has=tab.locator(".depyf-frame")).first.text_content()
    for number, selector in enumerate((".unit", ".legend", ".panes", ".tree", ".outline"), 1):
        first.locator(f"nav a:nth-child({number})").click()
        first.wait_for_selector(selector)
        assert first.locator("nav a[aria-current]").count() == 1
    first.get_by_role("button", name="back").click()
    first.wait_for_selector(".tree")
    assert first.evaluate("location.href") == "about:srcdoc", "it never leaves its place"
    assert tab.complaints == []


def test_a_click_leads_from_a_line_to_its_kernel(tab):
    first = frames(tab)[0]
    first.locator("nav a", has_text="Side by side").click()
    first.wait_for_selector(".pane")
    first.locator(".pane").first.locator(".cm-line", has_text="torch.abs(a) + 1").click()
    tab.wait_for_timeout(400)
    assert first.locator(".pane").first.locator(".cm-line.exact").all_text_contents() == ["    x = a / (torch.abs(a) + 1)"]
    for pane in (1, 2):
        assert first.locator(".pane").nth(pane).locator(".cm-line.exact").count() > 0
    assert first.locator("[role=status]").text_content().startswith("In[2]:3")
    picture(tab, "notebook_light.png")


def test_links_lead_to_other_views(tab):
    second = frames(tab)[1]
    second.locator("#functions a.place").first.click()
    second.wait_for_selector(".legend, .detail")
    assert second.locator("nav a[aria-current]").text_content() == "Source"
    assert second.locator(".cm-line").count() > 3
    assert "Compiled before this cell" in tab.locator(".jp-Notebook").text_content()


def test_it_follows_the_theme_and_its_height_is_the_readers(tab):
    first = frames(tab)[0]
    light = background(first)
    theme(tab, "JupyterLab Dark")
    assert [background(frame) for frame in frames(tab)] == ["rgb(20, 24, 29)"] * 3 != [light] * 3
    picture(tab, "notebook_dark.png")
    first.get_by_role("button", name="colours: auto").click()  # the reader's own choice holds
    assert background(first) == light
    theme(tab, "JupyterLab Light")
    assert [background(frame) for frame in frames(tab)] == [light] * 3
    tab.locator(".depyf-frame").first.evaluate("frame => frame.scrollIntoView({block: 'end'})")
    box = tab.locator(".depyf-frame").first.bounding_box()
    assert box["y"] + box["height"] < 1000
    x, y = box["x"] + box["width"] - 5, box["y"] + box["height"] - 5
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x, y - 150, steps=10)
    tab.mouse.up()
    assert abs(tab.locator(".depyf-frame").first.bounding_box()["height"] - box["height"] + 150) < 5


def test_nothing_was_asked_of_the_network_and_the_notebook_is_out_of_reach(tab):
    assert [url for parent, url in tab.requests if parent is not None] == []
    assert all(url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:")) for _, url in tab.requests)
    first = frames(tab)[0]
    assert first.evaluate("origin") == "null"
    with pytest.raises(playwright.Error, match="cross-origin|Blocked a frame"):
        first.evaluate("parent.document.title")
    assert tab.complaints == []

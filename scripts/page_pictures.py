"""Pictures of the page for the documents: ``python scripts/page_pictures.py DUMPS [docs/images]``.

DUMPS holds the dumps of tests/page/programs.py by name (``DEPYF_PAGE_DUMPS`` of the tests).
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
import tempfile

from playwright.sync_api import sync_playwright

from depyf import page
from depyf.records import store

#: Picture -> dump, view, size, colours.
PICTURES = {
    "overview": ("decoder", "overview/0", (1280, 800), "light"),
    "side_by_side": (
        "training", "side/0/decoder.py@37/__compiled_fn_1.Captured_Graph.0/__compiled_fn_1.Backward_graph.0",
        (1500, 760), "light"),
    "kernels_dark": ("toy", "side/0/programs.py@18/__compiled_fn_1.AFTER_POST_GRAD.0/__compiled_fn_1.kernel_0",
                     (1500, 760), "dark"),
    "source": ("decoder", "source/0/programs.py@42", (1280, 700), "light"),
    "guards": ("shapes", "guards/0/%5B0%2F1%5D", (1280, 560), "light"),
    "graph": ("training", "graph/0", (1280, 760), "light"),
    "ranks": ("ranks", "ranks/0", (1280, 640), "light"),
    "phone": ("decoder", "overview/0", (390, 780), "dark"),
}


def main(dumps: pathlib.Path, target: pathlib.Path) -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (dump, view, (width, height), scheme) in PICTURES.items():
            path = dumps / dump
            ranks = sorted(path.glob("rank_*"))
            capture = {rank.name.replace("_", " "): store.read(str(rank)) for rank in ranks} or store.read(str(path))
            file = page.write(os.path.join(folder, f"{dump}.html"), capture)
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore
            tab.goto(f"file://{file}#/{view}")
            tab.wait_for_selector("html[data-ready]", state="attached")
            tab.wait_for_timeout(1500)
            picture = target / f"page_{name}.png"
            tab.screenshot(path=picture)
            tab.close()
            print(picture, picture.stat().st_size)
        browser.close()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "docs/images"))

"""``depyf open``: the page in the browser, or its address."""

import os
import webbrowser

import pytest

from depyf import cli
from depyf.records import store
from depyf.records.model import Capture


@pytest.fixture
def opened(monkeypatch):
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
    return addresses


@pytest.fixture
def dump(tmp_path):
    (tmp_path / "a dump").mkdir()
    (tmp_path / "a dump" / store.FILE).write_text("".join(store.lines(Capture())))
    return tmp_path / "a dump"


def test_the_page_is_made_where_it_is_missing(dump, opened, monkeypatch, capsys):
    monkeypatch.setenv("DISPLAY", ":0")
    assert cli.main(["open", str(dump)]) == 0
    page = dump / "index.html"
    assert opened == [page.as_uri()] and "a%20dump" in opened[0] and capsys.readouterr().out == ""
    page.write_text("as it was")
    assert cli.main(["open", str(dump / store.FILE)]) == 0
    assert page.read_text() == "as it was" and len(opened) == 2


def test_without_a_display_the_address_is_printed(dump, opened, monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(dump.parent)
    os.rename(dump, "depyf_output")
    assert cli.main(["open"]) == 0
    address = (dump.parent / "depyf_output" / "index.html").as_uri()
    assert not opened and capsys.readouterr().out == f"{address}\n"


def test_a_browser_that_does_not_start(dump, monkeypatch, capsys):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    assert cli.main(["open", str(dump)]) == 0
    assert capsys.readouterr().out.startswith("file:")
    assert cli.main(["open", "--print", str(dump)]) == 0


def test_bad_input(tmp_path, capsys):
    assert cli.main(["open", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("depyf: ")
    assert not os.listdir(tmp_path)

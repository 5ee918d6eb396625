"""``depyf doctor``, and what is said about a torch that was not tried."""

import importlib.util

import pytest

from depyf import cli
from depyf.capture.torch_private import private_api as versions
from depyf.capture.torch_private.private_api import TABLE
from depyf.cli import doctor
from depyf.cli.doctor import Finding, Report


def report(**states):
    """A report on a torch where the private APIs of these numbers are not present."""
    changed = {int(number.removeprefix("at_")): state for number, state in states.items()}
    return Report("2.13.0", "", tuple(
        Finding(api, changed.get(i, "present"), "has no parameter x" if changed.get(i) == "changed" else "")
        for i, api in enumerate(TABLE)))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_fits_the_terminal(width):
    text = doctor.render(report(at_3="missing", at_5="changed"), width)
    table, _, line = text.partition("For a bug report:\n")
    assert all(len(each) <= max(width, 9 + max(len(api.name) for api in TABLE)) for each in table.splitlines())
    assert line.count("\n") == 1 and f"missing: {TABLE[3].name}; changed: {TABLE[5].name}" in line


def test_what_is_amiss_comes_first_and_says_what_is_lost():
    text = doctor.render(report(at_3="missing", at_5="changed"), 400)
    assert text.index("MISSING") < text.index("CHANGED") < text.index("present  ")
    assert f"lost: {TABLE[3].lost}" in text and "changed: it has no parameter x" in text
    assert f"{len(TABLE) - 2} present, 1 changed, 1 missing" in text
    for api in TABLE:
        assert api.name in text and api.use in text


def test_exit_status():
    assert report().status == 0
    assert report(at_0="missing").status == report(at_0="changed").status == 1


def test_without_torch(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert "pip install torch" in printed and "torch none" in printed


def test_a_torch_that_cannot_be_imported(monkeypatch):
    def broken(name):
        raise OSError("libtorch.so: cannot open shared object file")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(doctor.importlib, "import_module", broken)
    examined = doctor.examine()
    assert examined.torch is None and "libtorch.so" in examined.note and examined.status == 1


def test_the_torch_that_is_here(capsys):
    torch = pytest.importorskip("torch")
    status = cli.main(["doctor"])
    printed = capsys.readouterr().out
    assert f"torch {torch.__version__}" in printed
    assert status == ("MISSING" in printed or "CHANGED" in printed)


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.15.0", "2.11.0", "2.12.1", "unknown"])
def test_tried_versions_and_those_between_say_nothing(version):
    assert versions.support_status(version) == ""


def test_newer_and_older_ones_say_so():
    newest = versions.TESTED[-1]
    assert "newer" in versions.support_status(f"{newest[0]}.{newest[1] + 1}.0a0+git12") and "newer" in versions.support_status("3.0")
    for version in ("2.5.1", "1.13.1"):
        with pytest.raises(versions.TorchTooOld, match="pip install --upgrade torch"):
            versions.support_status(version)


def test_the_note_comes_once_and_stands_in_the_dump(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    import depyf

    monkeypatch.setattr(torch, "__version__", "9.1.0")
    monkeypatch.setattr(versions, "_warned", set())
    for name in ("a", "b"):
        with depyf.prepare_debug(str(tmp_path / name)):
            pass
        assert "torch 9.1.0 is newer" in (tmp_path / name / "notes.txt").read_text()
    assert capsys.readouterr().err.count("torch 9.1.0 is newer") == 1


def test_too_old_is_an_error_before_anything_is_written(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    import depyf

    monkeypatch.setattr(torch, "__version__", "1.13.1")
    with pytest.raises(versions.TorchTooOld):
        with depyf.prepare_debug(str(tmp_path / "d")):
            pass
    assert not (tmp_path / "d").exists()

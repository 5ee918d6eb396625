"""``inspect`` is told of our modules what it would find out by itself."""

import subprocess
import sys

import pytest

FINDS_OUT = """
import inspect, sys
import depyf.capture.fact_snapshot, depyf.records.store, depyf.inspected
def tables():
    inspect.getmodule(compile("0", "nowhere.py", "exec"))  # (which no module is of: each is looked at)
    known = {name for name in sys.modules if name.partition(".")[0] == "depyf"}
    return ({name: file for name, file in inspect._filesbymodname.items() if name in known},
            {file: name for file, name in inspect.modulesbyfile.items() if name in known})
found = tables()
inspect._filesbymodname.clear(), inspect.modulesbyfile.clear()
depyf.inspected.tell_inspect()
told = dict(inspect._filesbymodname), dict(inspect.modulesbyfile)
assert told == found, (told, found)
assert len(told[0]) > 10 and tables() == found
"""


@pytest.mark.parametrize("through_link", [False, True], ids=["folder", "linked folder"])
def test_inspect_is_told_what_it_finds_out(tmp_path, through_link):
    import depyf

    folder = depyf.__path__[0]
    if through_link:
        (tmp_path / "depyf").symlink_to(folder)
    where = str(tmp_path) if through_link else folder.rpartition("depyf")[0]
    subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {where!r}){FINDS_OUT}"], check=True)


def test_other_tables_are_left_alone(monkeypatch):
    import inspect

    from depyf.inspected import tell_inspect

    monkeypatch.setattr(inspect, "_filesbymodname", None)
    monkeypatch.setattr(inspect, "modulesbyfile", {})
    tell_inspect()
    assert inspect.modulesbyfile == {}

"""README, CONTRIBUTING and docs: links lead somewhere, commands are there, figures say where they come from.

(``make docs`` checks the anchors of links too; it needs mkdocs.)
"""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MEASURED = sorted((ROOT / "docs" / "measured").glob("*.md"))
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
TARGETS = frozenset(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def name(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path):
    text = CODE.sub("", path.read_text(encoding="utf-8"))
    assert [link for link in LINK.findall(text) if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_commands_are_there(path):
    code = "\n".join(CODE.findall(path.read_text(encoding="utf-8")))
    assert [target for target in re.findall(r"(?:\$ |`)make ([a-z-]+)", code) if target not in TARGETS] == []
    files = re.findall(r"\b(?:python|node) ((?:scripts|benchmarks|examples)/[\w./]+\.\w+)", code)
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("path", [path for path in MEASURED if path.name != "index.md"], ids=name)
def test_measured_figures_have_a_date_and_a_commit(path):
    text = path.read_text(encoding="utf-8")
    assert re.search(r"\b202\d-\d\d-\d\d\b", text) and re.search(r"\bcommit [0-9a-f]{7}", text)
    assert f"({path.name})" in (path.parent / "index.md").read_text(encoding="utf-8")


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 600


def test_every_document_is_in_the_site():
    listed = re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(name(path).removeprefix("docs/") for path in DOCUMENTS if path.name != "README.md")

"""What people read: the text of each case is the expected one, and every pass is seen in cases of its own.

* ``functions/*.test``: small programs as people write them. A comment ``# not as written: ...`` says what is other, where
  the text is not that of ``[in]``.
* ``dynamo/*.test``: small programs that torch compiles. A comment ``# to improve: ...`` says what a person would write.
* ``passes/<name of the pass>.test``: what a pass is for. Without it the text is another one.

``case_files`` says how a case is written, ``case_inputs`` what becomes of it.
"""

from __future__ import annotations

import pytest
from case_files import HERE, Case, cases_of, check, read
from case_inputs import can_run, decompiled, kind, without

from depyf.decompiler import passes

FUNCTIONS, DYNAMO, OF_PASSES = map(cases_of, ("functions", "dynamo", "passes"))
MARK = "# not as written: "


def skip_where_it_cannot_run(case: Case) -> None:
    if not can_run(case):
        pytest.skip("the code of one version of torch")


@pytest.mark.parametrize("case", [*FUNCTIONS, *DYNAMO, *OF_PASSES], ids=Case.id)
def test_the_text(case: Case) -> None:
    skip_where_it_cannot_run(case)
    text, fidelity = decompiled(case)
    assert fidelity in {"in": ["exact"], "pyc": ["unproven"]}.get(kind(case), ["exact", "equivalent"])
    check(case, text)


@pytest.mark.parametrize("case", FUNCTIONS, ids=Case.id)
def test_what_is_not_as_written_says_so(case: Case) -> None:
    as_written = not case.outputs() or bool(case.argument("of"))
    assert as_written or MARK in case.comment, "say in the comment what is '# not as written: ...'"
    assert not as_written or MARK not in case.comment, "it is as written by now: remove that from the comment"


@pytest.mark.filterwarnings("ignore:internal error of depyf")  # (without a pass, those that follow may fail)
@pytest.mark.parametrize("case", OF_PASSES, ids=Case.id)
def test_without_the_pass_the_text_is_another_one(case: Case) -> None:
    skip_where_it_cannot_run(case)
    if not without(case.path.stem, case):
        pytest.fail(f"{case.path}:{case.line}: case {case.name}: the text is the same without {case.path.stem}, under this "
                    "Python. `depyf decompile FILE:NAME --stages` shows the passes that change the code.", pytrace=False)


def test_each_pass_has_a_case() -> None:
    files = {path.stem: read(path)[1] for path in (HERE / "passes").glob("*.test")}
    assert set(files) == {each.name for each in passes.ALL} and all(files.values())

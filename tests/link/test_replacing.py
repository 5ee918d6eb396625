"""Outside ``debug()`` Dynamo's own code runs, with the user's lines; inside, code with the lines of the dump."""

import gc
import os
import sys
import traceback
import warnings

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture.torch_private import cache_entries, private_api
from depyf.link import sessions as replacing
from depyf.link import transformed

pytestmark = [
    pytest.mark.usefixtures("fresh_dynamo"),
    pytest.mark.skipif(
        not private_api.ADD_VERSION.present(), reason=f"missing: {private_api.ADD_VERSION.lost}"),
]


def careful(x, number):
    y = x * number
    warnings.warn("careful")
    return y + 1


def failing(x):
    y = x * 2
    int("no number")
    return y


def lines_of(function):
    return range(function.__code__.co_firstlineno, function.__code__.co_firstlineno + 5)


def places_of(call):
    """The files of the functions that are called meanwhile: base names."""
    places = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: places.append(os.path.basename(frame.f_code.co_filename)))
    try:
        call()
    finally:
        sys.setprofile(before)
    return set(places)


def dumped(files):
    return {file for file in files if file.startswith("__transformed_code_")}


def added(function):
    return private_api.ADDED_VERSIONS.get()(function.__code__)


def test_a_warning_names_the_line_of_the_user(tmp_path):
    compiled = torch.compile(careful, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")), warnings.catch_warnings(record=True) as first:
        warnings.simplefilter("always")
        compiled(torch.ones(2), 3)
    with warnings.catch_warnings(record=True) as second:
        warnings.simplefilter("always")
        compiled(torch.ones(2), 3)
    for seen in (first, second):
        mine = [each for each in seen if str(each.message) == "careful"]
        assert [each.filename for each in mine] == [__file__]
        assert mine[0].lineno in lines_of(careful)


def test_a_traceback_names_the_line_of_the_user(tmp_path):
    compiled = torch.compile(failing, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")), pytest.raises(ValueError) as caught:
        compiled(torch.ones(2))
    places = [(each.filename, each.lineno) for each in traceback.extract_tb(caught.value.__traceback__)]
    assert any(name == __file__ and line in lines_of(failing) for name, line in places)
    assert not [name for name, _ in places if str(tmp_path) in name]


def test_inside_debug_the_lines_of_the_dump_run(tmp_path):
    compiled = torch.compile(careful, backend="eager", dynamic=False)
    x, longer = torch.arange(3.0), torch.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with depyf.prepare_debug(str(tmp_path / "d")):
            expected = [compiled(x, 3), compiled(longer, 3), compiled(x, 4)]
        versions = cache_entries.cache_entries(careful.__code__)
        assert len(versions) == 3
        assert not dumped(places_of(lambda: compiled(x, 3)))
        with depyf.debug(pause=False), depyf.debug(pause=False):
            files = places_of(lambda: [compiled(x, 3), compiled(longer, 3)])
            # The version that fits, and what lies behind the break.
            assert len(dumped(files)) >= 3
            results = [compiled(x, 3), compiled(longer, 3), compiled(x, 4)]
        assert all(torch.equal(a, b) for a, b in zip(expected, results))
        assert not dumped(places_of(lambda: compiled(x, 3))) and not added(careful)
        # (torch moves the version that fitted to the front.)
        assert {id(each.code) for each in cache_entries.cache_entries(careful.__code__)} == {id(each.code) for each in versions}


def test_blocks_that_overlap_and_die(tmp_path):
    compiled = torch.compile(careful, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with depyf.prepare_debug(str(tmp_path / "d")):
            compiled(torch.ones(2), 3)
        first, second = replacing.linked_code_runs(), replacing.linked_code_runs()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert added(careful), "the second block goes on"
        error = KeyError("the block died")
        with pytest.raises(KeyError):
            if not second.__exit__(KeyError, error, None):
                raise error
        assert not added(careful)


def test_several_backends_run_what_torch_made(tmp_path, capsys):
    def other(gm, inputs):
        return lambda *arguments: [value + 1 for value in gm.forward(*arguments)]

    def double(x):
        return x * 2

    one, two = torch.compile(double, backend="eager"), torch.compile(double, backend=other)
    with depyf.prepare_debug(str(tmp_path / "d")):
        one(torch.ones(1)), two(torch.ones(1))
    with depyf.debug(pause=False):
        assert (one(torch.ones(1)).item(), two(torch.ones(1)).item()) == (2, 3)
    assert "double" in capsys.readouterr().err
    # Another wrapper of the same backend is no other backend.
    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path / "again")):
        torch.compile(double, backend="eager")(torch.ones(1))
        again = torch.compile(double, backend="eager")
        again(torch.ones(1))
    with depyf.debug(pause=False):
        assert dumped(places_of(lambda: again(torch.ones(1))))
    assert capsys.readouterr().err == ""


def test_versions_that_the_program_entered_stay(tmp_path):
    def double(x):
        return x * 2

    compiled = torch.compile(double, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")):
        compiled(torch.ones(1))
    version = cache_entries.cache_entries(double.__code__)[0]
    private_api.ADD_VERSION.get()(double.__code__, version.guard_manager, version.code)
    with depyf.debug(pause=False):
        assert compiled(torch.ones(1)).item() == 2
    assert len(added(double)) == 1
    private_api.REMOVE_VERSIONS.get()(double.__code__)


def test_a_torch_that_cannot_replace_runs_linked_code_always(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_entries, "can_replace", lambda: False)

    def double(x):
        return x * 2

    compiled = torch.compile(double, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")):
        compiled(torch.ones(1))
    assert dumped(places_of(lambda: compiled(torch.ones(1))))


def test_a_torch_that_does_not_take_the_code(tmp_path, monkeypatch):
    def double(x):
        return x * 2

    compiled = torch.compile(double, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")):
        compiled(torch.ones(1))

    def refuse(*arguments):
        raise TypeError("three arguments expected")

    api = private_api.ADD_VERSION
    monkeypatch.setattr(api.owner(), api.attribute, refuse)
    with pytest.warns(RuntimeWarning, match="three arguments expected"), depyf.debug(pause=False):
        assert compiled(torch.ones(1)).item() == 2
    assert not added(double)


def test_what_torch_let_go_of_is_let_go_of(tmp_path):
    def double(x):
        return x * 2

    before = len(replacing._versions)
    with depyf.prepare_debug(str(tmp_path / "d")):
        torch.compile(double, backend="eager")(torch.ones(1))
    assert len(replacing._versions) == before + 1
    torch._dynamo.reset()
    assert len(replacing._versions) == before


def test_linked_code_is_made_when_debug_is_entered(tmp_path, monkeypatch):
    linked = []

    def counted(*arguments):
        linked.append(arguments[1].co_name)
        return linked_code(*arguments)

    linked_code = transformed.linked_code
    monkeypatch.setattr(transformed, "linked_code", counted)

    def double(x):
        return x * 2

    compiled = torch.compile(double, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")):
        compiled(torch.ones(1))
    assert not linked
    for _ in range(2):
        with depyf.debug(pause=False):
            assert dumped(places_of(lambda: compiled(torch.ones(1))))
    assert linked == ["double"]


def test_what_cannot_be_linked_is_said_when_debug_is_entered(tmp_path, monkeypatch, capsys):
    def double(x):
        return x * 2

    def fails(*arguments):
        raise ZeroDivisionError("ours")

    compiled = torch.compile(double, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d")):
        compiled(torch.ones(1))
    monkeypatch.setattr(transformed, "linked_code", fails)
    with depyf.debug(pause=False):
        assert compiled(torch.ones(1)).item() == 2
    assert "depyf: double: not linked (ZeroDivisionError: ours)" in capsys.readouterr().err


def test_a_version_is_let_go_of_without_the_garbage_collector(tmp_path):
    def double(x):
        return x * 2

    gc.collect()
    before = len(replacing._versions)
    gc.disable()
    try:
        with depyf.prepare_debug(str(tmp_path / "d")):
            torch.compile(double, backend="eager")(torch.ones(1))
        with depyf.debug(pause=False):
            pass
        assert len(replacing._versions) == before + 1
        torch._dynamo.reset()
        assert len(replacing._versions) == before
    finally:
        gc.enable()

"""Texts of transformed code: made once, kept on disk where they are proven, made by several processes."""

import dataclasses
import os
import subprocess
import sys
import textwrap

import pytest

from depyf.bytecode.packed import packed
from depyf.finishing import kept_texts, texts
from depyf.finishing.kept_texts import KeptTexts, Written, default_folder
from depyf.finishing.texts import Texts, processes_here
from depyf.guarded import guarded_call
from depyf.records.model import Bytecode, CodeText, CompileId, MeantFunction

VERSION = sys.version_info[:2]
SOURCE = """
def work(x):
    a = __compiled_fn_1_{id}(x)
    b = [each + a[0] for each in a]
    return b
"""


def bytecode(run="c9", number=0, source=SOURCE, **changes):
    """Return what Dynamo made in some run: names of graphs differ between runs."""
    namespace = {}
    exec(source.replace("{id}", run), namespace)
    made = Bytecode(
        CompileId(0, number), "work", f"__transformed_code_{number}_for_work", f"{number}.py", 0,
        MeantFunction("work", 0), packed(namespace["work"].__code__),
        {f"__compiled_fn_1_{run}": "__compiled_fn_1"}, ("__compiled_fn_1",))
    return dataclasses.replace(made, **changes)


def fail(error):
    raise error


def maker(folder, unsimplified=False):
    return Texts(VERSION, unsimplified, lambda action, otherwise: guarded_call(action, otherwise, fail),
                 KeptTexts(str(folder)))


@pytest.fixture(autouse=True)
def short_ones_are_kept(monkeypatch):
    monkeypatch.setattr(texts, "SHORTEST", 0)


@pytest.fixture
def cannot_decompile(monkeypatch):
    """Return a function after whose call nothing can be decompiled."""
    def cannot(*args, **kwargs):
        raise AssertionError("is decompiled")

    return lambda: monkeypatch.setattr(Texts, "_new", cannot)


def entries(folder):
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]


def test_a_second_run_decompiles_nothing(tmp_path, cannot_decompile):
    first = maker(tmp_path / "kept").of(bytecode("c9"))
    cannot_decompile()
    second = maker(tmp_path / "kept").of(bytecode("f0"))
    assert second == first
    assert "__compiled_fn_1(x)" in second.source.text


@pytest.mark.parametrize("changed", [
    {"number": 1},
    {"source": SOURCE.replace("a[0]", "a[-0.0]")},
    {"source": SOURCE.replace("a[0]", "a[False]")},
    {"facts": '[[[-1,"local","x",{"reading":"plain"}]],[],[]]'},
    {"shown": {"__compiled_fn_1_c9": "__compiled_fn_7"}},
])
def test_what_differs_is_decompiled(tmp_path, cannot_decompile, changed):
    maker(tmp_path).of(bytecode())
    cannot_decompile()
    with pytest.raises(AssertionError):
        maker(tmp_path).of(bytecode(**changed))


def test_a_text_with_nothing_simplified_is_kept_apart(tmp_path):
    assert maker(tmp_path).of(bytecode()).exact is None
    assert maker(tmp_path, unsimplified=True).of(bytecode()).source == maker(tmp_path).of(bytecode()).source
    assert len(entries(tmp_path)) == 2


def test_texts_of_another_depyf_are_not_taken(tmp_path, cannot_decompile, monkeypatch):
    maker(tmp_path).of(bytecode())
    cannot_decompile()
    monkeypatch.setattr(kept_texts, "_makers", lambda: "0" * 64)
    with pytest.raises(AssertionError):
        maker(tmp_path).of(bytecode())


@pytest.mark.parametrize("damage", [
    lambda text: "", lambda text: text[:-3], lambda text: text.replace("return", "pass  #"), lambda text: "\udce4",
    lambda text: "[]\n" + text])
def test_a_damaged_entry_is_made_again(tmp_path, damage):
    first = maker(tmp_path).of(bytecode())
    path, = entries(tmp_path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(damage(text))
    assert maker(tmp_path).of(bytecode()) == first
    with open(path, encoding="utf-8") as file:
        assert file.read() == text


def test_an_entry_is_no_other_codes(tmp_path, cannot_decompile):
    maker(tmp_path).of(bytecode())
    path, = entries(tmp_path)
    other = tmp_path / "other"
    maker(other).of(bytecode(number=1))
    wrong, = entries(other)
    os.replace(wrong, path)
    cannot_decompile()
    with pytest.raises(AssertionError):
        maker(tmp_path).of(bytecode())


def test_only_what_is_proven_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(Texts, "_new", lambda *_: Written(CodeText("...", "unproven"), None, ()))
    maker(tmp_path).of(bytecode())
    assert not entries(tmp_path)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users here")
def test_a_folder_into_which_others_can_write_is_not_used(tmp_path, cannot_decompile):
    maker(tmp_path / "kept").of(bytecode())
    (tmp_path / "kept").chmod(0o777)
    cannot_decompile()
    with pytest.raises(AssertionError):
        maker(tmp_path / "kept").of(bytecode())


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert maker(tmp_path / "file" / "kept").of(bytecode()).is_proven()


def test_what_was_used_least_recently_goes(tmp_path, monkeypatch):
    for number in range(3):
        made = maker(tmp_path)
        made.of(bytecode(number=number))
        made.close()
    old, kept, new = sorted(entries(tmp_path), key=os.path.getmtime)
    for age, path in ((3, old), (2, kept), (1, new)):
        os.utime(path, (1e9 - age, 1e9 - age))
    maker(tmp_path).of(bytecode(number=0))  # is used
    monkeypatch.setattr(kept_texts, "MOST", os.path.getsize(old) * 7 // 2)
    made = maker(tmp_path)
    made.of(bytecode(number=3))
    made.close()
    assert old in entries(tmp_path)
    assert kept not in entries(tmp_path)
    assert len(entries(tmp_path)) == 3


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("DEPYF_CACHE", "off")
    assert default_folder() == ""
    monkeypatch.setenv("DEPYF_CACHE", str(tmp_path))
    assert default_folder() == str(tmp_path)
    monkeypatch.delenv("DEPYF_CACHE")
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert default_folder() == str(tmp_path / "depyf")
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert default_folder() == str(tmp_path / ".cache" / "depyf")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_several_processes_make_the_same_texts():
    """In a process of its own: one that has threads, as a test runner has, must not fork."""
    program = textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_texts as t
        from depyf.finishing import texts
        texts._MANY = 0
        wanted = [t.bytecode(number=number) for number in range(9)]
        wanted.append(t.bytecode(number=9, text_name="no name"))
        alone, together = t.maker(""), t.maker("")
        seen = []
        together.make(wanted, 2, lambda *done: seen.append(done))
        assert len(together._made) == 9 and seen[-1] == (8, 9), seen
        assert [together.of(each) for each in wanted[:9]] == [alone.of(each) for each in wanted[:9]]
        class Dies(texts.Texts):
            def _alone(self, bytecode):
                os._exit(3)
        dying = Dies(t.VERSION, False, t.maker("")._attempt, t.KeptTexts(""))
        dying.make(wanted, 2, lambda *done: None)
        assert dying.of(wanted[0]) == alone.of(wanted[0])
        import concurrent.futures
        def cannot(*args, **kwargs):
            raise OSError("no semaphores")
        concurrent.futures.ProcessPoolExecutor = cannot
        without = t.maker("")
        without.make(wanted, 2, lambda *done: None)
        assert without.of(wanted[0]) == alone.of(wanted[0])
        print("same")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("same\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_further_processes_end_with_one_that_is_killed(tmp_path):
    """They hold what it held: the lock on a dump, for one."""
    program = textwrap.dedent(f"""
        import os, signal, sys, time
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_texts as t
        from depyf.finishing import texts
        texts._MANY = 0
        first = os.getpid()
        class Kills(texts.Texts):
            def _alone(self, bytecode):
                os.kill(first, signal.SIGKILL)
                time.sleep(60)
        Kills(t.VERSION, False, None, t.KeptTexts("")).make(
            [t.bytecode(number=number) for number in range(3)], 2, lambda *done: None)
    """)
    # (Its output is at its end when the last process that has it is.)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.returncode == -9


def test_a_process_with_torch_or_threads_does_not_fork(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert processes_here() == 1

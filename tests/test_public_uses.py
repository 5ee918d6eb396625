"""What public code calls of depyf works (docs/migration.md has the table of these).

Each function makes the same calls as the code that its first line names, in a small program. Found with searches for
``import depyf``, ``from depyf``, its functions and its file names in public repositories, 2026-11.
"""

import dis
import functools
import glob
import importlib
import inspect
import io
import marshal
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest

import depyf

torch = pytest.importorskip("torch")
USES = []
ROOT = pathlib.Path(__file__).resolve().parent.parent


def use(where, calls, works="yes"):
    def add(function):
        USES.append(pytest.param(function, id=function.__name__))
        function.row = f"| {where} | {calls} | {works} |"
        return function

    return add


class Model(torch.nn.Module):
    def forward(self, x, cache=None):
        return x * 2 if cache is None else x + cache


class Norm(torch.nn.Module):
    def forward(self, x):
        return x - x.mean()


def compiled_twice(backend="eager"):
    """Compile one ``forward`` twice, as vLLM does: without and with a cache."""
    model = torch.compile(Model(), backend=backend)
    model(torch.ones(3))
    model(torch.ones(3), torch.ones(3))


def names(directory, pattern="*"):
    return sorted(os.path.basename(path) for path in glob.glob(os.path.join(str(directory), pattern)))


@use("vLLM `compilation/depyf_compat.py`",
     "`inspect.signature(depyf.explain.enable_debugging.patched_load_by_key_path)`; `global_variables.data`, "
     "`explain.utils.get_current_compiled_fn_name`, `write_code_to_file_template`; sets the first",
     "yes; it finds that it need not patch")
def vllm_patch_of_a_hook(tmp_path):
    import depyf.explain.enable_debugging as enable_debugging
    import torch._inductor.codecache as codecache
    from depyf.explain.global_variables import data
    from depyf.explain.utils import get_current_compiled_fn_name, write_code_to_file_template

    hook = enable_debugging.patched_load_by_key_path
    assert any(each.kind is each.VAR_KEYWORD for each in inspect.signature(hook).parameters.values())
    with depyf.prepare_debug(str(tmp_path)):
        assert data["is_inside_prepare_debug"] and data["dump_src_dir"] == str(tmp_path)
        key, path = codecache.PyCodeCache.write("value = 1\n")
        module = codecache.PyCodeCache.load_by_key_path(key, path, set_sys_modules=False)
        assert module.value == 1 and module.__name__ not in sys.modules
        again = data["unpatched_load_by_key_path"](key, path, None, None, set_sys_modules=False)
        assert again.value == 1 and hook(key, path).value == 1
        sys.modules.pop(module.__name__, None)
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        assert re.fullmatch(r"__compiled_fn_\d+", get_current_compiled_fn_name())
    assert not data["is_inside_prepare_debug"]
    written = [write_code_to_file_template(text, str(tmp_path / "f.kernel_%s.py")) for text in ("a", "b", "a")]
    assert [os.path.basename(path) for path in written] == ["f.kernel_0.py", "f.kernel_1.py", "f.kernel_0.py"]


@use("vLLM `compilation/monitor.py`, aphrodite-engine and other forks",
     "`depyf.prepare_debug(path.as_posix())`, then `__enter__()` and `__exit__(None, None, None)`")
def vllm_monitor(tmp_path):
    manager = depyf.prepare_debug(tmp_path.as_posix())
    manager.__enter__()
    compiled_twice()
    manager.__exit__(None, None, None)
    assert names(tmp_path, "full_code_for_forward_*.py")


@use("vLLM `compilation/wrapper.py`, vllm-ascend and other forks",
     "`depyf.decompile(new_code)` in a bytecode hook; writes `transformed_code.py` into the directory of the dump")
def vllm_bytecode_hook(tmp_path):
    texts = []
    handle = torch._dynamo.convert_frame.register_bytecode_hook(
        lambda old, new: texts.append(depyf.decompile(new)) if old is Model.forward.__code__ else None)
    (tmp_path / "transformed_code.py").write_text("")
    try:
        with depyf.prepare_debug(str(tmp_path)):
            compiled_twice()
    finally:
        handle.remove()
    assert all("__compiled_fn_" in text and compile(text, "f", "exec") for text in texts) and len(texts) == 2
    assert not [text for text in texts if "record_pregraph" in text or len(text.splitlines()) > 4], texts
    assert "full_code_for_forward_0.py" in names(tmp_path)


@use("vLLM `tests/tpu/test_compilation.py`",
     "globs `__transformed_code*for_forward.py`, `__compiled_fn*Forward_graph*.py` in order of their first number; "
     "earlier `__transformed_code*.py`, `__compiled_fn*Captured*.py`, `full_code*.py`; counts and reads them")
def vllm_globs(tmp_path):
    with depyf.prepare_debug(str(tmp_path)):
        compiled_twice("aot_eager")
    assert names(tmp_path, "__transformed_code*for_forward.py") == [
        "__transformed_code_0_for_forward.py", "__transformed_code_1_for_forward.py"]
    assert len(names(tmp_path, "__transformed_code*.py")) == 2 and len(names(tmp_path, "full_code*.py")) == 1
    for pattern in ("__compiled_fn*Forward_graph*.py", "__compiled_fn*Captured*.py"):
        first, second = sorted(names(tmp_path, pattern), key=lambda name: int(re.search(r"_(\d+)[._]", name)[1]))
        assert "add" not in (tmp_path / first).read_text() and "add" in (tmp_path / second).read_text()


@use("torchlens `bridge/depyf.py` and its tests",
     "`prepare_debug(str(dir), **options)` around `torch.compile(model)(x)`; lists the files at once, twice into one "
     "directory; two dumps of a model have the same names")
def torchlens_bridge(tmp_path):
    def dump(directory, **options):
        before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
        torch._dynamo.reset()
        directory.mkdir(exist_ok=True)
        with depyf.prepare_debug(str(directory), **options):
            torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), backend="eager")(torch.ones(1, 2))
        return {re.sub(r"(__compiled_fn)_\d+", r"\1_N", path.name)
                for path in directory.rglob("*") if path.is_file() and path not in before}

    first = dump(tmp_path / "a", clean_wild_fx_code=True, log_bytecode=False)
    assert any(name.startswith("__compiled_fn") for name in first)
    assert first == dump(tmp_path / "b") == dump(tmp_path / "b")


@use("openSUSE, nixpkgs, FreeBSD packages", "`import depyf; from depyf import decompile, Decompiler`, without torch")
def packages(tmp_path):
    code = ("import sys; sys.modules['torch'] = None; import depyf; from depyf import decompile, Decompiler; "
            "from depyf.decompiler import DecompilationError; print(Decompiler(lambda x: x).decompile(), depyf.__version__)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("def _lambda_(x):\n    return x\n") and not done.stderr


@use("tools that recover sources", "`depyf.decompile(code)`, `depyf.decompiler.decompile(code)` of a module of a `.pyc` "
     "and of each code object in it; compiles each text")
def recovered_sources(tmp_path):
    from depyf.utils import collect_all_code_objects

    import depyf.decompiler

    whole = compile(inspect.getsource(types), "types.py", "exec")
    for code in collect_all_code_objects(marshal.loads(marshal.dumps(whole))):
        text = depyf.decompile(code)
        assert isinstance(text, str) and text.strip() and text == depyf.decompiler.decompile(code)
        compile(text, code.co_qualname if sys.version_info >= (3, 11) else code.co_name, "exec", dont_inherit=True)


@use("PyTorch documentation (Dynamo deep dive), forum posts, translations",
     "`depyf.install()`, `depyf.uninstall()`; `decompile(entry.code)` of the entries of `_debug_get_cache_entry_list`")
def pytorch_documentation(tmp_path):
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    def toy_example(a, b):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    depyf.install()
    torch.compile(toy_example, backend="eager")(torch.ones(3), torch.ones(3))
    depyf.uninstall()
    (entry,) = _debug_get_cache_entry_list(toy_example.__code__)
    assert "__resume_at_" in depyf.decompile(entry.code)


@use("PyTorch blog, its translations, depyf walk-through", "`prepare_debug(dir)`, then `debug()`; opens the files by name",
     "yes; the graphs have `.` where the blog of 2024 has spaces, as depyf 0.20")
def blog(tmp_path):
    def toy_example(a, b):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    compiled = torch.compile(toy_example, backend="eager")
    line = toy_example.__code__.co_firstlineno + 2

    def main():
        for sign in (1, -1):
            compiled(torch.ones(10), torch.ones(10) * sign)

    with depyf.prepare_debug(str(tmp_path)):
        main()
    with depyf.debug():
        main()
    assert names(tmp_path, "__transformed_code*") == [
        f"__transformed_code_0_for_torch_dynamo_resume_in_toy_example_at_{line}.py",
        "__transformed_code_0_for_toy_example.py",
        f"__transformed_code_1_for_torch_dynamo_resume_in_toy_example_at_{line}.py"]
    assert names(tmp_path, "full_code_for_*") == ["full_code_for_toy_example_0.py"]
    assert len(names(tmp_path, "__compiled_fn_*.Captured_Graph.0.py")) == 3


@use("depyf `docs/opt_tutorial.rst`, translations",
     "reads `full_code_for_forward_0.py`; `optimization.TorchCompileWrapperWithCustomDispatcher`, also as `...Dispacther`")
def optimization_tutorial(tmp_path):
    from depyf.optimization import TorchCompileWrapperWithCustomDispacther, TorchCompileWrapperWithCustomDispatcher

    class Wrapper(TorchCompileWrapperWithCustomDispacther):
        def __init__(self):
            super().__init__(torch.compile(self.forward, backend="eager"))

        def forward(self, x):
            return x + 1

        def __call__(self, x):
            if len(self.compiled_codes) == 1:
                with self.dispatch_to_code(0):
                    return self.forward(x)
            return self.compiled_callable(x)

    wrapper = Wrapper()
    assert issubclass(Wrapper, TorchCompileWrapperWithCustomDispatcher)
    with depyf.prepare_debug(str(tmp_path) + "/"):
        assert wrapper(torch.ones(1)).item() == wrapper(torch.ones(1)).item() == 2
    assert "def __transformed_code_0_for_forward(" in (tmp_path / "full_code_for_forward_0.py").read_text()


@use("depyf README of 2023", "`prepare_debug(fn, dir)`, `prepare_debug(func=fn, dump_src_dir=dir)`; "
     "`from depyf.explain import dump_src`; `dump_src(fn)`, `dump_src(code, frame.f_globals)`")
def first_readme(tmp_path):
    from depyf.explain import dump_src

    def toy(x):
        return x + 1

    compiled = torch.compile(toy, backend="eager")
    with depyf.prepare_debug(compiled, str(tmp_path / "a")):
        compiled(torch.ones(2))
    with depyf.prepare_debug(func=compiled, dump_src_dir=str(tmp_path / "b")):
        compiled(torch.ones(2, 2))
    assert "full_code_for_toy_0.py" in names(tmp_path / "a") and "full_code_for_toy_0.py" in names(tmp_path / "b")
    assert dump_src(compiled) == dump_src(toy.__code__, toy.__globals__)


@use("callers of `prepare_debug` as depyf 0.20 declares it", "`prepare_debug(dir, False)`, `prepare_debug(dir, True, True)`; "
     "`@prepare_debug(dir)` on a function")
def positional_flags_and_decorator(tmp_path):
    assert not depyf.prepare_debug("d", False).clean_wild_fx_code
    with depyf.prepare_debug(str(tmp_path / "flags"), True, True) as block:
        compiled_twice()
    assert block.clean_wild_fx_code and names(tmp_path / "flags", "*.transformed.bin")

    @depyf.prepare_debug(str(tmp_path / "decorated"))
    def main(size):
        """Docstring."""
        return torch.compile(Norm(), backend="eager")(torch.ones(size))

    assert main(2).shape == (2,) and main(size=3).shape == (3,) and main.__doc__ == "Docstring."
    assert names(tmp_path / "decorated", "full_code*") == ["full_code_for_forward_0.py"] == names(
        tmp_path / "decorated" / "run_2", "full_code*")


@use("programs that compile several modules", "glob `*for_forward*.py`, `full_code_for_forward_*.py`")
def several_modules(tmp_path):
    with depyf.prepare_debug(str(tmp_path)):
        compiled_twice()
        torch.compile(Norm(), backend="eager")(torch.ones(3))
    assert names(tmp_path, "full_code_for_forward_*.py") == [
        "full_code_for_forward_0.py", "full_code_for_forward_of_Norm_0.py"]
    assert names(tmp_path, "*for_forward*.py") == [
        "__transformed_code_0_for_forward.py", "__transformed_code_0_of_Norm_for_forward.py",
        "__transformed_code_1_for_forward.py", "full_code_for_forward_0.py", "full_code_for_forward_of_Norm_0.py",
        "guards_0_for_forward.py", "guards_0_of_Norm_for_forward.py", "guards_1_for_forward.py"]


@use("depyf `tests/`, `python_coverage.py`",
     "`Decompiler(f).decompile(overwite_fn_name=...)`, `Decompiler.supported_opnames()`, `inspect.getfile(Decompiler)`; "
     "`utils.decompile_ensure`, `collect_all_code_objects`, `safe_create_directory`; `code_transform.fix_irregular_code`")
def own_tests(tmp_path):
    from depyf.code_transform import fix_irregular_code
    from depyf.utils import collect_all_code_objects, decompile_ensure, get_code_owner, safe_create_directory

    from depyf import Decompiler, decompile

    def outer():
        factor, unused = 3, 0

        def scaled(values, *, offset=1):
            kept = [value * factor for value in values]
            later = lambda: offset  # noqa: E731
            if unused:
                never = 1
                del never
            return [each + later() for each in kept]

        return scaled

    scaled = outer()
    code = scaled.__code__
    for text in (decompile(code), Decompiler(functools.partial(scaled, 1)).decompile(), decompile_ensure(code)):
        made = compile(fix_irregular_code(code, text), "f", "exec")
        new = next(each for each in collect_all_code_objects(made) if each.co_name == "scaled")
        assert new.co_freevars == code.co_freevars and {*code.co_varnames} <= {*new.co_varnames, *new.co_cellvars}
        function = types.FunctionType(new, globals(), closure=scaled.__closure__, argdefs=scaled.__defaults__)
        function.__kwdefaults__ = scaled.__kwdefaults__
        assert function([1, 2]) == scaled([1, 2]) == [4, 7]
    assert Decompiler(lambda x: x).decompile(overwite_fn_name="g") == "def g(x):\n    return x\n"
    assert {each.opname for each in dis.get_instructions(code)} <= {*Decompiler.supported_opnames()}
    assert os.path.exists(inspect.getfile(Decompiler)) and get_code_owner(functools.partial(scaled)) is scaled
    safe_create_directory(str(tmp_path / "a" / "b"))
    safe_create_directory(str(tmp_path / "a" / "b"))
    malformed = compile("", "f", "exec").replace(co_code=bytes([dis.opmap["POP_TOP"], 0]), co_name="broken")
    with pytest.raises(depyf.decompiler.DecompilationError):
        Decompiler(malformed).decompile()
    assert decompile_ensure(malformed) == "def broken():\n    'Failed to decompile.'\n"


@use("internals of depyf 0.20: `explain.utils.CodeProxy`, `DynamoOptimizationResult`, `code_transform.Instruction`, "
     "`enable_debugging.DebuggableHook`, ...", "imports them", "no: an ImportError says for each what to use")
def internals(tmp_path):
    for module, name, instead in [
        ("explain.utils", "CodeProxy", "depyf.explain.dump_src"), ("explain", "_extract_artifacts", "records.jsonl"),
        ("code_transform", "Instruction", "depyf.decompile"), ("explain.utils", "lock_on_file", "filelock.FileLock"),
        ("explain.enable_debugging", "DebuggableHook", "depyf.prepare_debug"),
        ("explain", "interactive_explain", "depyf.explain.interactive"),
        ("explain.enhance_logging", "pytorch_bytecode_src_hook", "depyf.install()")]:
        with pytest.raises(ImportError, match=re.escape(f"depyf.{module}.{name} of depyf 0.20 is gone: use ")) as error:
            exec(f"from depyf.{module} import {name}")
        assert instead in str(error.value)
        with pytest.raises(AttributeError, match=re.escape(instead)):
            getattr(importlib.import_module(f"depyf.{module}"), name)
        assert not hasattr(importlib.import_module(f"depyf.{module}"), name)
    for module in ("utils", "explain.utils", "code_transform"):
        assert not hasattr(importlib.import_module(f"depyf.{module}"), "never_was")
    with pytest.raises(NotImplementedError, match="link=True"):
        depyf.Decompiler.decompile_and_compile_like(None, None)


@pytest.mark.parametrize("function", USES)
def test_public_use(function, tmp_path, monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setenv("DEPYF_FILES", "now")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)
    function(tmp_path)
    torch._dynamo.reset()


def test_the_table_in_the_documents():
    rows = [each.values[0].row for each in USES]
    text = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    missing = [row for row in rows if row not in text]
    assert not missing, "docs/migration.md lacks:\n" + "\n".join(missing)

"""Text of foreign origin has one way out for each channel; nothing goes past it."""

import ast
import pathlib

import pytest

import depyf

SOURCE = pathlib.Path(depyf.__file__).parent
#: Modules whose prints go through the streams of the command line (:mod:`depyf.cli.terminal`).
COMMANDS = ("cli/",)
#: The channels themselves; and what runs where depyf cannot be imported.
CHANNELS = ("harmless.py", "cli/terminal.py", "views/terminal.py", "program/site/sitecustomize.py")
#: Modules that write files: each to a name that the user gave, or below a folder of its own.
WRITERS = {
    "cli/decompile.py", "cli/fix.py", "cli/recorded.py", "fixing/trial.py", "old_names.py", "records/store.py",
    "records/run_directory.py", "prepare.py", "views/dump/folder.py", "views/page/__init__.py",
    "watch/stop.py", "harmless.py", "notebook/view.py",
}
RUNS = {
    "__init__.py": {"importlib.import_module"},  # modules of depyf, at first use
    "cli/__init__.py": {"importlib.import_module"},  # the commands, which are listed
    "prepare.py": {"importlib.import_module"},  # torch
    "cli/doctor.py": {"importlib.import_module"},  # torch and what it needs
    "capture/torch_private/private_api.py": {"importlib.import_module"},  # modules of torch
    "capture/forked.py": {"pickle.loads"},  # what a forked child of this process answered
    "decompiler/__init__.py": {"importlib.import_module"},  # depyf, for the names of 0.20
    "old_names.py": {"importlib.import_module"},  # the same
    "finishing/texts.py": {"pickle.load"},  # between this process and a worker that it started
    "program/watch.py": {"exec"},  # one line of its own
    "fixing/trial.py": {"exec"},  # the user's program, for `depyf fix`
}
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def calls(module):
    """Yield ``(dotted name, call)`` of a module."""
    for node in ast.walk(ast.parse((SOURCE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@pytest.mark.parametrize("module", [name for name in MODULES if name not in CHANNELS])
def test_no_text_goes_past_a_channel(module):
    outside = not module.startswith(COMMANDS)
    for name, call in calls(module):
        where = f"{module}:{call.lineno}: {name}"
        if name == "print" and outside:
            assert any(keyword.arg == "file" for keyword in call.keywords) and "sys.std" not in ast.unparse(call), (
                f"{where}: say it with depyf.harmless.say")
        assert not (outside and name in ("sys.stdout.write", "sys.stderr.write")), where
        assert ".buffer.write" not in name and not name.startswith(("sys.__std", "os.system")), where
        assert not (name == "below" and module.startswith("cli/")) or module == "cli/terminal.py", f"{where}: past the harmless streams"


@pytest.mark.parametrize("module", [name for name in MODULES if name not in WRITERS])
def test_files_are_written_in_few_places(module):
    for name, call in calls(module):
        mode = next((ast.unparse(each) for each in [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")]
                     ), "") if name in ("open", "os.fdopen", "io.open") else ""
        assert not any(letter in mode for letter in "wax+"), f"{module}:{call.lineno}: {ast.unparse(call)[:80]}"
        assert not name.endswith((".write_text", ".write_bytes", "write_whole")), f"{module}:{call.lineno}"


@pytest.mark.parametrize("module", MODULES)
def test_nothing_of_the_input_is_run(module):
    """``RUNS`` names the places that run code, import a module by name or load objects, each with what that is."""
    runs = {"eval", "exec", "pickle.loads", "pickle.load", "marshal.loads", "marshal.load", "runpy.run_path",
            "runpy.run_module", "importlib.import_module", "__import__"}
    found = sorted({name for name, _ in calls(module) if name in runs})
    assert found == sorted(RUNS.get(module, ())), (module, found)



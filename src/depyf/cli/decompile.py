"""Run ``depyf decompile``. No input is executed or imported: a ``.pyc`` is read, a ``.py`` is compiled."""

from __future__ import annotations

import argparse
import contextlib
import functools
import glob
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import budgets
from ..bytecode.code import Code
from ..bytecode.errors import Unreadable, one_line
from ..guarded import unwarned
from ..harmless import write_whole
from ..reading import contents, opened
from ..values import frozen
from ..views.markdown import count
from .terminal import BAD_INPUT, bar_on, refused

if TYPE_CHECKING:
    from ..decompiler.proof.recompile import Interpreter

EXACT, UNPROVEN_OR_WORSE = 0, 1
_DEPTH = 3000  #: The limit of recursion, at least: an ``elif`` takes two calls. (Python's own is 1,000.)
#: First words of a file that this command has written (and may write again).
MARK = "# decompiled by depyf"


class BadInput(Exception):
    """Something on the command line that cannot be decompiled; the message says what to do."""


def _add_decompile(commands: Any) -> None:
    command = commands.add_parser(
        "decompile", help="write the source of .pyc files, modules and functions",
        description="Writes the source of .pyc files, modules and functions. Nothing is executed.",
        epilog="Exit status: 0 all is exact or equivalent, 1 something fell back or is not proven, 2 something could "
               "not be decompiled.",
    )
    command.add_argument("inputs", nargs="+", metavar="INPUT",
                         help="a .pyc or .py file, a folder, a module's name, or module:qualname")
    command.add_argument("-o", "--output", metavar="PATH", help="file, or folder that mirrors the inputs "
                                                                "(default: standard output)")
    command.add_argument("--force", action="store_true", help="overwrite files that depyf did not write")
    command.add_argument("--stages", action="store_true", help="show every stage of the decompilation")
    command.add_argument("--blank-lines", action="store_true",
                         help="put blank lines where the source had lines that left nothing in the code")
    command.add_argument("--interpreter", metavar="PATH", help="Python of the version of the .pyc, to prove the text "
                         "of another version (it only compiles; default: one that is installed)")
    command.add_argument("--python", type=_version, metavar="X.Y",
                         help="version whose marshal wrote the files that have no header of a .pyc")
    command.add_argument("-j", "--jobs", type=_count, default=os.cpu_count() or 1, metavar="N",
                         help="processes (default: one for each core)")
    command.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no summary")
    command.set_defaults(run=decompile)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


def _version(text: str) -> tuple[int, int]:
    from ..bytecode.pyc import MAGIC_NUMBERS

    known = {f"{major}.{minor}": (major, minor) for major, minor in MAGIC_NUMBERS.values()}
    if text not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(known)}")
    return known[text]


@frozen
class Task:
    """A ``.py`` or ``.pyc`` file, or a function or class in it, and where its text goes (``None``: standard output)."""

    shown: str
    path: str
    qualname: str = ""
    target: str | None = None


@dataclass
class Outcome:
    """The outcome of a task."""

    task: Task
    text: str = ""
    fidelity: str = ""
    error: str = ""
    counts: Counter[str] = field(default_factory=Counter)


# --- what is asked for -----------------------------------------------------------------------------
def find(inputs: Sequence[str], output: str | None, any_file: bool = False) -> tuple[list[Task], list[str]]:
    """Return the tasks of the inputs, and a message for each that has none."""
    into_folder = output is not None and (
        len(inputs) > 1 or os.path.isdir(output) or output.endswith(os.sep) or os.path.isdir(inputs[0]))
    tasks: list[Task] = []
    problems: list[str] = []
    taken: dict[str, str] = {}
    for given in inputs:
        try:
            if os.path.isdir(given):
                found = _in_folder(given, output)
            else:
                path, qualname = _path_of(given, any_file)
                found = [Task(given, path, qualname, os.path.join(output, _plain_name(Path(path), qualname))
                              if into_folder and output is not None else output)]
            for task in found:
                other = task.path if task.target is None else taken.setdefault(task.target, task.path)
                if other == task.path:
                    tasks.append(task)
                else:
                    problems.append(f"{task.shown}: would be written to {task.target} as well as {other}; decompile "
                                    "them one by one")
        except BadInput as error:
            problems.append(str(error))
    return tasks, problems


def _in_folder(given: str, output: str | None) -> list[Task]:
    """Return every ``.pyc`` below a folder; where there is none for a ``.py``, the ``.py``."""
    modules: dict[Path, Path] = {}
    folder = Path(given)
    for path in [*sorted(folder.rglob("*.pyc")), *sorted(folder.rglob("*.py"))]:
        if not path.is_dir():  # (a pipe or a device is refused when it is to be read)
            place = path.relative_to(folder).parent / _plain_name(path, "")
            # a.py and __pycache__/a.cpython-311.pyc are one module
            place = Path(*(part for part in place.parts if part != "__pycache__"))
            if place not in modules or path.suffix == ".pyc":
                modules[place] = path
    if not modules:
        raise BadInput(f"{folder}: contains no .pyc and no .py file")
    return [Task(str(path), str(path), "", None if output is None else str(Path(output) / place))
            for place, path in sorted(modules.items())]


def _plain_name(path: Path, qualname: str) -> str:
    """Return ``a.py`` for ``a.cpython-311.pyc`` (and ``a.f.py`` for its function ``f``)."""
    stem = path.name.split(".")[0] if path.suffix == ".pyc" else path.stem
    return f"{stem}.{qualname}.py" if qualname else f"{stem}.py"


def _path_of(given: str, any_file: bool) -> tuple[str, str]:
    """Return the file of an input, and the qualified name in it."""
    if os.path.exists(given):
        if not any_file and not given.endswith((".py", ".pyc")):
            raise BadInput(f"{given}: is neither a .pyc nor a .py file; give one of these, a folder or a module's name "
                           "(or the version of code that has no header: --python 3.11)")
        return given, ""
    name, _, qualname = given.partition(":")
    if os.sep in given or name.endswith((".py", ".pyc")):
        if qualname and os.path.exists(name):
            return name, qualname
        raise BadInput(f"{given}: there is no such file")
    spec = _spec_of(name)
    if spec is None:
        raise BadInput(f"{given}: there is no such file and no such module; is its folder in PYTHONPATH?")
    for path in (spec.origin, spec.cached):
        if path and path.endswith((".py", ".pyc")) and os.path.exists(path):
            return path, qualname
    raise BadInput(f"{given}: has neither source nor bytecode (it is {spec.origin or 'a namespace package'})")


def _spec_of(name: str) -> ModuleSpec | None:
    """Return the spec of a module, ``None`` if there is none. ``find_spec`` of importlib would import its packages."""
    spec: ModuleSpec | None = None
    path: list[str] | None = None
    for end in [at for at, c in enumerate(name) if c == "."] + [len(name)]:
        part = name[:end]
        # Only the last name, as namespace packages would ask for those around it in ``sys.modules``.
        spec = PathFinder.find_spec(part.rpartition(".")[2], path or [os.getcwd(), *sys.path])
        for finder in sys.meta_path if spec is None else ():
            spec = spec or finder.find_spec(part, path, None)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
        if end < len(name) and not path:
            return None
    return spec


# --- one task --------------------------------------------------------------------------------------
def perform(task: Task, settings: argparse.Namespace) -> Outcome:
    """Decompile one thing; whatever is wrong with it is said in the outcome."""
    depth = sys.getrecursionlimit()
    try:
        with unwarned():
            sys.setrecursionlimit(max(depth, _DEPTH))
            outcome = _decompile(_named(_module(task, settings.python), task), task, settings)
        if task.target is not None:
            _write(task.target, outcome.text, settings.force)
        return outcome
    except BadInput as error:
        message = str(error)
    except Unreadable as error:
        message = str(error) if str(error).startswith(task.path) else f"{task.shown}: {error}"
    except (OSError, ValueError) as error:
        message = one_line(f"{task.shown}: {error}")
    except (RecursionError, MemoryError) as error:
        message = f"{task.shown}: {type(error).__name__} while it was decompiled; it is too large or nested"
    except Exception as error:  # our own error: the other inputs are still done
        message = one_line(f"{task.shown}: {type(error).__name__}: {error} (an error in depyf; please report it)")
    finally:
        sys.setrecursionlimit(depth)
    return Outcome(task, error=message)


def _module(task: Task, python: tuple[int, int] | None) -> Code:
    if not task.path.endswith(".py"):
        from ..bytecode.pyc import read_pyc

        return read_pyc(task.path, python)
    text = contents(task.path, budgets.CODE)
    try:
        return Code.of(compile(text, task.path, "exec", dont_inherit=True))
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise BadInput(one_line(f"{task.shown}: does not compile ({error}); is it Python "
                                f"{sys.version_info[0]}.{sys.version_info[1]}?")) from None


def _named(module: Code, task: Task) -> Code:
    """Return the code object with a qualified name (``Class.method``, ``f.<locals>.g``)."""
    if not task.qualname:
        return module
    names: list[str] = []
    pending = [(module, "")]
    seen = {module}
    while pending:
        code, path = pending.pop(0)
        for constant in code.consts:
            if isinstance(constant, Code) and constant not in seen:
                seen.add(constant)
                name = f"{path}{constant.name}"
                if name == task.qualname:
                    return constant
                names.append(name)
                pending.append((constant, f"{name}.<locals>." if constant.flags & 0x2 else f"{name}."))
    import difflib

    near = difflib.get_close_matches(task.qualname, names, 3, 0.4)
    raise BadInput(f"{task.shown}: there is no {task.qualname} in {task.path}"
                   + (f"; do you mean {' or '.join(near)}?" if near else ""))


def _decompile(code: Code, task: Task, settings: argparse.Namespace) -> Outcome:
    from ..decompiler import decompile_code
    from ..decompiler.emit.layout import with_blank_lines, with_short_lines

    if settings.stages:
        from ..decompiler.stages import stages

        return Outcome(task, stages(code) + "\n", "exact")
    foreign = code.version != sys.version_info[:2]
    result = decompile_code(code, interpreter=_interpreter(code.version, settings.interpreter) if foreign else None)
    fidelity, notes = result.fidelity.value, result.note.split("; ")
    if fidelity == "unproven" and foreign:
        version = ".".join(map(str, code.version))
        notes.insert(0, f"code of Python {version}, of which no interpreter was found: give --interpreter to prove it")
    head = [] if task.target is None else [f"{MARK} from {_comment(task.shown)}"]
    head += [f"# fidelity: {fidelity}"] * (fidelity != "exact")
    head += [f"# note: {_comment(part)}" for part in dict.fromkeys(notes) if part]
    text = with_blank_lines(result) if settings.blank_lines else with_short_lines(result).text
    return Outcome(task, "".join(line + "\n" for line in head) + text, fidelity,
                   counts=Counter(part.fidelity.value for part in result.parts))


#: Where pyenv and uv put interpreters, which need not be in PATH.
_INSTALLED = ("{PYENV_ROOT}/versions/{version}.*/bin/python{version}",
              "~/.local/share/uv/python/cpython-{version}.*/bin/python{version}")


@functools.cache
def _interpreter(version: tuple[int, int], path: str | None) -> Interpreter | None:
    """Return the interpreter at a path, or else one of this version that is installed, to prove texts with."""
    from ..decompiler.proof.recompile import ForeignError, Interpreter

    if path is not None:
        return Interpreter(path)
    name, pyenv = f"{version[0]}.{version[1]}", os.environ.get("PYENV_ROOT", "~/.pyenv")
    for each in filter(None, (shutil.which(f"python{name}"), *(
            place for pattern in _INSTALLED
            for place in sorted(glob.glob(os.path.expanduser(pattern.format(version=name, PYENV_ROOT=pyenv))))))):
        with contextlib.suppress(ForeignError):
            if (interpreter := Interpreter(each)).version == version:
                return interpreter
    return None


def _comment(text: str) -> str:
    return one_line(text, 300)


def _write(target: str, text: str, force: bool) -> None:
    """Write a file at once or not at all, over nothing that this command did not write."""
    if os.path.lexists(target) and not force:
        ours = False
        with contextlib.suppress(OSError), opened(target, budgets.CODE) as present:
            ours = present.read(len(MARK)) == MARK.encode()
        if not ours:
            raise BadInput(f"{target}: exists and was not written by depyf; use --force to overwrite it")
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    write_whole(target, [text.encode()])


# --- all tasks -------------------------------------------------------------------------------------
def outcomes(tasks: Sequence[Task], settings: argparse.Namespace) -> Iterator[Outcome]:
    """Outcomes in the order of the tasks where they go to standard output, else as they come."""
    if settings.jobs <= 1 or len(tasks) <= 1:
        yield from (perform(task, settings) for task in tasks)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed

    pool = ProcessPoolExecutor(min(settings.jobs, len(tasks)), initializer=signal.signal,
                               initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        futures = {pool.submit(perform, task, settings): task for task in tasks}
        in_order = any(task.target is None for task in tasks)
        for future in futures if in_order else as_completed(futures):
            try:
                yield future.result()
            except Exception as error:  # a process that died takes its pool with it
                yield Outcome(futures[future], error=f"{futures[future].shown}: the process that decompiled it "
                                                     f"ended early ({type(error).__name__}); try --jobs 1")
    except BaseException:
        # What runs on has nothing to give any more. (The pool's own thread has to see it end: when it is still
        # closing its pipes as the interpreter ends, an exception of concurrent.futures is printed.)
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def decompile(given: argparse.Namespace) -> int:
    """Run ``depyf decompile``."""
    if given.stages and any(os.path.isdir(each) for each in given.inputs):
        return refused("--stages shows one code object; give a file or module:qualname")
    if given.interpreter is not None and shutil.which(given.interpreter) is None:
        return refused(f"--interpreter {given.interpreter}: there is no such program; give the path of a Python")
    tasks, problems = find(given.inputs, given.output, given.python is not None)
    for problem in problems:
        print(f"depyf: {problem}", file=sys.stderr)
    progress = bar_on(sys.stderr, len(tasks), not given.quiet and given.output is not None)
    files: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    errors = len(problems)
    for outcome in outcomes(tasks, given):
        progress.done += 1
        if outcome.error:
            errors += 1
            progress.clear()
            print(f"depyf: {outcome.error}", file=sys.stderr)
        else:
            files[outcome.fidelity] += 1
            parts.update(outcome.counts)
            if outcome.task.target is None:
                sys.stdout.write(f"# === {_comment(outcome.task.shown)}\n" * (len(tasks) > 1) + outcome.text)
        progress.show(outcome.task.shown)
    progress.clear()
    sys.stdout.flush()
    if not given.quiet and not given.stages and (len(tasks) > 1 or given.output is not None):
        from ..decompiler.result import Fidelity

        how = ", ".join(f"{parts[each.value]} {each.value}" for each in Fidelity if parts[each.value])
        print(f"{count(files.total(), 'file')}, {count(parts.total(), 'code object')}{': ' if how else ''}{how}"
              + (f"; {errors} could not be decompiled" if errors else ""), file=sys.stderr)
    if errors:
        return BAD_INPUT
    return EXACT if set(files) <= {"exact", "equivalent"} else UNPROVEN_OR_WORSE

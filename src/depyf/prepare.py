"""``depyf.prepare_debug``: watch a program, write what torch.compile did with it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any

from .link.sessions import session_ended, session_started

CACHES = ("separate", "bypass", "use")


class prepare_debug:
    """Context manager: what is compiled inside is written to a directory as source.

    Args:
        *args: ``prepare_debug("dir")``, or ``prepare_debug(fn, "dir")`` as in older versions (the function
            is accepted and not needed).
        dump_src_dir: the directory, by name.
        clean_wild_fx_code: do not write graphs that no compiled function calls.
        log_bytecode: write code objects (``marshal``) beside the texts: original, transformed, recompiled.
        internal_stages: write torch's internal graphs too.
        unsimplified: write each transformed function once more, with nothing simplified (``....unsimplified.py``).
        caches: what to do about torch's compile caches: ``"separate"``, ``"bypass"`` or ``"use"``
            (see :class:`depyf.capture.session.Session`).
        link: tie running code to the files, for :func:`depyf.debug` and tracebacks. ``True``: what runs is what
            torch made, its lines point at the files. ``"source"``: proven source runs instead, so that the
            debugger shows every name in the text; torch's profiler markers then do not run, and values may live
            until their function returns. ``False``: nothing is tied.

    Raises:
        TypeError, ValueError: wrong arguments.
        ModuleNotFoundError: torch is not installed.
        TorchTooOld: it is older than 2.2.
        DirectoryError: the directory cannot be used.
    """

    def __init__(
        self, *args: Any, clean_wild_fx_code: bool = True, log_bytecode: bool = False,
        internal_stages: bool = False, caches: str = "separate", link: bool | str = True,
        unsimplified: bool = False, dump_src_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.wanted = _directory_of(args if dump_src_dir is None else (*args, dump_src_dir))
        if caches not in CACHES:
            raise ValueError(f"caches={caches!r} is not known; give one of {', '.join(map(repr, CACHES))}")
        if link not in (True, False, "source"):
            raise ValueError(f'link={link!r} is not known; give True, False or "source"')
        self.clean_wild_fx_code = clean_wild_fx_code
        self.log_bytecode = log_bytecode
        self.internal_stages = internal_stages
        self.caches = caches
        self.link = link
        self.unsimplified = unsimplified
        self.path = ""
        self._session: Any = None

    def __enter__(self) -> prepare_debug:
        if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
            raise ModuleNotFoundError("depyf.prepare_debug needs PyTorch: pip install torch")
        from .capture.session import Session
        from .capture.torch_private import versions
        from .link import Linker
        from .output.directory import Directory, run_directory

        if self._session is not None:
            raise RuntimeError("this prepare_debug is on already; make another one for a nested block")
        version = str(importlib.import_module("torch").__version__)
        untested = versions.standing(version)
        self.path, notice = run_directory(self.wanted)
        if notice:
            print(notice, file=sys.stderr)
        self._directory = Directory(self.path)
        self._linker = Linker(simplified_may_run=self.link == "source")
        self._debug = session_started(self.path)
        self._session = Session(
            self._directory, self._linker if self.link else None, internal_stages=self.internal_stages,
            caches=self.caches, log_bytecode=self.log_bytecode, unsimplified=self.unsimplified)
        if untested:
            self._session.note(untested)
        self._session.start()
        lacking = "" if not self._session.lacking else (
            f"torch {version} lacks {len(self._session.lacking)} of the names that depyf uses; `depyf doctor` shows "
            "what is lost")
        for said in (untested, lacking):
            if said and versions.say_once(said):
                print(f"depyf: {said}", file=sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        try:
            if os.getpid() == session.process:
                self._write(session.stop(), session._report)
            else:
                session.detach()
        except Exception as problem:  # ours: the program's own exception, if any, goes on
            session._report(problem)
        finally:
            session_ended(self._debug, self._linker.files)

    def _write(self, capture: Any, report: Callable[[Exception], None]) -> None:
        from .capture import store
        from .output import index, ranks
        from .output.full_code import all_graphs, full_code
        from .output.naming import legal_identifier

        graphs = all_graphs(capture.graphs)
        counts: dict[str, int] = {}
        functions = []
        for function in capture.functions:
            base = f"full_code_for_{legal_identifier(function.name)}"
            number = counts.get(base.lower(), 0)
            counts[base.lower()] = number + 1
            name = f"{base}_{number}.py"
            try:
                written = self._directory.write(name, full_code(function, graphs))
            except Exception as error:  # that file only
                report(error)
                written = None
            functions.append(replace(function, file=name if written is not None else ""))
        capture = replace(capture, functions=tuple(functions))
        if self.clean_wild_fx_code:
            capture = self._without_wild(capture)
        notes = [*capture.notes, *self._linker.notes]
        capture = replace(capture, graphs=tuple(self._with_outlines(graph, notes) for graph in capture.graphs))
        if self._directory.lost:
            notes.append("not written: " + ", ".join(dict.fromkeys(self._directory.lost)))
        notes_file = ""
        if notes and self._directory.write("notes.txt", "\n".join(notes) + "\n") is not None:
            notes_file = "notes.txt"
        capture = replace(capture, notes=tuple(notes))
        self._directory.write(store.FILE, "".join(store.lines(capture)))
        self._directory.write(index.FILE, index.index(capture, notes_file))
        ranks.rank_ended(self.path)

    def _with_outlines(self, graph: Any, notes: list[str]) -> Any:
        """The graph with an outline written beside the file of each stage, if modules are called in it."""
        from .capture.provenance import Provenance
        from .output.directory import graph_header
        from .output.outline import outline

        if not any(stage.modules for stage in graph.stages):
            return graph
        try:
            provenance = Provenance(graph)
            stages = []
            for stage in provenance.stages:
                record = stage.record
                if record.file in self._directory.files and not record.internal:
                    head = graph_header(graph.name, record)
                    title = head.partition("\n")[0].removeprefix("# ")
                    name = record.file.removesuffix(".py") + ".outline.txt"
                    text = outline(provenance, stage, title, head.count("\n") + 1)
                    record = replace(record, outline=name if self._directory.write(name, text) else "")
                stages.append(record)
            return replace(graph, stages=tuple(stages))
        except Exception as error:  # ours: the rest of the dump is written
            notes.append(f"internal error: no outlines of {graph.name} ({type(error).__name__}: {error})")
            return graph

    def _without_wild(self, capture: Any) -> Any:
        """Graphs that no compiled function calls (a backend's experiments, a compilation that failed) lose their
        files; their records stay."""
        called = {n for f in capture.functions for fr in f.frames for e in fr.entries for n in e.graph_names}
        graphs = []
        for graph in capture.graphs:
            if graph.name not in called:
                for name in [n for n in self._directory.files if n.startswith(graph.name + ".")]:
                    try:
                        os.unlink(os.path.join(self.path, name))
                        self._directory.files.remove(name)
                    except OSError:
                        pass
                graph = replace(
                    graph, stages=tuple(replace(stage, file="", outline="") for stage in graph.stages),
                    kernels=tuple(replace(kernel, file="") for kernel in graph.kernels))
            graphs.append(graph)
        return replace(capture, graphs=tuple(graphs))


def _directory_of(args: tuple[Any, ...]) -> str:
    usage = 'use prepare_debug("some_dir") or prepare_debug(fn, "some_dir")'
    if len(args) == 1:
        directory = args[0]
    elif len(args) == 2 and callable(args[0]):
        directory = args[1]
    else:
        raise TypeError(f"prepare_debug got {len(args)} positional arguments of the wrong kind; {usage}")
    if not isinstance(directory, (str, os.PathLike)):
        raise TypeError(
            f"prepare_debug needs the name of a directory, not a {type(directory).__name__}; {usage}")
    path = os.fspath(directory)
    if not isinstance(path, str) or not path:
        raise ValueError(f"prepare_debug needs the name of a directory, not {path!r}; {usage}")
    return path

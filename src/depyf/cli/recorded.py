"""The commands that read the records of a run: explain, diff, check, fits, repro, open, report. They need no torch."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import guarded
from .terminal import DONE, RUN, add_color, add_rank, console_on, refused

if TYPE_CHECKING:
    from ..views.diff.difference import Difference

DIFFERENT, BEYOND, NOT_SERVED, UNDECIDED = 1, 1, 1, 3  #: Exit statuses: of ``diff``, of ``check``, of ``fits``.


# --- depyf explain ----------------------------------------------------------------------------------
def _add_explain(commands: Any) -> None:
    command = commands.add_parser(
        "explain", help="explain what torch.compile did in a run",
        description="Explains what torch.compile did in a run: graph breaks with reason and advice, recompiles, what "
                    "was not compiled, dynamic shapes, time. Needs no torch.",
        epilog="Exit status: 0 done, 2 there is nothing that can be read.")
    command.add_argument("path", metavar="PATH", help=RUN)
    add_rank(command)
    command.add_argument("--json", action="store_true", help="the same as JSON (docs/json.md)")
    add_color(command)
    command.set_defaults(run=explain)


@guarded.paused()
def explain(given: argparse.Namespace) -> int:
    """Run ``depyf explain``."""
    from ..records.run_directory import RANK, directory_of, rank_folders
    from ..views.index import read

    rank = "" if given.rank is None else f"{RANK}{given.rank}"
    directory = directory_of(os.path.join(given.path, rank) if rank else given.path)
    if not given.json and not rank_folders(directory) and (text := read(directory)) is not None:
        return _show_index(given, text, directory)
    from ..recorded_runs import captures_of, folder_of, shown
    from ..views.index.index import index

    run = shown(given.path) if given.rank is None and not given.json else captures_of(given.path, given.rank)
    if isinstance(run, list):
        from ..views.ranks import ranks_index
        from ..views.terminal import show

        if sum(len(each.members) for each in run) > 1:
            show(ranks_index(run), console_on(sys.stdout, given.color))
            print(f"\nEach of them: depyf explain {given.path} --rank N")
            return DONE
        captures = {each.members[0].folder: each.capture for each in run if each.capture is not None}
    else:
        captures = run if isinstance(run, dict) else {"": run}
    folder = folder_of(captures, given.path, given.rank)
    if given.json:
        from ..views.as_json import explain_document, written

        chosen = {folder: captures[folder]} if rank else captures
        sys.stdout.write(written(explain_document(chosen, given.path)))
        return DONE
    return _show_index(given, index(captures[folder]), os.path.join(given.path, folder) if folder else given.path)


def _show_index(given: argparse.Namespace, text: str, path: str) -> int:
    """Show the index of one process, and where its files are."""
    from ..views.index import in_terminal
    from ..views.terminal import show

    console = console_on(sys.stdout, given.color)
    show(text, console, in_terminal)
    if files := _files_to_read(path):
        print()
        show("## Read on", console)
        print("\n".join(files))
    return DONE


def _files_to_read(path: str) -> list[str]:
    """Return the lines that say where the files are, and which dumps of other runs or processes there are."""
    from ..records.run_directory import RUN, numbered
    from ..views.dump.folder import INDEX, PAGE
    from ..views.markdown import some

    if not os.path.isdir(path):
        path = os.path.dirname(path) or "."
    if not os.path.exists(os.path.join(path, INDEX)):
        return []
    lines = [f"  {os.path.join(path, INDEX)}"]
    names = sorted(os.listdir(path))
    full = [name for name in names if name.startswith("full_code_for_")]
    lines += [f"  {os.path.join(path, name)}" for name in full[:5]]
    lines += [f"  ... and {len(full) - 5} more full_code_for_*.py"] * (len(full) > 5)
    lines.append(f"  in a browser: depyf open {path}{'' if PAGE in names else ' (which makes it first)'}")
    runs = list(numbered(names, RUN).values())
    return [*lines, f"  other runs or processes in it: {some(runs, 6)}"] if runs else lines


# --- depyf diff -------------------------------------------------------------------------------------
def _add_diff(commands: Any) -> None:
    command = commands.add_parser(
        "diff", help="report what changed between two runs",
        description="Reports what changed between two runs: functions, graphs (operations by module), breaks, "
                    "recompiles, guards, kernels. Ids, addresses, hashes and names that torch counts up are no "
                    "difference, nor is time, which is shown. Needs no torch.",
        epilog="Exit status: 0 no difference, 1 there is one, 2 there is nothing that can be read.")
    command.add_argument("before", metavar="DIR_A", help=RUN)
    command.add_argument("after", metavar="DIR_B", help="the same of the other run")
    command.add_argument("--full", action="store_true",
                         help="report every change, and those of graphs and kernels line by line")
    command.add_argument("--json", action="store_true", help="the differences as JSON (docs/json.md)")
    command.add_argument("-q", "--quiet", action="store_true", help="only the exit status")
    add_color(command)
    command.set_defaults(run=diff)


def diff(given: argparse.Namespace) -> int:
    """Run ``depyf diff``."""
    from ..recorded_runs import captures_of
    from ..views.diff.difference import difference

    before, after = captures_of(given.before), captures_of(given.after)
    if len(before) == len(after) == 1:
        pairs = [("", next(iter(before.values())), next(iter(after.values())))]
    elif before.keys() & after.keys():
        pairs = [(folder, before[folder], after[folder]) for folder in before if folder in after]
    else:
        return refused(f"one of the two is of several ranks; give one rank: {given.before} {given.after}")
    alone = [[name for name in mine if len(pairs) > 1 and name not in other]
             for mine, other in ((before, after), (after, before))]
    results = {folder: difference(first, second, given.full) for folder, first, second in pairs}
    if given.json:
        from ..views.as_json import diff_document, written

        sys.stdout.write(written(diff_document(results, (given.before, given.after), alone)))
    elif not given.quiet:
        _show_differences(given, results, alone)
    return DIFFERENT if any(results.values()) or any(alone) else DONE


def _show_differences(
    given: argparse.Namespace, results: Mapping[str, Difference], alone: Sequence[Sequence[str]],
) -> None:
    from ..views.diff.difference import text
    from ..views.terminal import show

    for path, names in zip((given.before, given.after), alone):
        for name in names:
            print(f"{name} only in {path}")
    console = console_on(sys.stdout, given.color)
    for number, (folder, result) in enumerate(results.items()):
        if number:
            print()
        show(text(result, (os.path.join(given.before, folder) if folder else given.before,
                           os.path.join(given.after, folder) if folder else given.after)), console)


# --- depyf check ------------------------------------------------------------------------------------
#: Options, with the kinds of budgets that they are for (``depyf.views.verdict.KINDS``; a help need not import that).
OPTIONS = {
    "--max-breaks": ("breaks", "graph breaks, each once for every compilation that comes to it"),
    "--max-recompiles": ("recompiles", "recompiles: a call matched no version"),
    "--max-skipped": ("skipped", "functions that run in plain Python: skipped, failed, or at the recompile limit"),
    "--max-versions": ("versions", "compiled versions, those of resume functions too"),
    "--max-graphs": ("graphs", "graphs that compiled code calls"),
    "--max-guards": ("guards", "guards of all versions"),
    "--max-kernels": ("kernels", "kernel calls in generated code"),
    "--max-compile-seconds": ("seconds", "seconds of compiling"),
}


def _add_check(commands: Any) -> None:
    command = commands.add_parser(
        "check", help="compare a run with budgets, for CI",
        description="Compares what torch.compile did in a run with budgets, and reports for each what is beyond it: "
                    "place and cause. Of several ranks each is judged by itself. Needs no torch.",
        epilog="N is a number for the whole run, or FUNCTION:N for each function that FUNCTION means (a pattern of the "
               "shell for its qualified name or the last part of it; with a / or with .py at its end for its file). "
               "Each option can be given several times. Exit status: 0 within the budgets, 1 beyond one of them, 2 "
               "there is nothing that can be read or judged.")
    command.add_argument("path", metavar="PATH", help=RUN)
    given = command.add_argument_group("budgets: at most")
    for option, (kind, meaning) in OPTIONS.items():
        given.add_argument(option, action="append", default=[], dest=kind, help=meaning,
                           metavar="S" if kind == "seconds" else "N")
    given.add_argument("--no-skipped", action="append_const", dest="skipped", const="0",
                       help="the same as --max-skipped 0")
    command.add_argument("--json", action="store_true", help="the result as JSON (docs/json.md)")
    command.add_argument("-q", "--quiet", action="store_true", help="only the exit status")
    command.set_defaults(run=check)


def check(given: argparse.Namespace) -> int:
    """Run ``depyf check``."""
    from ..recorded_runs import captures_of
    from ..records.run_directory import RUN, numbered
    from ..views.budgets import BudgetError, budgets, judge, sentences
    from ..views.markdown import some

    try:
        wanted = budgets({kind: values for kind, _ in OPTIONS.values() if (values := getattr(given, kind))})
        if not wanted:
            raise BudgetError("there is no budget; give one, such as --max-breaks 0 (depyf check --help)")
        judgement = judge(captures_of(given.path), wanted)
    except BudgetError as error:
        return refused(error)
    if given.json:
        from ..views.as_json import check_document, written

        sys.stdout.write(written(check_document(judgement, given.path)))
    elif not given.quiet:
        print("\n".join(sentences(judgement)))
    left_out = list(numbered(os.listdir(given.path), RUN).values()) if os.path.isdir(given.path) else []
    if left_out and not given.quiet:
        print(f"depyf: not judged: {some(left_out, 6)} in {given.path}, which other runs or processes wrote",
              file=sys.stderr)
    return DONE if judgement.within else BEYOND


# --- depyf fits -------------------------------------------------------------------------------------
def _add_fits(commands: Any) -> None:
    command = commands.add_parser(
        "fits", help="report which version of a function would serve a call",
        description="Compares the recorded conditions of each version of a function with a call: which version serves "
                    "it, or the first condition that fails and the smallest change with which the version would fit. "
                    "A condition on something that was not given is undecided. Needs no torch.",
        epilog="Exit status: 0 served, 1 no version serves the call, 2 nothing that can be read, 3 undecided. "
               "With --sizes: 1 if a size would be compiled again.")
    command.add_argument("path", metavar="PATH", help=RUN)
    command.add_argument("function", metavar="FUNCTION", help="its name (Decoder.forward, forward), or the id of one "
                                                              "of its versions (0/1), also of a resume function")
    command.add_argument("--args", nargs="+", action="extend", default=[], metavar="NAME=VALUE",
                         help="x=f32[3,4] n=4 flag=True mode=\"'train'\" xs=[f32[2],f32[2]] self.training=False; of a "
                              "tensor also x=\"f32[3,4](grad=True, stride=(1,3), device='cuda:0')\"")
    command.add_argument("--state", nargs="+", action="extend", default=[], metavar="NAME=VALUE",
                         help="of torch: grad_mode=True default_dtype=torch.float32 ...")
    command.add_argument("--same", action="store_true",
                         help="take what was not given to be as it was when each version was compiled, unless versions "
                              "differ in it")
    command.add_argument("--sizes", nargs="+", action="extend", default=[], metavar="NAME.DIM=N,N",
                         help="which of these sizes would be compiled again: x.0=1,2,8,16; n=1,2 (a number); "
                              "x.0,y.0=1,2 (both at once)")
    add_rank(command)
    command.set_defaults(run=fits)


def fits(given: argparse.Namespace) -> int:
    """Run ``depyf fits``."""
    from ..fitting.given import described_call, frame_of, known_names, known_state
    from ..fitting.oracle import advice, fit
    from ..fitting.written import NotGiven, answers_by_size, arguments
    from ..recorded_runs import capture_of
    from ..records.store import NOT_ENDED

    try:
        capture = capture_of(given.path, given.rank)
        frame = frame_of(capture, given.function)
        call = described_call(
            frame, known_names(frame, arguments(given.args)), known_state(frame, arguments(given.state)))
        answer = fit(frame, call, given.same, capture.compilations)
        sizes = answers_by_size(given.sizes, call, lambda changed: fit(
            frame, changed, given.same, capture.compilations))
    except NotGiven as error:
        try:
            known_names(frame, {error.path: None})
        except ValueError as unknown:
            return refused(unknown)
        return refused(f"{error} (--args {error.path}=f32[4,8])")
    except ValueError as error:
        return refused(error)
    print(dataclasses.replace(answer, sizes=sizes), end="")
    asked = [each.served for answers in sizes.values() for each in answers.values()] or [answer.served]
    likely = answer if given.same or None not in asked else fit(frame, call, True, capture.compilations)
    hint = advice(answer, likely) if None in asked else ""
    if hint:
        print(f"\n{hint}")
    if NOT_ENDED in capture.notes:  # (there may be other versions)
        print(f"\n{NOT_ENDED[:1].upper()}{NOT_ENDED[1:]}.")
    return NOT_SERVED if False in asked else UNDECIDED if None in asked else DONE


# --- depyf repro ------------------------------------------------------------------------------------
def _add_repro(commands: Any) -> None:
    command = commands.add_parser(
        "repro", help="write one compilation as a program that runs alone",
        description="Writes a program that needs nothing but torch: the captured graph of one compilation, inputs of "
                    "the recorded sizes, strides and dtypes (their numbers are random), its guards as comments, and "
                    "the check of the backend against eager PyTorch. Needs no torch itself.",
        epilog="Exit status: 0 done, 2 nothing that can be read, or the program cannot be written.")
    command.add_argument("path", metavar="PATH", help=RUN)
    command.add_argument("compilation", metavar="ID", help="id of a compilation (0/1) or name of a graph "
                                                           "(__compiled_fn_3)")
    command.add_argument("-o", "--output", metavar="FILE", help="the program (default: repro_0_1.py; - for standard "
                                                                "output)")
    command.add_argument("--backend", default="", help="the one that the program checks by default (default: the "
                                                       "recorded one)")
    command.add_argument("--force", action="store_true", help="overwrite the file")
    add_rank(command)
    command.set_defaults(run=repro)


def repro(given: argparse.Namespace) -> int:
    """Run ``depyf repro``."""
    from ..recorded_runs import capture_of
    from ..views.repro import NotReproducible
    from ..views.repro import repro as program

    try:
        text = program(capture_of(given.path, given.rank), given.compilation, given.backend)
    except NotReproducible as error:
        return refused(error)
    name = given.output or f"repro_{given.compilation.strip('[]').replace('/', '_')}.py"
    if name == "-":
        sys.stdout.write(text)
        return DONE
    if os.path.exists(name) and not given.force:
        return refused(f"{name} is there already; give another with -o, or --force")
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{name}: python {name} [BACKEND]")
    return DONE


# --- depyf open -------------------------------------------------------------------------------------
def _add_open(commands: Any) -> None:
    command = commands.add_parser(
        "open", help="show the page of a run in the browser",
        description="Shows index.html of a dump in the browser, and makes it first where it is not there. Where there "
                    "is no display, its address is printed.",
        epilog="Exit status: 0 done, 2 there is nothing that can be read, or the page cannot be written.")
    command.add_argument("path", metavar="DIR", nargs="?", default="depyf_output",
                         help="directory of a dump (default: depyf_output)")
    command.add_argument("--print", action="store_true", dest="only_print", help="print the address, open nothing")
    command.set_defaults(run=show_page)


def show_page(given: argparse.Namespace) -> int:
    """Run ``depyf open``."""
    import webbrowser

    from .. import page
    from ..report import report

    path = given.path
    if os.path.isfile(path) and path.endswith((".html", ".jsonl")):
        path = os.path.dirname(path) or "."
    file = os.path.join(path, page.FILE)
    if not os.path.isfile(file):
        report(path)
    address = pathlib.Path(os.path.abspath(file)).as_uri()
    display = sys.platform in ("win32", "darwin") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    opened = False
    with contextlib.suppress(webbrowser.Error, OSError):
        opened = not given.only_print and display and webbrowser.open(address)
    if not opened:
        print(address)
    return DONE


# --- depyf report -----------------------------------------------------------------------------------
def _add_report(commands: Any) -> None:
    command = commands.add_parser(
        "report", help="make the files of a run from its records, a log of TORCH_TRACE or a file that torch saved",
        description="Makes the index and the page of a run again (of a run that was killed, or of all its ranks). With "
                    "-o, makes all files that the records give, also from a log that TORCH_TRACE wrote, or from a "
                    "package of AOTInductor or torch.export.save (.pt2). Needs no torch.",
        epilog="Exit status: 0 done, 2 there is nothing that can be read or the output cannot be written.")
    command.add_argument("path", metavar="PATH",
                         help="directory that depyf.prepare_debug wrote, its records.jsonl, a log of TORCH_TRACE, or a "
                         "file that torch saved")
    command.add_argument("-o", "--output", metavar="DIR", help="where all files go (default: only the "
                                                                        "index and the page, beside the records)")
    command.add_argument("--page", action=argparse.BooleanOptionalAction, default=True,
                         help="write the page index.html (default: yes)")
    command.add_argument("--sources", action="store_true",
                         help="read the user's files from this machine's disk where the records have no copy (a log "
                              "has none); the records name the files, so only for those that you trust")
    command.add_argument("--internal-stages", action="store_true",
                         help="write torch's internal graphs, and the texts around them, that a log of TORCH_TRACE has")
    command.set_defaults(run=report)


def report(given: argparse.Namespace) -> int:
    """Run ``depyf report``."""
    from ..report import report as make

    print(make(given.path, given.output, given.page, given.sources, given.internal_stages))
    return DONE

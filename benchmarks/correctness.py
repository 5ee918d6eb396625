"""``depyf.compare`` on programs that are wrong and on programs that are right (``make correctness``).

    python benchmarks/correctness.py [--only wrong right] [--names NAME ...] [--every N]
                                   [--modes forked copies]
                                   [--write docs/measured/correctness.md]

Each program runs in a process of its own, and is judged in two ways: in forked processes, and on copies in its process,
as where CUDA is in use (there no part at fault is named). A wrong one is judged at the call where it goes wrong: it is
found if what runs is said to be different, and its place is named if the part and the name in the report are those that
were planted (those of a real error: what its issue says; where the fault is in what a backend gives back, the part
alone). A right one runs twice: plain, and with each compiled call judged. A judged call that is said to be different is
a false alarm; results, printed text, warnings, random numbers, cache entries with their order and guards, counters,
frame counts, sizes that torch has seen, settings, imported modules, threads, open files and signal handlers of the two
runs must be the same.
"""

from __future__ import annotations

import os

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # read when torch is imported

import argparse
import collections
import contextlib
import io
import logging
import pathlib
import pickle
import platform
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from _shared import dated, table

from depyf.capture import forked
from depyf.capture.torch_private import cache_entries
from depyf.comparing import Comparison
from depyf.comparing.checking import Checked, CheckedCalls
from depyf.comparing.outcome import Outcome, disagreements, random_states
from depyf.comparing.reachable import Reachable
from depyf.comparing.reference import Tolerance

LIMIT = 900
MODES = ("forked", "copies")


class Compile:
    """``torch.compile`` with a backend, also as a decorator with options."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, function: Any = None, **options: Any) -> Any:
        if function is None:
            return lambda each: self(each, **options)
        return torch.compile(function, **{"backend": self.backend, **options})


def torch_state() -> dict[str, Any]:
    """Return what torch and Python keep besides the program's own objects: caches, counters, settings, resources."""
    import torch._dynamo.convert_frame as frames
    from torch._dynamo import pgo

    # (In the order of their names: a code object that was only judged may have been known first.)
    entries = sorted(((code, own) for code in cache_entries.known_codes() if (own := cache_entries.entries(code))),
                     key=lambda each: (each[0].co_filename, each[0].co_firstlineno, each[0].co_name, str(
                         each[1][0].name)))
    return {
        "entries": [(code.co_name, code.co_firstlineno, [entry.name for entry in own]) for code, own in entries],
        "guards": [without_ids(str(entry.guard_manager)) for _, own in entries for entry in own],
        "counters": {name: {without_ids(key): count for key, count in values.items()}
                     for name, values in torch._dynamo.utils.counters.items()},
        "frames": frames.FRAME_COUNTER, "recompiles": dict(frames.FRAME_COMPILE_COUNTER),
        "sizes seen": without_ids(str(pgo.get_code_state())),
        "hooks": len(torch._dynamo.convert_frame._bytecode_hooks), "random": random_states(),
        "modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(),
                  torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()),
        "modules": sorted(name for name in sys.modules if not name.startswith("depyf")),
        "warnings": [str(each) for each in warnings.filters], "threads": threading.active_count(),
        "open files": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
        "signals": [str(signal.getsignal(each)) for each in signal.valid_signals()],
        "recursion": sys.getrecursionlimit(), "profile": (sys.getprofile(), sys.gettrace())}


def without_ids(text: Any) -> str:
    """Return a text without addresses, and without numbers that torch counts objects by."""
    return re.sub(r"0x[0-9a-f]+|\b\d{7,}\b", "ID", str(text))


def observed(program: Any, every: int, mode: str) -> tuple[Outcome, dict[str, Any], Checked | None]:
    """Run a program and return what it left, what torch keeps, and what was found in the judged calls."""
    from right_programs import seeded

    seeded()
    judge_in(mode)
    checks = CheckedCalls(every) if every else None
    result = Outcome()
    printed = io.StringIO()
    value: Any = None
    if checks is not None:
        checks.start()
    begun = time.perf_counter()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")  # (each once for a line)
        try:
            value = program.run(Compile(program.backend))
        except Exception as error:
            value = (type(error).__name__, str(error))
    seconds = time.perf_counter() - begun
    checked = checks.stop() if checks is not None else None
    if checked is not None:
        checked.program_seconds = seconds
    walk = Reachable()
    walk.add("result", value)
    shown = [f"{each.category.__name__}: {without_ids(each.message)}" for each in warned or ()]
    result.states, result.printed = walk.states, (printed.getvalue(), "\n".join(shown))
    result.extra = seconds
    return result, torch_state(), checked


def judge_in(mode: str) -> None:
    """In the process of a program: have depyf run calls in forked processes, or on copies."""
    if mode == "copies":
        forked.why_not = lambda: "forks are refused"


def judge_right(program: Any, mode: str) -> dict[str, Any]:
    """Run a right program plain and with each call judged."""
    # (Read when both are done: what is read may change classes of the program, of which the next would begin.)
    runs = [forked.in_child(lambda every=every: pickle.dumps(observed(program, every, mode)), LIMIT, judging=False)
            for every in (0, 1)]
    (plain, state, _), (watched, after, checked) = map(pickle.loads, runs)
    exact = Tolerance(0.0, 0.0)
    left = [str(each) for each in disagreements(watched, plain, exact) if not each.why_not]
    if mode == "copies":
        # (What judges is imported, torch tries first the guard that failed most often, and numbers its names on.)
        for each in (state, after):
            del each["modules"]
            each["guards"] = [
                sorted(re.sub(r"___\d+", "", text).splitlines()) for text in each["guards"]]
    left += [f"{name}: {after[name]} instead of {value}"[:300] for name, value in state.items()
             if after[name] != value]
    return {"name": program.name, "kind": program.kind, "backend": program.backend, "calls": checked.calls,
            "judged": checked.judged, "alarms": [(each.number, str(each.result)) for each in checked.different],
            "equal": checked.equal, "in part": checked.in_part, "partly": checked.partly,
            "not judged": checked.not_judged, "left": left, "plain": plain.extra, "judging": checked.seconds}


def judge_wrong(program: Any, mode: str) -> dict[str, Any]:
    """Judge a wrong program at the call where it goes wrong."""
    def work() -> tuple[Comparison | None, str]:
        judge_in(mode)
        return program.judge()

    result, wrong = forked.in_child(work, LIMIT, judging=False)
    found = result is not None and result.running is not None and bool(result.running.differing)
    fault = result.running.fault if found else None
    named = fault is not None and fault.part in program.parts and (
        not program.place or any(program.place in text for text in (fault.name, fault.text, *map(
            str, fault.user_lines))))
    return {"name": program.name, "kind": program.kind, "found": found, "named": named, "reproduces": wrong,
            "fault": str(fault) if fault else str(result and result.running)}


def run(wanted: Sequence[Any], judge: Any, show: Any, mode: str) -> list[dict[str, Any]]:
    rows = []
    for program in wanted:
        begun = time.perf_counter()
        try:
            row = judge(program, mode)
        except forked.ChildFailed as error:
            row = {"name": program.name, "kind": program.kind, "error": str(error)}
        row |= {"seconds": time.perf_counter() - begun, "mode": mode}
        rows.append(row)
        print(show(row), flush=True)
    return rows


def show_wrong(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"ERROR  {row['name']}: {row['error']}"
    if not row["reproduces"]:
        return f"right  {row['name']}: does not go wrong here"
    return f"{'named ' if row['named'] else 'found ' if row['found'] else 'MISSED'} {row['kind']}, {row['name']} " \
           f"({row['seconds']:.1f} s): {row['fault'][:300]}"


def show_right(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"ERROR  {row['name']}: {row['error']}"
    text = "ALARM " if row["alarms"] else "LEFT  " if row["left"] else "right "
    text += f"{row['kind']}, {row['name']}: {row['judged']} of {row['calls']} calls, {row['seconds']:.1f} s"
    for each in (*row["alarms"], *row["left"], *row["partly"].items(), *row["not judged"].items()):
        text += f"\n    {each}"
    return text


def document(wrong: list[dict[str, Any]], right: list[dict[str, Any]], measured: str) -> str:
    """The document with all figures, and when they were measured."""
    lines = ["# Is it right? `depyf.compare` on wrong and on right programs", "",
             f"{measured}, `python benchmarks/correctness.py --write docs/measured/correctness.md` "
             f"(`make correctness`), torch {torch.__version__}, Python {platform.python_version()}.", "",
             (__doc__ or "").split("\n\n", 2)[2].strip(), ""]
    for mode in MODES:
        title = {"forked": "in forked processes", "copies": "on copies in the program's process"}[mode]
        lines += _on_wrong([row for row in wrong if row["mode"] == mode], title, mode == "forked")
        lines += _on_right([row for row in right if row["mode"] == mode], title)
    return "\n".join(lines).rstrip() + "\n"


def _on_wrong(wrong: list[dict[str, Any]], title: str, each: bool) -> list[str]:
    real = [row for row in wrong if row.get("reproduces")]
    if not real:
        return []
    found, named = [row for row in real if row["found"]], [row for row in real if row["named"]]
    median = sorted(row["seconds"] for row in real)[len(real) // 2]
    lines = [f"## Wrong programs, {title}", "",
             f"**{len(found)} of {len(real)} found ({len(found) / len(real):.0%}).** The place is named in "
             f"{len(named)}. A median of {median:.1f} s each, compilations included.", ""]
    kinds = collections.Counter(row["kind"] for row in real)
    lines += [table(["the fault is in", "programs", "found", "named"], [
        [kind, number, sum(row["found"] for row in real if row["kind"] == kind),
         sum(row["named"] for row in real if row["kind"] == kind)] for kind, number in kinds.items()]), ""]
    if each:
        lines += [table(["program", "fault in", "found", "named", "the report's first words"], [
            [row["name"], row["kind"], "yes" if row["found"] else "NO", "yes" if row["named"] else "NO",
             f"`{row['fault'].splitlines()[0][:110].replace('`', '')}`"] for row in real]), ""]
    else:
        lines += [f"* not found: {row['name']}" for row in real if not row["found"]]
    absent = [row for row in wrong if "error" not in row and not row["reproduces"]]
    if absent and each:
        lines += [f"Left out, as they do not go wrong here: {', '.join(row['name'] for row in absent)}.", ""]
    return [*lines, *(f"* {row['name']}: {row['error']}" for row in wrong if "error" in row)]


def _on_right(right: list[dict[str, Any]], title: str) -> list[str]:
    if not right:
        return []
    errors = [row for row in right if "error" in row]
    good = [row for row in right if "error" not in row]
    alarms, left = [row for row in good if row["alarms"]], [row for row in good if row["left"]]
    judged, calls = sum(row["judged"] for row in good), sum(row["calls"] for row in good)
    plain, judging = sum(row["plain"] for row in good), sum(row["judging"] for row in good)
    in_part = sum(row["in part"] for row in good)
    lines = [f"## Right programs, {title}", "",
             f"**{len(good)} programs, {judged} of {calls} compiled calls judged, {in_part} of them in part: "
             f"{sum(len(row['alarms']) for row in good)} false alarms, in {len(alarms)} programs; "
             f"{len(left)} programs left anything else than without judging.** The programs take "
             f"{plain:.0f} s in all, compilations included; judging each call took {judging:.0f} s more "
             f"({1000 * judging / max(judged, 1):.0f} ms a call).", ""]
    lines += [table(["kind", "programs", "calls judged", "in part", "false alarms", "state changed", "not judged"], [
        [kind, len(rows), sum(row["judged"] for row in rows), sum(row["in part"] for row in rows),
         sum(len(row["alarms"]) for row in rows),
         sum(bool(row["left"]) for row in rows), sum(sum(row["not judged"].values()) for row in rows)]
        for kind in dict.fromkeys(row["kind"] for row in good)
        for rows in [[row for row in good if row["kind"] == kind]]]), ""]
    for row in (*alarms, *left, *errors):
        lines.append(f"* {row['name']}: `{' '.join(show_right(row).split())[:400]}`")
    return [*lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=("wrong", "right"), default=["wrong", "right"])
    parser.add_argument("--names", nargs="+", default=[])
    parser.add_argument("--every", type=int, default=1, help="one program in so many")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--rows", type=pathlib.Path, help="keep what was found in this file")
    parser.add_argument("--add", type=pathlib.Path, help="take what an earlier run kept, too")
    parser.add_argument("--write", type=pathlib.Path)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    import torch._inductor.config

    torch._inductor.config.compile_threads = 1  # a pool of processes is no child's
    for backend in ("eager", "aot_eager", "inductor"):  # what torch imports at first is imported once
        torch.compile(lambda x: x.sin() + 1, backend=backend)(torch.ones(3))
    torch._dynamo.reset()
    random.seed(0)
    import right_programs
    import wrong_programs

    def chosen(programs: Any) -> list[Any]:
        wanted = [each for each in programs if not given.names or any(name in each.name for name in given.names)]
        return wanted[::given.every]

    wrong, right = [], []
    for mode in given.modes:
        if "wrong" in given.only:
            wrong += run(chosen(wrong_programs.programs()), judge_wrong, show_wrong, mode)
        if "right" in given.only:
            right += run(chosen(right_programs.programs()), judge_right, show_right, mode)
    if given.rows:
        given.rows.write_bytes(pickle.dumps((wrong, right, dated())))
    measured = dated()
    if given.add:
        earlier = pickle.loads(given.add.read_bytes())
        wrong, right = earlier[0] + wrong, earlier[1] + right
        measured += f" ({' and '.join(name for name, rows in zip(('wrong', 'right'), earlier) if rows)} programs: " \
                    f"{earlier[2]})"
    text = document(wrong, right, measured)
    print(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    bad = any("error" in row or row.get("alarms") or row.get("left") for row in (*wrong, *right))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

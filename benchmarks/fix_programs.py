"""`depyf fix` over the corpus of `tests/advice/corpus.txt` (``make fix``).

    python benchmarks/fix_programs.py [--only NAME ...] [--write docs/measured/fix.md]

Each program breaks graphs, is skipped or is compiled again. The command's own search runs on it, in processes that are
forked from one that has torch loaded; a run that the search took has to print and give what the program did before.
The exit status is 1 where a share is missed.
"""

from __future__ import annotations

import argparse
import atexit
import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator

from _shared import dated, table

from depyf.fixing.running import Runner
from depyf.fixing.search import Found, Search
from depyf.fixing.trial import Spec, run

CORPUS = pathlib.Path(__file__).parents[1] / "tests" / "advice" / "corpus.txt"
WANTED = 0.8


class Case:
    """A program of the corpus, the rule that it is for, and for rules in words the program as it should be."""

    def __init__(self, text: str) -> None:
        match = re.match(r"(?P<name>\w+)\]\n\[rule (?P<rule>[^\]]+)\]\n(?P<rest>.*)", text, re.S)
        assert match is not None, text[:80]
        self.name, self.rule = match["name"], match["rule"]
        self.before, _, self.after = match["rest"].partition("[after]\n")


def cases() -> Iterator[Case]:
    for text in CORPUS.read_text(encoding="utf-8").split("[case ")[1:]:
        yield Case(text)


class Server:
    """A small process that has torch loaded, and forks for each trial. (A test runner, with all that it holds, takes
    many times longer to fork.)"""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def status(self, spec: Spec, limit: float) -> int | None:
        """The exit status of a trial; ``None`` where it took too long."""
        if self._process is None:
            self._process = subprocess.Popen([sys.executable, __file__, "--serve"], text=True, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([dataclasses.asdict(spec), limit]), file=self._process.stdin, flush=True)
        status: int | None = json.loads(self._process.stdout.readline())
        return status

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


SERVER = Server()
atexit.register(SERVER.close)


def serve() -> None:
    """Runs the trials that standard input asks for."""

    import depyf.capture.session
    import depyf.link  # noqa: F401

    for line in sys.stdin:
        spec, limit = json.loads(line)
        pid = os.fork()
        if not pid:
            trial(Spec(**spec))
        print(json.dumps(ended(pid, limit)), flush=True)


def trial(spec: Spec) -> None:
    """Runs a trial in this process and ends it."""
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(os.path.join(spec.folder, "errors"), os.O_WRONLY | os.O_APPEND), 2)
        run(spec)
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status)


def ended(pid: int, limit: float) -> int | None:
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


class ForkedRunner(Runner):
    """Runs a trial in a fork of the server. ``keep``: where the dump of the first one is copied to."""

    keep: pathlib.Path | None = None

    def start(self, spec: Spec, errors: int) -> int | None:
        status = SERVER.status(spec, self.limit)
        if status is not None and self.keep is not None and not self.keep.exists():
            shutil.copytree(pathlib.Path(spec.folder) / "dump", self.keep, ignore_dangling_symlinks=True)
        return status


def search(case: Case, folder: pathlib.Path, runs: int = 10, keep: pathlib.Path | None = None) -> Found:
    path = folder / f"{case.name}.py"
    path.write_text(case.before, encoding="utf-8")
    runner = ForkedRunner(str(path), limit=60)
    runner.keep = keep / case.name if keep is not None else None
    return Search(str(path), runner, runs).patch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--keep", type=pathlib.Path, help="where the dump of each program goes, as it is unchanged")
    parser.add_argument("--write", type=pathlib.Path)
    given = parser.parse_args()
    import torch

    rows, totals = [], {"breaks": [0, 0], "skipped": [0, 0], "recompiles": [0, 0]}
    lasting, differing = [0, 0], 0
    with tempfile.TemporaryDirectory() as top:
        for case in cases():
            if given.only and case.name not in given.only:
                continue
            found = search(case, pathlib.Path(top), keep=given.keep)
            before, after = found.before, found.after
            if found.refused:
                print(f"{case.name}: {found.refused}\n{before.error}", flush=True)
            differing += not after.same_results(before)
            for name, pair in totals.items():
                pair[0] += getattr(before, name)
                pair[1] += getattr(after, name)
            if case.rule == "limit":
                lasting[0] += before.recompiles
                lasting[1] += after.recompiles
            rows.append((case.name, case.rule, f"{before.breaks} → {after.breaks}",
                         f"{before.skipped} → {after.skipped}", f"{before.recompiles} → {after.recompiles}",
                         ", ".join(advice.rule for advice in found.taken) or "nothing", found.runs))
            print(*rows[-1], sep=" | ", flush=True)
    totals["recompiles, avoidable"] = [all - of for all, of in zip(totals["recompiles"], lasting)]
    shares = {name: 1 - new / old if old else 1.0 for name, (old, new) in totals.items()}
    figures = table(("what", "before", "after", "gone", "to reach"), [
        (name, old, new, f"{shares[name]:.0%}", f"{WANTED:.0%}") for name, (old, new) in totals.items()])
    figures += ("\nNot avoidable are the recompiles of programs for the rule `limit`: torch has no symbol for a "
                "string, so each length has a version of its own.\n")
    figures += f"\nPrograms whose results differ after the patch: {differing} of {len(rows)}.\n"
    print(figures)
    if given.write:
        given.write.write_text(
            f"# `depyf fix` over a corpus\n\n{dated()}, Python {platform.python_version()}, torch {torch.__version__}, "
            f"{os.cpu_count()} cores. Command: `make fix`.\n\n{len(rows)} programs of `tests/advice/corpus.txt`, "
            "written for this; each was run as it is and with the patch. Those of rule `none` are there to be left "
            "alone: no rule fitted, or the results would change. Rules that say what to do only in words leave their "
            f"programs as they are.\n\n{figures}\n## Programs\n\n"
            + table(("program", "for the rule", "breaks", "skipped", "recompiles", "taken", "runs"), rows),
            encoding="utf-8")
    raise SystemExit(bool(differing or shares["breaks"] < WANTED
                          or shares["recompiles, avoidable"] < WANTED))


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()

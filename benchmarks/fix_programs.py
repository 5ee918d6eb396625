"""`depyf fix` over the corpus of `tests/advice/corpus.txt` (``make fix``).

    python benchmarks/fix_programs.py [--only NAME ...] [--write docs/measured/fix.md]

Each program breaks graphs, is skipped or is compiled again. The command's own search runs on it, in processes that are
forked from one that has torch loaded; a run that the search took has to print and give what the program did before.
The exit status is 1 where a share is missed.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import pathlib
import pickle
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from _shared import dated, table

from depyf.fixing.outcome import Conditions, Outcome
from depyf.fixing.search import Search
from depyf.fixing.trial import DUMP, Runner

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
        self._process: subprocess.Popen[bytes] | None = None

    def outcome(self, request: tuple[object, ...]) -> Outcome:
        """What a trial comes to."""
        if self._process is None:
            self._process = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()
        result: Outcome = pickle.load(self._process.stdout)
        return result

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


SERVER = Server()
atexit.register(SERVER.close)


def load() -> None:
    """Import what each trial would otherwise import: half of its time."""
    import networkx  # noqa: F401  (torch does, to compile)
    import torch._inductor.compile_fx
    import torch.export

    import depyf.report
    from depyf.capture import session  # noqa: F401

    torch._dynamo.list_backends()
    depyf.decompile(load)


def serve() -> None:
    """Runs the trials that standard input asks for."""
    load()
    replies = os.fdopen(os.dup(1), "wb")
    with contextlib.suppress(EOFError):
        while True:
            program, limit, keep, texts, conditions = pickle.load(sys.stdin.buffer)
            pickle.dump(Keeping(program, limit=limit, keep=keep)(texts, conditions), replies)
            replies.flush()


class Keeping(Runner):
    """Runs a program. ``keep``: where the dump of the first run is copied to."""

    def __init__(self, program: str, limit: float, keep: pathlib.Path | None = None) -> None:
        super().__init__(program, (), limit)
        self.keep = keep

    @contextlib.contextmanager
    def folder(self) -> Iterator[str]:
        with super().folder() as folder:
            yield folder
            if self.keep is not None and not self.keep.exists():
                shutil.copytree(pathlib.Path(folder) / DUMP, self.keep, ignore_dangling_symlinks=True)


class ForkedRunner(Keeping):
    """The same in the server."""

    def __call__(self, texts: Mapping[str, str], conditions: Conditions | None = None) -> Outcome:
        return SERVER.outcome((self.program, self.limit, self.keep, dict(texts), conditions))


def search(case: Case, folder: pathlib.Path, runs: int = 10, keep: pathlib.Path | None = None) -> Search:
    path = folder / f"{case.name}.py"
    path.write_text(case.before, encoding="utf-8")
    runner = ForkedRunner(str(path), 60, keep / case.name if keep is not None else None)
    return Search(str(path), runner, runs).run()


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
            before, after = found.before, found.best.after
            if found.refused:
                print(f"{case.name}: {found.refused}\n{before.error}", flush=True)
            differing += bool(after.difference(before))
            for name, pair in totals.items():
                pair[0] += getattr(before.totals, name)
                pair[1] += getattr(after.totals, name)
            if case.rule == "limit":
                lasting[0] += before.totals.recompiles
                lasting[1] += after.totals.recompiles
            rows.append((case.name, case.rule, f"{before.totals.breaks} → {after.totals.breaks}",
                         f"{before.totals.skipped} → {after.totals.skipped}",
                         f"{before.totals.recompiles} → {after.totals.recompiles}",
                         ", ".join(advice.rule for advice in found.best.patch.taken) or "nothing", found.runs))
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

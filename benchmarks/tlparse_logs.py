"""Does a report of a log have what tlparse's report of it has? (``make tlparse-logs``)

    python benchmarks/tlparse_logs.py LOGS [--write FILE]

LOGS is ``tests/inputs`` of https://github.com/meta-pytorch/tlparse (0.4.3), or any folder of logs of ``TORCH_TRACE``.
tlparse has to be installed (``pip install tlparse==0.4.3``). Each log is read by both, by depyf with
``--internal-stages``. Every file that tlparse writes is a fact:

* of a graph: the dump has a stage with the same operations, in order;
* of generated code: a kernel with the same words;
* of guards, of a JSON or another text: each word and number of it is in the records of the run.

Files about tlparse itself (its index, the raw log, the trace for Perfetto) are no facts, and neither are disassembled
bytecode (a dump has its source, and with ``--log-bytecode`` the code), words that all files of a kind have, and places
in Python's library, in installed packages or in depyf with their source lines.
"missing" names the files whose fact is not there. A time counts as equal if it differs by less than a microsecond.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from _shared import dated, write_between

from depyf.model.graph_text import read_graph
from depyf.recorded_runs import logged
from depyf.records.model import Capture
from depyf.records.store import RecordsError, lines
from depyf.torch_text.wrapping import legal_graph

#: Files of tlparse's that are about its own report, or repeat the log.
NOT_FACTS = ("chromium_events", "collectives_parity", "raw", "compile_directory", "index")
#: Words of tlparse's own that not all pages of a kind have, and torch's names of fields.
LABELS = frozenset(
    "failures Inductor Code Gen Compliant Non Failure Failures Exception Reason Reasons Custom Ops RestartAnalysis "
    "Not availble for restarts yet only_config best_config num_configs User Stack Traceback Mutating object".split())
#: Of numbers that count as equal: they are times and estimates, in seconds or in another unit.
_PRECISION, _MICROSECOND = 1e-5, 1e-6
_NUMBER = re.compile(r"(?:_[a-z0-9]{20,})?_\d+(?=\.\w+$|_readable\.html$)")
#: (Stacks in pages have torch where it was not installed, too.)
_IN_LIBRARY = re.compile(
    r'(?m)^ *File "[^"\n]*/(?:lib/python3|depyf/)[^"\n]*", line .*\n(?!\s*File ")(?: .*\n)?(?: *[\^~]+\n)?'
    r"|<li>(?:[^<\n]*/)?(?:lib/python3|depyf/|torch/(?:_\w+|fx|utils|nn|export)/)[^\n]*?(?:</li>|$)"
    r"|<br>&nbsp;.*?</li>"
    r"|\(unknown\)")
_WORD = re.compile(r"[A-Za-z_]{3,}\w*|\d+\.\d+|\d{2,}")


def name_of(path: str) -> str:
    """Return the name of a file of tlparse's without its number: ``fx_graph_cache_miss.json``."""
    return _NUMBER.sub("", os.path.basename(path))


def facts(folder: str) -> Iterator[tuple[str, str]]:
    """Yield ``(name, text)`` of each file of tlparse's report, what is HTML as plain text."""
    for where, _, names in sorted(os.walk(folder)):
        if os.path.basename(where) == "payloads":
            continue
        for name in sorted(names):
            short = name_of(name)
            if short.partition(".")[0] in NOT_FACTS or short.endswith("_BYTECODE.txt"):
                continue
            with open(os.path.join(where, name), errors="replace") as file:
                text = _IN_LIBRARY.sub("", file.read())
            if name.endswith(".html"):
                text = re.sub(r"<(style|script|title|a)\b.*?</\1>|\(\d+\)", "", text, flags=re.S)
                text = html.unescape(re.sub(r"<[^>]+>", "" if "output_code" in name else " ", text))
            elif name.endswith(".json"):
                text = text.replace("\\n", " ")
            yield short, text


class Records:
    """The records of a run, in the forms in which facts are looked up."""

    def __init__(self, capture: Capture) -> None:
        """Take them of a capture; of an empty one for a log that is refused."""
        stages = [stage for graph in capture.graphs for stage in graph.stages]
        self.graphs = {operations(stage.text) for stage in stages}
        self.texts = {squeezed(stage.text) for stage in stages}
        self.kernels = [set(_WORD.findall(kernel.text)) for graph in capture.graphs for kernel in graph.kernels]
        text = re.sub(r"\\\\[nt\"]", " ", "".join(lines(capture)))
        self.words = set(_WORD.findall(text))
        self.numbers = sorted(float(each) for each in re.findall(r"\d+\.\d+(?:e[+-]?\d+)?", text))

    def has(self, name: str, text: str, labels: set[str]) -> bool:
        """Return whether a fact is there; ``labels`` are words of the page, and no facts."""
        if squeezed(text) in self.texts:
            return True
        if name.endswith(".txt") and (wanted := operations(text)):
            return wanted in self.graphs
        wanted_words = set(_WORD.findall(text))
        if name.startswith("inductor_output_code"):
            return any(kernel >= wanted_words for kernel in self.kernels)
        return all(map(self._has_word, wanted_words - labels - LABELS))

    def _has_word(self, word: str) -> bool:
        return word in self.words or word[0].isdigit() and any(
            self._has_number(float(word) * unit) for unit in (1, 1e-3, 1e-6, 1e-9))

    def _has_number(self, number: float) -> bool:
        off = max(number * _PRECISION, _MICROSECOND if number > 1e3 * _MICROSECOND else 0)
        at = bisect.bisect_left(self.numbers, number - off)
        return at < len(self.numbers) and self.numbers[at] <= number + off


def labels_of(found: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the words that every file of a kind has: tlparse's own text, or torch's names of fields."""
    files: dict[str, list[set[str]]] = collections.defaultdict(list)
    for name, text in found:
        files[name].append(set(_WORD.findall(text)))
    return {name: set.intersection(*each) for name, each in files.items()
            if len(each) > (1 if name.endswith((".html", ".json")) else 4)}


def operations(text: str) -> tuple[tuple[str, str], ...]:
    """Return the operations of a graph, with their names; empty for a text that is none."""
    return tuple((node.name, node.target) for node in read_graph(legal_graph(text)).nodes)


def squeezed(text: str) -> str:
    """Return a text with one space between words."""
    return " ".join(text.split())


def logs(folder: str) -> list[str]:
    """Return the logs below a folder."""
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names
                  if name.endswith((".log", "_log.txt", "_log_old.txt")))


def read(log: str) -> tuple[list[tuple[str, str]], Records]:
    """Return tlparse's facts of a log, and the records that depyf reads in it; empty ones where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        with open(log, "rb") as file:
            export = ["--export"] if b'{"exported_program"' in file.read() else []
        subprocess.run(["tlparse", *export, log, "-o", folder, "--overwrite", "--no-browser"], check=True,
                       capture_output=True)
        found = list(facts(folder))
    try:
        capture, = logged(log, internal_stages=True).values()
    except RecordsError as error:
        print(f"{log}: {error}", file=sys.stderr)
        return found, Records(Capture())  # (a page of tlparse's own words is no fact)
    return found, Records(capture)


def document(folder: str) -> str:
    """Return the table: a row for each log."""
    known = {log: read(log) for log in logs(folder)}
    labels = labels_of([fact for found, _ in known.values() for fact in found])
    rows, total, lost = [], 0, 0
    for log, (found, records) in known.items():
        missing = collections.Counter(
            name for name, text in found if not records.has(name, text, labels.get(name, set())))
        total, lost = total + len(found), lost + sum(missing.values())
        shown = ", ".join(f"{name} ({times} times)" if times > 1 else name for name, times in sorted(missing.items()))
        rows.append(f"| {os.path.relpath(log, folder)} | {len(found)} | {shown or 'none'} |")
    return "\n".join(["| log | facts of tlparse | missing |", "| --- | --- | --- |", *rows, "",
                      f"{total - lost} of {total} facts."])


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs")
    parser.add_argument("--write", metavar="FILE", type=pathlib.Path, help="a document with marks for the table")
    given = parser.parse_args()
    text = document(given.logs)
    print(text)
    if given.write:
        write_between(given.write, "measured", f"{dated()}\n\n{text}\n")


if __name__ == "__main__":
    main()

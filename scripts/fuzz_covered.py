"""Breaks ``.pyc`` files of any version, guided by what of the decompiler each one reaches (``make fuzz-covered``).

    PYTHONPATH=src python scripts/fuzz_covered.py CORPUS [--files FOLDER ...] [-- -max_total_time=600]

libFuzzer, by way of Atheris, keeps in ``CORPUS`` what reached a branch that nothing before did, and breaks that again:
its bytes, or one field of one of its code objects as ``fuzz_pyc.py`` does. An empty corpus begins with small ``.pyc``
files of the tests, and of the folders. A finding (whatever ``fuzz_pyc.py`` calls one) ends the run; libFuzzer writes
the file beside the corpus as ``crash-...``, and the same command with its path instead of the corpus runs it again.
Options behind ``--`` are libFuzzer's.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["depyf"]):
    import fuzz_pyc

    from depyf.bytecode.errors import Unreadable
    from depyf.bytecode.pyc import load_pyc

    fuzz_pyc.warm_up()

from pyc_writer import CannotWriteError, written

from depyf.bytecode.code import Code

TESTED = Path(__file__).parent.parent / "tests" / "foreign"
#: Of a file to begin with, in bytes: what is small runs often.
LARGEST = 4000
#: Seconds and megabytes that one file may take.
LIMITS = ("-timeout=20", "-rss_limit_mb=3000")


def replaced(code: Code, number: int, chance: random.Random) -> tuple[Code, int]:
    """Return a code object with the ``number``-th of those in it broken, and how many are left to pass by."""
    if number == 0:
        return dataclasses.replace(code, **fuzz_pyc.broken_fields(code, chance), origin=None), -1
    number -= 1
    consts = list(code.consts)
    for at, each in enumerate(consts):
        if isinstance(each, Code) and number >= 0:
            consts[at], number = replaced(each, number, chance)
    return dataclasses.replace(code, consts=tuple(consts), origin=None), number


def broken(data: bytes, most: int, seed: int) -> bytes:
    """Return a file broken once more (libFuzzer's custom mutator)."""
    chance = random.Random(seed)
    if chance.randrange(4):
        try:
            code = load_pyc(data, "fuzz.pyc")
            result = written(replaced(code, chance.randrange(sum(1 for _ in fuzz_pyc.within(code))), chance)[0])
        except (Unreadable, CannotWriteError, RecursionError):
            pass
        else:
            return result[:most]
    if chance.randrange(2) and len(data) > 18:
        return fuzz_pyc.break_bytes(data, chance)[:most]
    return bytes(data[:16]) + bytes(atheris.Mutate(data[16:], max(1, most - 16)))


def begin(corpus: Path, folders: list[str]) -> None:
    """Put small files of the folders into an empty corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    if any(corpus.iterdir()):
        return
    for folder in [str(TESTED), *folders]:
        small = [path for path in fuzz_pyc.files(folder, 100_000) if path.stat().st_size < LARGEST]
        for number, path in enumerate(small[:150]):
            (corpus / f"{path.parent.parent.name}-{number}-{path.stem}").write_bytes(path.read_bytes())


def main() -> None:
    """Fuzz until a finding or until libFuzzer's options say that it is enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder, or a file to run once")
    parser.add_argument("--files", nargs="*", default=[], metavar="FOLDER",
                        help="what an empty corpus begins with, too")
    words, _, options = " ".join(sys.argv[1:]).partition(" -- ")
    given = parser.parse_args(words.split())
    if not given.corpus.is_file():
        begin(given.corpus, given.files)
    warnings.simplefilter("ignore")
    guard = fuzz_pyc.Guard()

    def run(data: bytes) -> None:
        fuzz_pyc.outcome(data, guard)

    prefix = () if given.corpus.is_file() else (f"-artifact_prefix={given.corpus.parent}/",)
    atheris.Setup([sys.argv[0], *LIMITS, *prefix, *options.split(), str(given.corpus)], run, custom_mutator=broken)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

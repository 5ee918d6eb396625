"""The same program leaves the same dump: in a second process, and where torch's caches are warm.

    python benchmarks/same_artefacts.py [--backend inductor] [--only NAME ...] [--write FILE]

Each program of ``PROGRAMS`` (names of tests/zoo) runs in three processes: with empty caches, again with what the first
left in them, and with empty caches in another folder. All three dumps have to hold the same files with the same
contents, but for what is another thing in each run (``normal``): torch's unique suffixes, object ids, hashes, paths of
caches, times.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

from depyf import page

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Some of each kind of thing that a dump shows: breaks, recompiles, dynamic shapes, gradients, modules, state.
PROGRAMS = (
    "print_break", "several_breaks", "data_dependent_if", "nested_graph_breaks_on", "break_in_arguments",
    "automatic_dynamic", "mark_dynamic", "symbolic_arithmetic", "backward_through_break", "custom_function",
    "training_steps", "module_containers", "buffers", "closure", "global_write", "attributes_across_break",
    "type_recompiles", "int_specialisation", "recompile_limit", "context_class")

_RUN = """
import sys, random, warnings
sys.path[:0] = [{zoo!r}]
import torch, numpy
import depyf
from programs import PROGRAMS, Compiled
warnings.simplefilter("ignore")
for seed in (torch.manual_seed, numpy.random.seed, random.seed):
    seed(0)
with depyf.prepare_debug(sys.argv[1], files="now"):
    try:
        PROGRAMS[{name!r}](Compiled({backend!r}))
    except Exception as error:
        print(type(error).__name__)
"""

#: What differs from run to run, and stays what it is.
_NORMAL = (
    (re.compile(r"[0-9a-f]{8}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{12}"), "<unique>"),
    (re.compile(r"\bc[a-z2-7]{40,}\b"), "<hash>"),
    (re.compile(r"/tmp/[^\s'\",)\\]*"), "<temporary>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b"), "<time>"),
)
#: Where objects lie, and how often dictionaries changed: no person should have to read these.
_PLACES = (
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"(dict_version\([^=]*\) == )\d+"), r"\1<version>"),
    (re.compile(r"(?<![\w.])\d{9,}(?!\w)|(?<=_)\d{9,}(?=_)"), "<id>"),
)
#: Lines of the index; the last one is a digest of the records, with what was measured.
_COSTS = ("Compile time ", "Slowest: ", "Torch's caches: ", "Bypassed because: ", "<!-- depyf ")
#: The places where to begin, which are in the order of their seconds.
_BEGIN = re.compile(r"^## Where to begin\n.*?^(?=## )", re.M | re.S)
_COUNTED = ("start", "seconds", "phases", "timeline", "caches", "microseconds", "guard_microseconds", "date", "command",
            "first")


def without_costs(value: Any) -> Any:
    """Data of the records or of the page without what was measured."""
    if isinstance(value, dict):
        return {key: without_costs(each) for key, each in value.items() if key not in _COUNTED}
    return [without_costs(each) for each in value] if isinstance(value, list) else value


def normal(name: str, text: str, strict: bool = False) -> str:
    """The text of a file without what differs from run to run; ``strict``: where objects lie is no excuse, but in the
    records, which hold torch's own guards."""
    if name == "records.jsonl":
        text = "\n".join(json.dumps(without_costs(json.loads(line))) for line in text.splitlines())
    if name == "index.html":
        text = json.dumps(without_costs(page.unpacked(text)), indent=0)
    if name == "index.md":  # (what it cost: times, hits and misses, the order of the slowest)
        text = "\n".join(line for line in _BEGIN.sub("", text).splitlines() if not line.startswith(_COSTS))
    for pattern, sign in _NORMAL if strict and name != "records.jsonl" else _NORMAL + _PLACES:
        text = pattern.sub(sign, text)
    return text


def contents(directory: pathlib.Path, strict: bool = False) -> dict[str, str]:
    return {path.name: normal(path.name, path.read_text(encoding="utf-8"), strict)
            for path in sorted(directory.iterdir()) if path.suffix in (".py", ".md", ".txt", ".jsonl", ".html")}


def run(name: str, backend: str, target: pathlib.Path, cache: pathlib.Path) -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)
    code = _RUN.format(zoo=str(ROOT / "tests" / "zoo"), name=name, backend=backend)
    done = subprocess.run([sys.executable, "-c", code, str(target)], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not target.is_dir():
        raise SystemExit(f"{name} left no dump:\n{done.stdout[-2000:]}")
    return contents(target)


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    result = [f"only in one: {name}" for name in sorted(first.keys() ^ second.keys())]
    for name in sorted(first.keys() & second.keys()):
        if first[name] != second[name]:
            lines = difflib.unified_diff(first[name].splitlines(), second[name].splitlines(), lineterm="", n=0)
            result.append(f"{name}: " + " | ".join(line[:300] for line in list(lines)[2:6]))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--only", nargs="*", default=PROGRAMS)
    parser.add_argument("--write", metavar="FILE", help="add the result to this file, as a line of JSON")
    chosen = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests" / "zoo")]
    from programs import PROGRAMS as known

    unknown = [name for name in chosen.only if name not in known]
    if unknown:
        raise SystemExit(f"tests/zoo has no program called {', '.join(unknown)}")
    bad, files = [], 0
    for name in chosen.only:
        with tempfile.TemporaryDirectory(prefix="depyf_same_") as folder:
            folder_path = pathlib.Path(folder)
            cold = run(name, chosen.backend, folder_path / "cold", folder_path / "cache")
            warm = run(name, chosen.backend, folder_path / "warm", folder_path / "cache")
            again = run(name, chosen.backend, folder_path / "again", folder_path / "other_cache")
        files += len(cold)
        for kind, other in (("warm against cold", warm), ("second against first", again)):
            different = differences(cold, other)
            if different:
                bad.append(f"{name}, {kind}")
            for text in different:
                print(f"DIFFERS {name}, {kind}: {text}")
        print(f"{name}: {len(cold)} files", flush=True)
    print(f"{len(chosen.only)} programs, {files} files, backend {chosen.backend}: {len(bad)} comparisons differ")
    if chosen.write:
        with open(chosen.write, "a", encoding="utf-8") as out:
            out.write(json.dumps({"date": str(datetime.date.today()), "backend": chosen.backend,
                                  "programs": len(chosen.only), "files": files, "differ": bad}) + "\n")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()

"""Two identical runs, each in a process of its own, have no difference (``make identical``).

    python benchmarks/identical_runs.py [--groups GROUP ...] [--only NAME ...] [--program FILE ...] [--keep DIR]

What runs: each model of ``architectures.py`` on ``eager`` at two input lengths, each program of tests/zoo on
``aot_eager``, generation with both kinds of cache, and the programs that are given, under ``depyf run``. The two
processes hash in different orders, and their objects lie at different addresses. Counted are

* runs of which ``depyf diff --full`` tells a difference (exit status 1), with what it tells;
* files of a dump that differ in anything but times, hashes and torch's unique suffixes (``normal`` of
  ``same_artefacts.py``, strict).

The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable

from same_artefacts import ROOT, contents, differences

Program = Callable[[], object]
GROUPS = ("models", "zoo", "generation")


def models() -> dict[str, Program]:
    import torch
    from architectures import ARCHITECTURES, LENGTHS, Architecture

    def run(architecture: Architecture) -> None:
        model = torch.compile(architecture.make().eval(), backend="eager")
        with torch.no_grad():
            for length in LENGTHS:
                model(**architecture.inputs(length))

    return {name: lambda each=each: run(each) for name, each in ARCHITECTURES.items()}  # type: ignore[misc]


def zoo() -> dict[str, Program]:
    sys.path[:0] = [str(ROOT / "tests" / "zoo")]
    from programs import PROGRAMS, Compiled

    return {name: lambda each=each: each(Compiled("aot_eager")) for name, each in PROGRAMS.items()}


def generation() -> dict[str, Program]:
    import torch
    import transformers
    from architectures import GROUPED, words

    def run(cache: str, whole: bool) -> None:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)).eval()
        if whole:
            model.forward = torch.compile(model.forward, backend="eager")
            model.generate(words(8), max_new_tokens=5, do_sample=False, cache_implementation=cache)
            return
        compiled, ids, past = torch.compile(model, backend="eager"), words(8), None
        with torch.no_grad():
            for _ in range(4):
                out = compiled(input_ids=ids, past_key_values=past, use_cache=True)
                past, ids = out.past_key_values, out.logits[:, -1:].argmax(-1)

    return {"generate, static cache": lambda: run("static", True),
            "generate, dynamic cache": lambda: run("dynamic", True),
            "own loop, dynamic cache": lambda: run("dynamic", False)}


def work(group: str, only: list[str], folder: pathlib.Path) -> None:
    """Runs the programs of a group, each in a dump of its own."""
    import numpy
    import torch

    import depyf

    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    for name, program in globals()[group]().items():
        if only and name not in only:
            continue
        torch._dynamo.reset()
        for seed in (torch.manual_seed, numpy.random.seed, random.seed):
            seed(0)
        with depyf.prepare_debug(str(folder / name), files="now"):
            try:
                program()
            except Exception as error:  # (some programs of the zoo are there to raise)
                print(f"{name}: {type(error).__name__}", flush=True)


def started(command: list[str], **environment: str) -> None:
    done = subprocess.run([sys.executable, *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={
        **os.environ, "PYTHONPATH": str(ROOT / "src"), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")


def difference_of(first: pathlib.Path, second: pathlib.Path) -> str:
    """What ``depyf diff`` says of the two, if it says anything."""
    from depyf import cli

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        status = cli.main(["diff", "--full", str(first), str(second)])
    return text.getvalue() if status else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="*", default=[*GROUPS, "programs"])
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="of models and programs")
    parser.add_argument("--program", nargs="*", default=[str(ROOT / "examples" / "generate.py")], metavar="FILE")
    parser.add_argument("--keep", metavar="DIR", help="where the dumps are left")
    parser.add_argument("--work", nargs=2, metavar=("GROUP", "DIR"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        return work(chosen.work[0], chosen.only, pathlib.Path(chosen.work[1]))
    bad: list[str] = []
    with tempfile.TemporaryDirectory(prefix="depyf_identical_") as temporary:
        top = pathlib.Path(chosen.keep or temporary).resolve()
        for group in chosen.groups:
            runs = [top / group / which for which in ("first", "second")]
            for run in runs:
                run.mkdir(parents=True, exist_ok=True)
                if group == "programs":
                    for program in chosen.program:
                        started(["-m", "depyf", "run", "-o", str(run / pathlib.Path(program).stem), program])
                else:
                    only = ["--only", *chosen.only] if chosen.only else []
                    started([__file__, "--work", group, str(run), *only])
            names = sorted(path.name for path in runs[0].iterdir())
            differ = files = changed = 0
            for name in names:
                first, second = (run / name for run in runs)
                text = difference_of(first, second)
                if text:
                    differ += 1
                    bad.append(f"{group}, {name}: `depyf diff` tells a difference")
                    print(f"DIFFERS {group}, {name}:\n{text[:4000]}", flush=True)
                texts = contents(first, True), contents(second, True)
                files += len(texts[0])
                for text in differences(*texts):
                    changed += 1
                    bad.append(f"{group}, {name}: {text}")
                    print(f"FILE {group}, {name}: {text}", flush=True)
            print(f"{group}: {len(names)} runs twice, {differ} differ; {files} files, {changed} differ", flush=True)
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()

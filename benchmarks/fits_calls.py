"""``depyf.fits`` and ``depyf fits`` against torch on generated calls (``make fits``).

    python benchmarks/fits_calls.py [--calls N] [--seed N] [--only CASE ...]

Each case is a function or module that is compiled with a few calls. Then calls are drawn from pools of arguments,
attributes, globals and settings of torch. What torch does is seen in a fork: under the stance ``fail_on_recompile`` the
call is made, and the first code object that runs is that of a version, or torch raises. `live` is asked before; `dump`
is the record of the run read without torch, given what a person can write, the rest as it was (``--same``).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import inspect
import json
import os
import random
import sys
import tempfile
import traceback
import warnings
from types import CodeType
from typing import Any, NamedTuple

import fits_cases
import torch
from fits_cases import CASES, SETTINGS, Case
from torch._dynamo.eval_frame import skip_code

import depyf
from depyf.capture.torch_private import cache_entries
from depyf.capture.user_function import called_frame
from depyf.finishing.frames import read_records
from depyf.fitting.given import Opaque, described_call, known_names, known_state
from depyf.fitting.oracle import Fit, fit
from depyf.fitting.running import Described, state
from depyf.records.model import Frame


class Call(NamedTuple):
    """A call: positional arguments, keyword arguments, what is changed before it, a setting of torch."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    changes: dict[str, Any]
    setting: str


def drawn(case: Case, compiled: Any, chance: random.Random, plain: bool, near: list[dict[str, Any]]) -> Call:
    """Return a call: arguments are left out where they have a default, or are named.

    Args:
        near: arguments of calls that were made: each other call is one of them with an argument changed.
    """
    parameters = inspect.signature(getattr(compiled, "forward", compiled)).parameters
    needed = {name for name, each in parameters.items() if each.default is each.empty}
    chosen = {name: chance.choice(pool) for name, pool in case.pools.items()}
    if plain:
        near.append(chosen)
    elif chance.random() < 0.6:
        name = chance.choice(list(chosen))
        chosen = {**chance.choice(near), **({name: chosen[name]} if chance.random() < 0.7 else {})}
    names = list(chosen)
    positional = chance.randint(1, min(2, len(names)))
    kwargs = {name: chosen[name] for name in names[positional:] if name in needed or chance.random() < 0.7}
    changes = {} if plain else {name: chance.choice(pool) for name, pool in case.changes.items()
                                if chance.random() < 0.3}
    setting = "" if plain or chance.random() < 0.8 else chance.choice(list(SETTINGS))
    return Call(tuple(chosen[name] for name in names[:positional]), kwargs, changes, setting)


def change(compiled: Any, changes: dict[str, Any]) -> None:
    """Set attributes of the module, variables that the function captured, or globals of its file."""
    function = getattr(compiled, "_torchdynamo_orig_callable", None)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ())) if function is not None else {}
    for name, value in changes.items():
        if name in cells:
            cells[name].cell_contents = value
        elif name.isidentifier():
            setattr(fits_cases, name, value)
        else:
            exec(f"{name} = value", {"self": compiled._orig_mod, "value": value})


def served_by(compiled: Any, call: Call, code: CodeType) -> str:
    """Make the call where nothing may be compiled; return the version that runs, or ``none``."""
    versions = {id(entry.code): entry.name.strip("[]") for entry in cache_entries.entries(code)}
    ran: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and not ran and (id(frame.f_code) in versions or frame.f_code is code):
            ran.append(versions.get(id(frame.f_code), "none"))

    skip_code(profile.__code__)
    with torch.compiler.set_stance("fail_on_recompile"), contextlib.suppress(Exception):
        sys.setprofile(profile)
        compiled(*call.args, **call.kwargs)
    sys.setprofile(None)
    return ran[0] if ran else "none"


def said(answer: Fit) -> str:
    """Return what an answer says, as torch's is written."""
    return answer.version or {True: "served", False: "none", None: "unknown"}[answer.served]


def of_dump(compiled: Any, call: Call, frame: Frame) -> Fit:
    """Ask the dump's reader, which is given what a person can write of the call and of what is changed."""
    called = called_frame(compiled, call.args, call.kwargs)
    described = Described(called.values, {})
    count = called.code.co_argcount + called.code.co_kwonlyargcount + bool(called.code.co_flags & 4) + bool(
        called.code.co_flags & 8)
    given: dict[str, Any] = {name: described.describe(called.values[name]) for name in
                             called.code.co_varnames[:count] if name != "self"}
    given |= {f"{name}.{part}": described.describe(value) for name in list(given) if type(given[name]) is Opaque
              for part, value in getattr(called.values[name], "__dict__", {}).items()}
    given |= {name: described.describe(value) for name, value in call.changes.items()}
    known: dict[str, Any] = {}
    for name, value in given.items():
        with contextlib.suppress(ValueError):  # (what no version asks for)
            known |= known_names(frame, {name: value})
    return fit(frame, described_call(frame, known, known_state(frame, state())), same=True)


def tried(case: Case, compiled: Any, call: Call, frame: Frame | None) -> dict[str, str]:
    """Return what both say of a call and what torch does, found in a fork."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        result = {}
        try:
            change(compiled, call.changes)
            code = called_frame(compiled, call.args, call.kwargs).code
            with SETTINGS[call.setting]():
                result["live"] = said(depyf.fits(compiled, *call.args, **call.kwargs))
                if frame is not None:
                    result["dump"] = said(of_dump(compiled, call, frame))
                result["torch"] = served_by(compiled, call, code)
        except BaseException:
            result["failed"] = traceback.format_exc()
        os.write(write, json.dumps(result).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        result = json.loads(pipe.read() or '{"failed": "the fork died"}')
    os.waitpid(child, 0)
    return result


def verdict(answer: str, truth: str) -> str:
    """Return ``agree``, ``unknown`` or ``wrong``."""
    if answer == "unknown":
        return answer
    return "agree" if answer == truth or answer == "served" != truth != "none" else "wrong"


def measure(name: str, calls: int, seed: str) -> collections.Counter[tuple[str, str]]:
    """Try calls of a case and return how often each reader agreed; what is wrong is printed."""
    case, chance, near = CASES[name], random.Random(seed), list[dict[str, Any]]()
    torch._dynamo.reset()
    compiled = torch.compile(case.make(), backend="eager", **case.options)
    with tempfile.TemporaryDirectory(prefix="depyf_fits_") as folder:
        with depyf.prepare_debug(folder, page=False) as on:
            for _ in range(case.warm):
                call = drawn(case, compiled, chance, plain=True, near=near)
                with contextlib.suppress(Exception):
                    compiled(*call.args, **call.kwargs)
        functions = read_records(on.path).functions
    frame = functions[0].frames[0] if functions else None
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for number in range(calls):
        call = drawn(case, compiled, chance, plain=False, near=near)
        result = tried(case, compiled, call, frame)
        if "failed" in result:
            counts["failed", "calls"] += 1
            print("FAILED", name, number, result["failed"], file=sys.stderr)
            continue
        counts["torch", "none" if result["torch"] == "none" else "a version"] += 1
        for reader in ("live", "dump"):
            found = verdict(result.get(reader, "unknown"), result["torch"])
            counts[reader, found] += 1
            if found == "wrong":
                print(f"WRONG {name} {number} {reader} says {result[reader]}, torch {result['torch']}: {call}"
                      .replace("\n", ""))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", nargs="*", default=list(CASES), metavar="CASE")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    total: collections.Counter[tuple[str, str]] = collections.Counter()
    for index, name in enumerate(chosen.only):
        count = chosen.calls // len(chosen.only) + (index < chosen.calls % len(chosen.only))
        counts = measure(name, count, f"{chosen.seed} {name}")
        total += counts
        print(f"{name}: {dict(counts)}", file=sys.stderr, flush=True)
    for reader in ("live", "dump"):
        print(f"{reader}: calls {sum(number for (each, _), number in total.items() if each == reader)}, " + ", ".join(
            f"{what} {total[reader, what]}" for what in ("agree", "wrong", "unknown")))
    print(f"torch: a version {total['torch', 'a version']}, none {total['torch', 'none']}; "
          f"calls that could not be tried: {total['failed', 'calls']}")
    raise SystemExit(bool(total["live", "wrong"] or total["dump", "wrong"]))


if __name__ == "__main__":
    main()

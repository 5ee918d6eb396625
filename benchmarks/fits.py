"""The guard oracle against what torch then does (``make fits``).

    python benchmarks/fits.py [--groups zoo models] [--only NAME ...] [--every N] [--write docs/measured/fits.md]

Each call that a program of tests/zoo or a model makes is also made with changed arguments: other sizes, dtypes,
layouts, numbers, flags, attributes of the module, with and without gradients. Before each call ``depyf.fits`` says
which version will serve it; then the call is made, and the code object that runs tells which did (a profile function
sees it start). Afterwards the dump of the run, read without torch, is asked about the same calls, given the arguments.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import functools
import io
import logging
import pathlib
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from _shared import dated, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Of each call as many changed ones are tried; of each compiled function so many calls.
MOST_CHANGES, MOST_CALLS = 6, 2
MODELS = ("llama", "gpt2", "bert", "t5", "mixtral", "mamba", "vit", "whisper", "bart", "qwen2")


class Asked(NamedTuple):
    """A call that the oracle was asked about: what it said, and what torch did."""

    program: str
    change: str
    said: str
    did: str


# --- changed arguments --------------------------------------------------------------------------------------
def changed_tensors(value: Any) -> Iterator[tuple[str, Any]]:
    import torch

    def like(shape: tuple[int, ...], dtype: Any = None) -> Any:
        made = torch.ones(shape, dtype=dtype or value.dtype)
        return made.requires_grad_(value.requires_grad) if made.is_floating_point() else made

    shape = tuple(value.shape)
    for index, size in enumerate(shape[:2]):
        for other in (size + 1, 1, 2 * size, 0):
            if other != size:
                yield f"size {index}", like((*shape[:index], other, *shape[index + 1:]))
    yield "rank", like((*shape, 2))
    other = torch.float64 if value.dtype != torch.float64 else torch.float32
    yield "dtype", like(shape, other)
    if len(shape) == 2:
        yield "layout", like(shape[::-1]).detach().t()
    if value.is_floating_point():
        yield "requires_grad", torch.ones(shape, dtype=value.dtype, requires_grad=not value.requires_grad)


def changed_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields what a value is changed to, each with the kind of the change."""
    import torch

    if type(value) is torch.Tensor and not value.is_quantized:
        yield from changed_tensors(value)
    elif type(value) is bool:
        yield "flag", not value
    elif type(value) is int:
        yield from (("number", value + 1), ("number", 1), ("type", float(value)))
    elif type(value) is float:
        yield from (("number", value + 1.5), ("type", int(value) if value == value and abs(value) < 1e9 else 3))
    elif type(value) is str:
        yield "text", value + "x"
    elif value is None:
        yield "none", 3
    elif type(value) in (list, tuple) and value:
        yield "length", value[:-1]
        yield "length", type(value)([*value, value[-1]])
        for change, first in changed_values(value[0]):
            yield change, type(value)([first, *value[1:]])
    elif type(value) is dict and value:
        key = next(iter(value))
        yield "keys", {other: item for other, item in value.items() if other != key}
        for change, first in changed_values(value[key]):
            yield change, {**value, key: first}


def changed_calls(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for index, value in enumerate(args):
        for change, other in changed_values(value):
            yield change, (*args[:index], other, *args[index + 1:]), kwargs
    for name, value in kwargs.items():
        for change, other in changed_values(value):
            yield change, args, {**kwargs, name: other}


def spread(items: list[Any], most: int) -> list[Any]:
    """Some of the items, of all kinds of change."""
    by_kind: dict[str, list[Any]] = {}
    for item in items:
        by_kind.setdefault(item[0], []).append(item)
    chosen: list[Any] = []
    while len(chosen) < most and any(by_kind.values()):
        for kind in by_kind.values():
            if kind and len(chosen) < most:
                chosen.append(kind.pop(0))
    return chosen


def changed_attributes(compiled: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields what is set on the module that was compiled; calling it takes it back."""
    module = getattr(compiled, "_orig_mod", None)
    if module is None:
        return

    def setter(name: str, value: Any) -> Callable[[], Any]:
        old = getattr(module, name)
        setattr(module, name, value)
        return lambda: setattr(module, name, old)

    yield "training", lambda: setter("training", not module.training)
    for name, value in list(vars(module).items()):
        if type(value) in (int, float) and not name.startswith("_"):
            yield "attribute", functools.partial(setter, name, value + 1)


# --- what torch does ----------------------------------------------------------------------------------------
class Watched:
    """Makes calls, asks the oracle before each, and sees which code ran."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.probes: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = []
        self.calls: dict[int, int] = collections.Counter()
        self.program = ""
        self._inside = False

    def call(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any], change: str = "as it is") -> Any:
        """Makes a call, and notes what the oracle said and what torch did."""
        import depyf
        from depyf.capture.user_function import called_frame

        try:
            frame = called_frame(compiled, args, kwargs)
            before = self._codes(frame.code)
            answer = depyf.fits(compiled, *args, **kwargs)
        except TypeError:  # (not the parameters of the function)
            return self._plain(compiled, args, kwargs)
        said = answer.version or {True: "some", False: "none", None: "undecided"}[answer.served]
        ran: list[Any] = []
        original = frame.code

        def profile(running: Any, event: str, argument: Any) -> None:
            code = running.f_code
            if event == "call" and not ran and (code is original or code.co_name == original.co_name
                                                and code.co_filename == original.co_filename
                                                and code.co_firstlineno == original.co_firstlineno):
                ran.append(code)

        skip_code(profile.__code__)
        sys.setprofile(profile)
        try:
            return self._plain(compiled, args, kwargs)
        finally:
            sys.setprofile(None)
            if ran and answer.versions:
                did = "none" if ran[0] is original else before.get(id(ran[0]), "none")
                self.asked.append(Asked(self.program, change, said, did))

    def _plain(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return compiled(*args, **kwargs)

    def _codes(self, code: Any) -> dict[int, str]:
        from depyf.capture.torch_private import cache_entries

        self._alive = cache_entries.entries(code)
        return {id(entry.code): entry.name.strip("[]") for entry in self._alive}

    def called(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the program's own, and changed ones behind it."""
        if self._inside:
            return compiled(*args, **kwargs)
        self._inside = True
        try:
            kept = None
            with contextlib.suppress(Exception):
                kept = copy.deepcopy((args, kwargs))
            result = self.call(compiled, args, kwargs)
            if kept is not None and self.calls[id(compiled)] < MOST_CALLS:
                self.calls[id(compiled)] += 1
                self.vary(compiled, *kept)
            return result
        finally:
            self._inside = False

    def vary(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Makes changed calls. What they do to random numbers and to standard output is taken back."""
        import torch

        states = torch.get_rng_state(), random.getstate()
        variants = spread(list(changed_calls(args, kwargs)), MOST_CHANGES)
        with contextlib.redirect_stdout(io.StringIO()):
            for change, new_args, new_kwargs in [("again", args, kwargs), *variants]:
                self._tried(compiled, new_args, new_kwargs, change)
            for change, make in changed_attributes(compiled):
                undo = make()
                self._tried(compiled, args, kwargs, change)
                undo()
            with torch.set_grad_enabled(not torch.is_grad_enabled()):
                self._tried(compiled, args, kwargs, "grad mode")
        torch.set_rng_state(states[0])
        random.setstate(states[1])

    def _tried(self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any], change: str) -> None:
        with contextlib.suppress(Exception):
            mine = copy.deepcopy((args, kwargs))
            self.probes.append((compiled, *copy.deepcopy(mine), change))
            with contextlib.suppress(Exception):
                self.call(compiled, *mine, change=change)


def skip_code(code: Any) -> None:
    from torch._dynamo.eval_frame import skip_code as skip

    skip(code)


# --- the dump -------------------------------------------------------------------------------------------------
def asked_of_dump(watched: Watched, path: str) -> list[tuple[Asked, Asked]]:
    """What a dump says of the calls, and what torch says now: twice, the second time what is not given is the same."""
    import depyf
    from depyf.capture.user_function import called_frame
    from depyf.finishing.frames import read_records
    from depyf.fitting.given import Opaque, described_call
    from depyf.fitting.oracle import fit
    from depyf.fitting.running import Described
    from depyf.records.store import RecordsError

    try:
        capture = read_records(path)
    except RecordsError:
        return []
    frames = {f"{entry.compile_id.frame}/{entry.compile_id.recompile}": frame for function in capture.functions
              for frame in function.frames for entry in frame.entries if not entry.compile_id.resets}

    def writable(value: Any) -> bool:
        inner = value if isinstance(value, list | tuple | set) else value.values() if isinstance(value, dict) else ()
        return not isinstance(value, Opaque) and all(map(writable, inner))

    result = []
    for compiled, args, kwargs, change in watched.probes:
        try:
            truth = depyf.fits(compiled, *args, **kwargs)
            called = called_frame(compiled, args, kwargs)
        except TypeError:
            continue
        if not truth.versions or truth.versions[0].name not in frames:
            continue
        frame = frames[truth.versions[0].name]
        described = Described(called.values, {})
        values = {name: described.describe(value) for name, value in called.values.items()
                  if name in called.code.co_varnames[:called.code.co_argcount + called.code.co_kwonlyargcount + 2]}
        given = {name: value for name, value in values.items() if writable(value)}
        if truth.served is None:
            continue  # (nothing to hold the dump's answer against)
        did = truth.version or "none"
        pair = []
        for same in (False, True):
            import torch

            state = {"grad_mode": torch.is_grad_enabled()} if same else {}
            answer = fit(frame, described_call(frame, given, state), same)
            said = answer.version or ("none" if answer.served is False else
                                      "served" if answer.served else "undecided")
            pair.append(Asked(watched.program, change, said, did))
        result.append((pair[0], pair[1]))
    return result


# --- programs -------------------------------------------------------------------------------------------------
def zoo(watched: Watched) -> dict[str, Callable[[], object]]:
    sys.path[:0] = [str(ROOT / "tests" / "zoo")]
    import torch
    from programs import PROGRAMS

    class Compiled:
        backend = "eager"

        def __call__(self, function: Any = None, **options: Any) -> Any:
            if function is None:
                return functools.partial(self, **options)
            return observed(watched, torch.compile(function, backend="eager", **options))

    return {name: functools.partial(each, Compiled()) for name, each in PROGRAMS.items()}


def observed(watched: Watched, compiled: Any) -> Any:
    """What torch.compile returned, with its calls watched."""
    import torch

    if isinstance(compiled, torch.nn.Module):
        kind = type(compiled)

        class Observed(kind):  # type: ignore[valid-type, misc]
            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                if watched._inside:
                    return super().__call__(*args, **kwargs)
                return watched.called(self, args, kwargs)

        compiled.__class__ = Observed
        return compiled
    if isinstance(compiled, type):
        return compiled

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        return watched.called(compiled, args, kwargs)

    return call


def models(watched: Watched) -> dict[str, Callable[[], object]]:
    import torch
    from architectures import ARCHITECTURES, LENGTHS

    def run(name: str) -> None:
        compiled = observed(watched, torch.compile(ARCHITECTURES[name].make().eval(), backend="eager"))
        with torch.no_grad():
            for length in LENGTHS:
                compiled(**ARCHITECTURES[name].inputs(length))

    return {name: functools.partial(run, name) for name in MODELS if name in ARCHITECTURES}


class Measured(NamedTuple):
    """What a group of programs gave."""

    programs: int
    live: list[Asked]
    of_dump: list[tuple[Asked, Asked]]
    seconds: float


def measure(group: str, only: list[str], every: int) -> Measured:
    import numpy
    import torch

    import depyf

    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    of_dump: list[tuple[Asked, Asked]] = []
    watched, count, begin = Watched(), 0, time.perf_counter()
    programs = {"zoo": zoo, "models": models}[group](watched)
    for name, program in list(programs.items())[::every]:
        if only and name not in only:
            continue
        torch._dynamo.reset()
        for seed in (torch.manual_seed, numpy.random.seed, random.seed):
            seed(0)
        watched.program, watched.probes = name, []
        count += 1
        with tempfile.TemporaryDirectory(prefix="depyf_fits_") as folder:
            with depyf.prepare_debug(folder, page=False) as on, contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.suppress(Exception):
                program()
            of_dump += asked_of_dump(watched, on.path)
        print(f"{name}: {len(watched.asked)} calls so far, {time.perf_counter() - begin:.0f} s", file=sys.stderr,
              flush=True)
    return Measured(count, watched.asked, of_dump, time.perf_counter() - begin)


def wrong(asked: Asked) -> bool:
    return asked.said not in (asked.did, "undecided") and not (asked.said == "served" and asked.did != "none")


def shares(rows: list[Asked]) -> list[object]:
    decided = [row for row in rows if row.said != "undecided"]
    bad = sum(map(wrong, rows))
    return [len(rows), len(decided), f"{100 * (1 - len(decided) / max(len(rows), 1)):.1f} %", bad,
            f"{100 * (1 - bad / max(len(decided), 1)):.2f} %"]


NAMES = {"zoo": "programs of tests/zoo", "models": "models"}


def document(measured: dict[str, Measured]) -> str:
    """The text of docs/measured/fits.md."""
    head = ["", "calls", "decided", "undecided", "wrong", "agreement where decided"]
    live = [row for each in measured.values() for row in each.live]
    served = sum(row.did != "none" for row in live)
    by_change = collections.Counter(row.change for row in live)
    seconds = sum(each.seconds for each in measured.values())

    def rows(said: Callable[[Measured], list[Asked]]) -> list[list[object]]:
        return [[f"{each.programs} {NAMES[group]}", *shares(said(each))] for group, each in measured.items()]

    return f"""# The guard oracle against torch

`python benchmarks/fits.py {' '.join(sys.argv[1:])}`
({dated()}; backend `eager`, two cores that others used, too; {seconds:.0f} s). Each call of
the programs is made as it is and with changed arguments; before it `depyf.fits` says which version will serve it, then
torch does what it does. Of the {len(live)} calls of which it was asked, a version served {served}, none
{len(live) - served}.

## Of the running function

Right means: served or not, and by which version.

{table(head, rows(lambda each: each.live))}
## Of a dump, without torch

The dump of the same runs, as it was at the end, is asked about the same calls (`depyf fits`). It is given the arguments
as shapes, dtypes, layouts and Python values, and nothing of modules, globals and torch's state.

{table(head, rows(lambda each: [pair[0] for pair in each.of_dump]))}
With `--same --state grad_mode=...` what was not given is taken to be as it was when each version was compiled. That is
wrong where an attribute of a module, an object or a global was changed.

{table(head, rows(lambda each: [pair[1] for pair in each.of_dump]))}
## Kinds of change

{table(["change", "calls"], by_change.most_common())}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="*", default=["zoo", "models"])
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one program in so many")
    parser.add_argument("--write", metavar="FILE")
    chosen = parser.parse_args()
    measured = {group: measure(group, chosen.only, chosen.every) for group in chosen.groups}
    bad = False
    for each in measured.values():
        rows = [*each.live, *(row for pair in each.of_dump for row in pair)]
        for row in rows:
            if wrong(row):
                print("WRONG", row)
        for row in each.live:
            if row.said == "undecided":
                print("undecided", row)
        bad = bad or any(map(wrong, each.live)) or any(wrong(first) for first, _ in each.of_dump)
    text = document(measured)
    print(text)
    if chosen.write:
        pathlib.Path(chosen.write).write_text(text, encoding="utf-8")
    raise SystemExit(bad)


if __name__ == "__main__":
    main()

"""What being linked costs a call: tiny graphs, many calls, transformed code with the tool against torch's own.

    python benchmarks/linked_calls.py [--batches 200] [--calls 300]

Each program exists twice in one process, once compiled plain, once inside ``prepare_debug`` (which is left before
anything is timed). Batches of calls take turns; printed are the medians and the median of the ratios of neighbours.
The graphs do next to nothing, so what is timed is the transformed code and torch's way to it. To show the noise, a
second plain copy is timed against the first in the same way. (Linked code runs inside ``debug()`` only; here it is
made to run always.)
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from _shared import dated, table

import depyf
from depyf.capture.torch_private import cache_entries

SOURCE = '''
import torch

def one_graph(x):
    return x + 1

def branch(x):
    if x.sum() < 0:
        return x * -1
    return x * 2

def three_breaks(x):
    y = x + 1
    torch._dynamo.graph_break()
    z = y + x
    torch._dynamo.graph_break()
    w = z + y
    torch._dynamo.graph_break()
    return w + x

def containers(x):
    y, z = x + 1, x - 1
    return {"sum": y + z, "parts": [y, z], "shape": tuple(x.shape), "kind": x.dtype}

class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(1)) for _ in range(10)])

    def forward(self, x):
        for scale in self.scales:
            x = x * scale
        return x

layers = Layers()
'''
PROGRAMS = ("one_graph", "branch", "three_breaks", "containers", "layers")


def compiled(name: str, watched: bool) -> Callable[[Any], Any]:
    """A copy of the program with code objects of its own, compiled."""
    space: dict[str, Any] = {"__name__": f"program_{name}"}
    exec(compile(SOURCE, f"<{name}>", "exec"), space)
    function: Callable[[Any], Any] = torch.compile(space[name], backend="eager")
    with tempfile.TemporaryDirectory() as folder:
        if watched:
            with depyf.prepare_debug(folder), torch.no_grad():
                function(torch.ones(1))
        else:
            with torch.no_grad():
                function(torch.ones(1))
    return function


def seconds(function: Callable[[Any], Any], calls: int) -> float:
    x = torch.ones(1)
    begun = time.perf_counter()
    for _ in range(calls):
        function(x)
    return (time.perf_counter() - begun) / calls


def measure(name: str, batches: int, calls: int) -> tuple[str, ...]:
    plain, linked, again = compiled(name, False), compiled(name, True), compiled(name, False)
    pairs, noise, times = [], [], []
    with torch.no_grad():
        for function in (plain, linked, again):
            seconds(function, calls)
        for number in range(batches):
            order = (plain, linked, again) if number % 2 == 0 else (again, linked, plain)
            fastest = {function: seconds(function, calls) for function in order}
            pairs.append(fastest[linked] / fastest[plain])
            noise.append(fastest[again] / fastest[plain])
            times.append(fastest[plain])
    return (name, f"{statistics.median(times) * 1e6:.1f}", f"{statistics.median(pairs):.3f}",
            f"{statistics.median(noise):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--calls", type=int, default=300, help="calls in a batch")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    cache_entries.can_replace = lambda: False
    rows = [measure(name, chosen.batches, chosen.calls) for name in PROGRAMS]
    rows.append(("**median**", "", *(f"**{statistics.median(float(row[i]) for row in rows):.3f}**" for i in (2, 3))))
    print(f"{dated()}, Python {platform.python_version()}, torch {torch.__version__}")
    print(table(("program", "microseconds, plain", "linked / plain", "plain / plain"), rows))


if __name__ == "__main__":
    main()

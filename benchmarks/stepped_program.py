"""Programs of ``stepped.py`` for a debugger: ``stepped_program.py BACKEND DIRECTORY NAME ...``.

Each is compiled inside ``prepare_debug`` (``DIRECTORY/NAME``). Then all run again inside ``depyf.debug()``, which
pauses once: four times, with the environment variable ``STEPPED_RUN`` counting from 0, and the values are compared.
"""

from __future__ import annotations

import os
import sys

import torch
from stepped import PROGRAMS, step

import depyf

RUNS = 4

if __name__ == "__main__":
    backend, directory, *names = sys.argv[1:]
    torch._logging.set_logs(all=40)
    compiled, before = {}, {}
    for name in names:
        compiled[name] = torch.compile(PROGRAMS[name].function, backend=backend)
        with depyf.prepare_debug(os.path.join(directory, name), files="now"):
            before[name] = [step(compiled[name], PROGRAMS[name], seed) for seed in range(RUNS)]
    with depyf.debug():
        for name in names:
            for seed in range(RUNS):
                os.environ["STEPPED_RUN"] = str(seed)
                after = step(compiled[name], PROGRAMS[name], seed)
                same = all(map(torch.equal, before[name][seed], after))
                print(f"\nvalues {name} {'same' if same else 'DIFFERENT'}", flush=True)

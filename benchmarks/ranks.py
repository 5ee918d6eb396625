"""Several ranks on gloo, many recompiles, one rank killed with ``kill -9``: what is left.

    python benchmarks/ranks.py [--ranks 4] [--recompiles 200] [--kill 2] [--at 50] [--torchrun] [--directory DIR]

Each rank compiles one function over and over (``eager``, sizes not dynamic). The rank to kill is killed by itself, by
``SIGKILL``, after ``--at`` compilations; a file beside the dump says how many those were. With ``--torchrun`` the
launcher then ends the other ranks too (SIGTERM), as it always does; without it they go on to their end. The exit status
is 1 unless every other rank's dump is complete (without ``--torchrun``) and the killed one's is readable up to its last
compilation.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from depyf.records import store
from depyf.views import ranks


def worker(arguments: argparse.Namespace) -> None:
    import torch
    import torch._dynamo.config
    import torch.distributed

    import depyf

    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 10 * arguments.recompiles

    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled = torch.compile(double, backend="eager", dynamic=False)
    with depyf.prepare_debug(arguments.directory, files="now"):
        for size in range(2, arguments.recompiles + 3):
            if rank == arguments.kill and size == arguments.at + 2:
                with open(f"{arguments.directory}.compiled", "w") as file:
                    file.write(str(size - 2))
                os.kill(os.getpid(), signal.SIGKILL)
            compiled(torch.ones(size))


def launch(arguments: argparse.Namespace) -> None:
    own = [os.path.abspath(__file__), "--worker", "--ranks", str(arguments.ranks), "--kill", str(arguments.kill),
           "--recompiles", str(arguments.recompiles), "--at", str(arguments.at), "--directory", arguments.directory]
    if arguments.torchrun:
        subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                        f"--nproc-per-node={arguments.ranks}", *own])
        return
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "WORLD_SIZE": str(arguments.ranks), "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen([sys.executable, *own], env={**environment, "RANK": str(rank)})
                 for rank in range(arguments.ranks)]
    for process in processes:
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--recompiles", type=int, default=200)
    parser.add_argument("--kill", type=int, default=2, help="the rank to kill; -1 for none")
    parser.add_argument("--at", type=int, default=50, help="after how many compilations")
    parser.add_argument("--torchrun", action="store_true")
    parser.add_argument("--directory", default="")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments)
        return 0
    arguments.directory = arguments.directory or os.path.join(tempfile.mkdtemp(), "dump")
    begun = time.monotonic()
    launch(arguments)
    print(f"{arguments.ranks} ranks, {arguments.recompiles} recompiles: {time.monotonic() - begun:.0f} s")
    made_at_end = os.path.exists(os.path.join(arguments.directory, "index.md"))
    print(f"index over all ranks: {'written by the ranks' if made_at_end else 'made now, none of them came to it'}")
    print(ranks.write_index(arguments.directory))
    good = True
    for rank in range(arguments.ranks):
        folder = os.path.join(arguments.directory, f"rank_{rank}")
        capture = store.read(folder)
        ended = store.NOT_ENDED not in capture.notes
        compiled = [c for c in capture.compilations if c.outcome == "compiled"]
        codes = [entry.transformed.file for function in capture.functions for frame in function.frames
                 for entry in frame.entries]
        files = [*codes, *(stage.file for graph in capture.graphs for stage in graph.stages)]
        there = sum(bool(file) and os.path.exists(os.path.join(folder, file)) for file in files)
        partial = [name for name in os.listdir(folder) if name.endswith(".partial")]
        print(f"rank {rank}: {'ended' if ended else 'did not end'}, {len(compiled)} compilations, {len(codes)} "
              f"transformed codes, {there} of {len(files)} files there, {len(partial)} half files")
        wanted = arguments.recompiles + 1
        if rank == arguments.kill:
            with open(f"{arguments.directory}.compiled") as file:
                wanted = int(file.read())
        if arguments.torchrun and rank != arguments.kill:
            wanted = len(compiled)
        good &= (len(compiled) == len(codes) == wanted and there == len(files)
                 and (ended or rank == arguments.kill or arguments.torchrun))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

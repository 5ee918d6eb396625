"""Real processes: ranks on gloo, workers of multiprocessing and of a data loader. Nothing mixes, nothing hangs."""

import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")

from depyf.records import store  # noqa: E402
from depyf.views import ranks  # noqa: E402
from torch_forks import torch_python

#: Rank 1 gets another shape (a recompile), breaks at another line and, the second time, is killed.
RANKS = textwrap.dedent("""
    import os, signal, sys
    import torch, torch.distributed
    import depyf

    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    for name in ("RANK", "WORLD_SIZE"):
        del os.environ[name]  # torch.distributed knows

    @torch.compile(backend="eager")
    def f(x, rank):
        if rank:
            torch._dynamo.graph_break()
        return x + 1

    with depyf.prepare_debug(sys.argv[1]):
        f(torch.ones(3), rank)
        torch.distributed.barrier()
        if rank and sys.argv[2] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
""")
WORKERS = textwrap.dedent("""
    import multiprocessing, os, sys
    import torch
    import depyf

    def f(x):
        return x.sin() + 1

    def in_child(directory):
        if directory:
            with depyf.prepare_debug(directory):
                torch.compile(f, backend="eager")(torch.ones(3))
        else:
            torch.compile(f, backend="eager")(torch.ones(3))

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return torch.compile(f, backend="eager")(torch.ones(index + 2)).sum()

    if __name__ == "__main__":
        here = sys.argv[1]
        with depyf.prepare_debug(here + "/parent"):
            torch.compile(f, backend="eager")(torch.ones(3, 3))
            for method, directory in (("fork", ""), ("fork", here + "/fork"), ("spawn", here + "/spawn")):
                child = multiprocessing.get_context(method).Process(target=in_child, args=(directory,))
                child.start()
                child.join(200)
                assert child.exitcode == 0, (method, directory, child.exitcode)
            print(torch.stack(list(torch.utils.data.DataLoader(Data(), batch_size=1, num_workers=1))).shape)
""")


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def launch(program, *arguments):
    """Two ranks; their exit statuses."""
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    processes = [subprocess.Popen([*torch_python(), str(program), *arguments], env={**common, "RANK": str(rank)})
                 for rank in range(2)]
    try:
        return [process.wait(500) for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_two_ranks_and_again_with_one_killed(tmp_path):
    program, dump = tmp_path / "program.py", tmp_path / "dump"
    program.write_text(RANKS)
    assert launch(program, str(dump), "live") == [0, 0]
    assert sorted(name for name in os.listdir(dump) if name[0] != ".") == ["index.md", "rank_0", "rank_1"]
    first, second = (store.read(str(dump / f"rank_{rank}")) for rank in range(2))
    assert (first.environment["rank"], second.environment["rank"]) == ("0", "1")
    assert not first.compilations[0].breaks and len(second.compilations[0].breaks) == 1
    text = (dump / "index.md").read_text()
    assert "| [0](rank_0/index.md) | ended |" in text and "| [1](rank_1/index.md) | ended |" in text
    assert "* graph break **new**: `program.py:14`" in text and "from rank 0 to rank 1" in text

    assert launch(program, str(dump), "kill") == [0, -signal.SIGKILL]
    again = dump / "run_2"
    assert sorted(name for name in os.listdir(again) if name[0] != ".") == ["index.md", "rank_0", "rank_1"]
    assert store.NOT_ENDED not in store.read(str(again / "rank_0")).notes
    killed = store.read(str(again / "rank_1"))
    assert store.NOT_ENDED in killed.notes and len(killed.compilations) >= 1
    assert "**not ended**" in (again / "index.md").read_text()
    ranks.write_index(str(again))
    assert "graph break" in (again / "rank_1" / "index.md").read_text()
    assert (dump / "index.md").read_text() == text, "the first run is left as it was"


def test_workers_leave_the_parent_s_files_alone_and_write_their_own(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    done = subprocess.run([sys.executable, str(program), str(tmp_path)], timeout=550, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # (Each process says it where its torch is another than those that were tried, or lacks something.)
    messages = [line for line in done.stderr.splitlines() if "depyf" in line and not line.startswith("depyf: torch ")]
    assert "torch.Size([4, 1])" in done.stdout and messages == []
    parent = store.read(str(tmp_path / "parent"))
    assert [c.function for c in parent.compilations] == ["f"], "children are silent in the parent's dump"
    assert os.listdir(tmp_path / "parent").count("full_code_for_f_0.py") == 1
    assert not [name for name in os.listdir(tmp_path / "parent") if name.startswith("run_")]
    for name in ("fork", "spawn"):
        own = store.read(str(tmp_path / name))
        assert len(own.compilations) == 1 and (tmp_path / name / "index.md").exists()

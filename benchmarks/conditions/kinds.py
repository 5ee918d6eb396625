"""Conditions under which programs are run: options of Python, limits, broken disks, tools, threads, signals."""

from __future__ import annotations

from dataclasses import dataclass, field

#: How the program is run after what a condition sets up.
MAIN = "main()"


@dataclass(frozen=True)
class Kind:
    """A condition.

    Attributes:
        name: of it.
        options: of the interpreter.
        environment: variables; ``None`` takes one away.
        before: what stands above the program.
        run: what calls it.
        limits: ``{name of resource.RLIMIT_…: number}``.
        shell: what the command is put into; ``{}`` stands for it.
        dump: where the dump goes, relative to the folder of the run; made as ``dump_is`` says.
        dump_is: ``"new"``, ``"a file"``, ``"read only"``, ``"full"`` (a file system of 64 KiB), ``"left over"``.
        in_program: ``prepare_debug`` in the program, as nothing else reaches this interpreter.
        same_error_output: whether standard error is compared; some tools print times or addresses.
        must_write: whether a dump has to be there afterwards.
    """

    name: str
    options: tuple[str, ...] = ()
    environment: dict[str, str | None] = field(default_factory=dict)
    before: str = ""
    run: str = MAIN
    limits: dict[str, int] = field(default_factory=dict)
    shell: str = "{}"
    dump: str = "dump"
    dump_is: str = "new"
    in_program: bool = False
    same_error_output: bool = True
    must_write: bool = True


def _signal(name: str, when: int = 2) -> str:
    """Return what has a program send itself a signal, when torch asks the backend the ``when``-th time."""
    return f"""
import os, signal, torch
from torch._dynamo.backends import registry
_asked = []
_lookup = registry.lookup_backend("eager")
def _eager(graph, inputs):
    _asked.append(1)
    if len(_asked) == {when}:
        os.kill(os.getpid(), signal.{name})
    return _lookup(graph, inputs)
_compile = torch.compile
torch.compile = lambda *args, **kwargs: _compile(*args, **{{**kwargs, "backend": _eager}})
"""


def _patched(place: str, name: str, text: str) -> str:
    return f"import {place.partition('.')[0]}\n_before = {place}.{name}\n{text}\n{place}.{name} = _other\n"


_COUNTING = "def _other(*args, **kwargs):\n    return _before(*args, **kwargs)"
_THREADS = """
import threading
_all = [threading.Thread(target=main, daemon={daemon}) for _ in range({count})]
for _one in _all:
    _one.start()
    {join}
for _one in _all:
    _one.join()
"""

_FLAGS = [Kind(f"python {' '.join(flags)}", flags) for flags in (
    ("-O",), ("-OO",), ("-X", "dev"), ("-I",), ("-B",), ("-u",), ("-E",), ("-b",), ("-s",), ("-P",), ("-X", "utf8"),
    ("-X", "tracemalloc=3"), ("-X", "faulthandler"), ("-X", "frozen_modules=off"), ("-X", "no_debug_ranges"),
    ("-X", "int_max_str_digits=640"))] + [
    Kind("python -W error", before="import warnings, torch\nimport torch._dynamo\nwarnings.simplefilter('error')"),
    Kind("python -S", ("-S",), in_program=True),
    Kind("standard input", shell="{} < /dev/null"),
]
_ENVIRONMENT = [Kind(f"{name}={value}" if value is not None else f"no {name}", environment={name: value})
                for name, value in (
    ("PYTHONHASHSEED", "0"), ("PYTHONMALLOC", "debug"), ("PYTHONOPTIMIZE", "1"), ("LC_ALL", "C"), ("HOME", None),
    ("PATH", None), ("TERM", "dumb"), ("PYTHONIOENCODING", "ascii"), ("PYTHONNOUSERSITE", "1"), ("TMPDIR", "/nowhere"),
    ("TORCH_COMPILE_DISABLE", "1"), ("TORCHDYNAMO_SUPPRESS_ERRORS", "1"), ("PYTHONDONTWRITEBYTECODE", "1"),
    ("COLUMNS", "1"), ("OMP_NUM_THREADS", "1"), ("PYTHONASYNCIODEBUG", "1"), ("TORCHDYNAMO_VERBOSE", "1"))]
_ENVIRONMENT = [each if each.environment.get("TORCH_COMPILE_DISABLE") is None else
                Kind(each.name, environment=each.environment, must_write=False) for each in _ENVIRONMENT]
_LIMITS = [
    Kind("64 files open", limits={"RLIMIT_NOFILE": 64}),
    Kind("16 files open", limits={"RLIMIT_NOFILE": 16}, must_write=False),
    Kind("files of 4 KiB at most", limits={"RLIMIT_FSIZE": 4096}, environment={"PYTHONDONTWRITEBYTECODE": "1"},
         before="import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)", must_write=False),
    Kind("6 GiB of addresses", limits={"RLIMIT_AS": 6 << 30}),
    Kind("a stack of 1 MiB", limits={"RLIMIT_STACK": 1 << 20}),
    Kind("no core files", limits={"RLIMIT_CORE": 0}),
]
_DISK = [
    Kind("the dump is a file", dump_is="a file", must_write=False),
    Kind("the dump is below a file", dump="dump/below", dump_is="a file above", must_write=False),
    Kind("a full disk", dump_is="full", must_write=False),
    Kind("a dump of before", dump_is="left over"),
    Kind("odd characters in the folder", dump="d\u00fc mp '\"$x"),
    Kind("a deep folder", dump="/".join(["deep"] * 40)),
    Kind("the folder is taken away", before="import atexit, os, shutil", run="main()\nshutil.rmtree('dump', True)",
         must_write=False),
    Kind("another folder is entered", before="import os, tempfile", run="os.chdir(tempfile.mkdtemp())\nmain()"),
    Kind("standard error is closed", shell="{} 2>&-"),
    Kind("standard input is closed", shell="{} <&-"),
    Kind("standard output is a full disk", shell="{} > /dev/full"),
]
_TOOLS = [
    Kind("sys.settrace", before="import sys\nsys.settrace(lambda frame, event, arg: None)"),
    Kind("sys.settrace, lines", before="import sys\ndef _trace(frame, event, arg):\n    return _trace",
         run="sys.settrace(_trace)\nmain()\nsys.settrace(None)"),
    Kind("sys.setprofile", before="import sys\nsys.setprofile(lambda frame, event, arg: None)"),
    Kind("cProfile", before="import cProfile\n_profile = cProfile.Profile()", run="_profile.runcall(main)"),
    Kind("tracemalloc", before="import tracemalloc\ntracemalloc.start(5)"),
    Kind("an audit hook", before="import sys\n_events = []\n"
         "sys.addaudithook(lambda event, args: _events.append(event))"),
    Kind("an excepthook", before="import sys\nsys.excepthook = lambda kind, error, trace: print('hook', kind, error)"),
    Kind("no garbage collection", before="import gc\ngc.disable()"),
    Kind("garbage collection at each turn", before="import gc\ngc.set_threshold(50, 2, 2)"),
    Kind("logging at DEBUG", before="import logging\nlogging.basicConfig(level=logging.DEBUG)",
         same_error_output=False),
    Kind("a timer of signals", before="import signal\nsignal.signal(signal.SIGALRM, lambda *args: None)\n"
         "signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)", run="main()\nsignal.setitimer(signal.ITIMER_REAL, 0)"),
    Kind("TORCH_TRACE", environment={"TORCH_TRACE": "trace"}),
    Kind("TORCH_LOGS", environment={"TORCH_LOGS": "+dynamo,guards"}, same_error_output=False),
    Kind("TORCH_COMPILE_DEBUG", environment={"TORCH_COMPILE_DEBUG": "1"}, same_error_output=False),
    *(Kind(f"python -m {' '.join(module[1:2])}", module, same_error_output=same) for module, same in (
        (("-m", "cProfile", "-o", "profile"), True), (("-m", "pdb", "-c", "continue"), False),
        (("-m", "trace", "--count", "--coverdir=counts", "--ignore-dir=/"), True),
        (("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--local-ranks-filter=0"), False))),
    Kind("workers of a data loader", before="import torch", run="for _batch in torch.utils.data.DataLoader("
         "list(range(4)), num_workers=2):\n    print(_batch.tolist())\nmain()"),
    Kind("anomaly mode", before="import torch\ntorch.autograd.set_detect_anomaly(True)", same_error_output=False),
]
_PATCHED = [
    Kind("open is patched", before=_patched("builtins", "open", _COUNTING)),
    Kind("json.dumps is patched", before=_patched("json", "dumps", _COUNTING)),
    Kind("print is patched", before=_patched("builtins", "print", "def _other(*args, **kwargs):\n"
                                             "    return _before('>', *args, **kwargs)")),
    Kind("os.replace is patched", before=_patched("os", "replace", _COUNTING)),
    Kind("os.makedirs raises", before=_patched("os", "makedirs", "def _other(name, *args, **kwargs):\n"
                                               "    raise OSError('no folders here')"), must_write=False),
    Kind("time stands still", before="import time, torch\n"
         + _patched("time", "time", "def _other():\n    return 0.0")),
    Kind("isinstance is counted", before=_patched("builtins", "isinstance", _COUNTING)),
    Kind("sys.stderr is a list", before="import io, sys\nsys.stderr = io.StringIO()"),
    Kind("no sys.stderr", before="import sys\nsys.stderr = None"),
]
_THREADED = [
    Kind("in a thread", run=_THREADS.format(daemon=False, count=1, join="")),
    Kind("in three threads, one after the other",
         run=_THREADS.format(daemon=False, count=3, join="_one.join()")),
    Kind("in a daemon thread", run=_THREADS.format(daemon=True, count=1, join="")),
    Kind("fork after", before="import os, sys", run="main()\nsys.stdout.flush()\n_child = os.fork()\n"
         "print('child' if not _child else 'parent', flush=True) if not _child else os.waitpid(_child, 0)"),
    Kind("in a forked child", before="import os, sys",
         run="_child = os.fork()\nif _child:\n    print(os.waitpid(_child, 0)[1])\nelse:\n    main()"),
    Kind("multiprocessing, fork", before="import multiprocessing", run="_child = multiprocessing.get_context('fork')."
         "Process(target=main)\n_child.start()\n_child.join()\nprint(_child.exitcode)"),
    Kind("in a coroutine", before="import asyncio", run="async def _run():\n    main()\nasyncio.run(_run())"),
]
_ENDS = [
    Kind("sys.exit(3)", before="import sys", run="main()\nsys.exit(3)"),
    Kind("os._exit(4)", before="import os, sys", run="main()\nsys.stdout.flush()\nos._exit(4)"),
    Kind("SIGKILL at the end", before="import os, signal, sys", run="main()\nsys.stdout.flush()\n"
         "os.kill(os.getpid(), signal.SIGKILL)"),
    Kind("SIGTERM at the end", before="import os, signal, sys", run="main()\nsys.stdout.flush()\n"
         "os.kill(os.getpid(), signal.SIGTERM)"),
    Kind("SIGABRT at the end", before="import os, sys", run="main()\nsys.stdout.flush()\nos.abort()"),
    Kind("Ctrl-C while compiling", before=_signal("SIGINT"), same_error_output=False),
    Kind("SIGTERM while compiling", before=_signal("SIGTERM")),
    Kind("SIGKILL while compiling", before=_signal("SIGKILL")),
    Kind("SIGUSR1 with a handler while compiling", before="import signal\n"
         "signal.signal(signal.SIGUSR1, lambda *args: print('handled'))\n" + _signal("SIGUSR1")),
    Kind("an atexit function", before="import atexit\natexit.register(lambda: print('at exit'))"),
]
_TORCH = [
    Kind("inference mode", before="import torch", run="with torch.inference_mode():\n    main()"),
    Kind("no gradients", before="import torch", run="with torch.no_grad():\n    main()"),
    Kind("autocast", before="import torch", run="with torch.autocast('cpu'):\n    main()"),
    Kind("float64", before="import torch\ntorch.set_default_dtype(torch.float64)"),
    Kind("deterministic", before="import torch\ntorch.use_deterministic_algorithms(True)"),
    Kind("one thread", before="import torch\ntorch.set_num_threads(1)"),
    Kind("reset and again", before="import torch", run="main()\ntorch.compiler.reset()\nmain()"),
    Kind("dynamic", before="import torch\n_compile = torch.compile\n"
         "torch.compile = lambda *args, **kwargs: _compile(*args, dynamic=True, **kwargs)"),
    Kind("a limit of one version", before="import torch\nimport torch._dynamo\n"
         "torch._dynamo.config.recompile_limit = 1",
         same_error_output=False),
    Kind("disabled", before="import torch\nimport torch._dynamo\n"
         "torch._dynamo.config.disable = True", must_write=False),
]
KINDS = {kind.name: kind for kind in (
    *_FLAGS, *_ENVIRONMENT, *_LIMITS, *_DISK, *_TOOLS, *_PATCHED, *_THREADED, *_ENDS, *_TORCH)}

"""Programs that run in forks of one process that has imported torch: of the 5 s of a small program, that takes 3 s.

``subprocess.run([*torch_python(), "program.py"])`` does what ``[sys.executable, "program.py"]`` does, with ``-c`` and
``-m`` as well; ``-m depyf run`` becomes the program in the same process. What Python and torch read when they start is
left out: options of the interpreter, ``.pth`` files (but for that of depyf), variables that torch reads when it is
imported (but for those of its logs). A signal to the command does not reach the program; its end does. Frames of this
file are at the bottom of the stack.
"""

import atexit
import functools
import importlib.machinery
import json
import os
import signal
import socket
import sys
import types


@functools.cache
def torch_python() -> list[str]:
    """The command to run programs with; the process that forks ends with this one."""
    import subprocess
    import tempfile

    if not hasattr(os, "pidfd_open"):
        return [sys.executable]
    folder = tempfile.TemporaryDirectory()
    address = os.path.join(folder.name, "socket")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TORCH_LOGS")}
    environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # (no process of Inductor's for each program)
    server = subprocess.Popen([sys.executable, __file__, "--serve", address], env=environment, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout.readline() == "ready\n"

    @atexit.register
    def end():
        server.communicate()
        folder.cleanup()

    return [sys.executable, "-IS", __file__, address]


def ask(address, arguments):
    """Have the program run with the streams, folder and environment of this process, and end as it ends."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [b"f"], [0, 1, 2])
        server.sendall(json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode() + b"\n")
        status = os.waitstatus_to_exitcode(int(server.makefile().readline() or 1))
    if status < 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def serve(address):
    """Fork for each program that is asked for: ``(arguments, folder, environment)`` of it, in the fork alone."""
    import gc
    import select

    import networkx  # noqa: F401  (which torch imports when it compiles)
    import torch
    import torch._dynamo.backends.registry
    import torch._inductor.compile_fx
    import torch._inductor.fx_passes.joint_graph
    import torch.export  # noqa: F401

    torch._dynamo.list_backends()
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    os.write(1, b"ready\n")
    while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
        connection, _ = listening.accept()
        if not os.fork():
            listening.close()
            return program_for(connection)
        connection.close()
        os.waitpid(-1, os.WNOHANG)
    sys.exit()


def program_for(connection):
    """Fork once more: the program to be run in the child; its parent reports how it ends, or ends it."""
    import select

    _, streams, *_ = socket.recv_fds(connection, 1, 3)
    lines = connection.makefile()
    program = json.loads(lines.readline())
    child = os.fork()
    if not child:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        connection.close()
        return program
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(child)
    if ended not in select.select([ended, connection], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    try:
        connection.sendall(f"{status}\n".encode())
    except BrokenPipeError:
        pass
    os._exit(0)


class Replaced(BaseException):
    """The program called ``os.execve``."""


def execve(path, command, environment):
    """Instead of ``os.execve``: end the program so that another begins in this process."""
    raise Replaced(command[1:], os.getcwd(), environment)


def begin(arguments, folder, environment):
    """Make this process what a new one would be, up to the first line of the program: ``(code, file)`` of it."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.orig_argv = [sys.executable, *arguments]
    sys.modules["__main__"] = types.ModuleType("__main__")
    for name in [name for name in sys.modules if name.partition(".")[0] == "depyf"]:
        del sys.modules[name]
    first, *others = arguments
    path = {"-c": "", "-m": folder}.get(first, os.path.dirname(os.path.abspath(first)))
    sys.path[:] = [path, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *SITE]
    if environment.get("DEPYF_DUMP_DIR"):
        from depyf.program import start

        start.begin()
    if first == "-m":
        sys.argv = others
        return "import runpy, sys\nrunpy._run_module_as_main(sys.argv[0])", "<string>"
    if first == "-c":
        sys.argv = ["-c", *others[1:]]
        return others[0], "<string>"
    sys.argv = arguments
    with open(first, encoding="utf-8") as file:
        return file.read(), os.path.abspath(first)


def run(program):
    """Run a program, and those that it becomes."""
    environment = program[2]
    if {"TORCH_LOGS", "TORCH_TRACE"} & set(environment):
        from torch._logging import _internal

        os.environ.update(environment)
        _internal.LOG_TRACE_HANDLER = None
        _internal._init_logs()
    sys.stdin, sys.stdout = open(0), open(1, "w", buffering=1 if os.isatty(1) else -1)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    os.execve = execve
    while True:
        code, file = begin(*program)
        main = sys.modules["__main__"].__dict__
        # (Torch up to 2.10 takes a function without a loader for one of a library.)
        main["__loader__"] = importlib.machinery.BuiltinImporter
        if file != "<string>":
            main |= {"__file__": file, "__loader__": importlib.machinery.SourceFileLoader("__main__", file)}
        try:
            return exec(compile(code, file, "exec"), main)
        except Replaced as new:
            program = new.args


SITE = sys.path[1:]
if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        run(serve(sys.argv[2]))
    else:
        ask(sys.argv[1], sys.argv[2:])

"""``install()``: decompiled source follows each modified bytecode in torch's log."""

import logging
import os
import subprocess

import pytest

pytest.importorskip("torch")

from depyf import logs
from depyf.capture.torch_private import hooks
from torch_forks import torch_python

SOURCES = os.path.dirname(os.path.dirname(logs.__file__))

PROGRAM = """
{before}
import torch
{after}
def simple(x):
    return x + 1

torch.compile(simple, backend="eager")(torch.ones(2))
{late}
torch._dynamo.reset()
torch.compile(simple, backend="eager")(torch.ones(2))
"""
INSTALL = "from depyf import logs; logs.install()"
UNINSTALL = "from depyf import logs; logs.uninstall()"


def log_of(setting, **parts):
    return log_of_program(setting, PROGRAM.format(**{"before": "", "after": "", "late": "", **parts}))


def log_of_program(setting, program, **more):
    environment = dict(os.environ, PYTHONPATH=SOURCES, **more)
    environment.pop("TORCH_LOGS", None)
    if setting:
        environment["TORCH_LOGS"] = setting
    done = subprocess.run(
        [*torch_python(), "-c", program], check=False, capture_output=True, text=True, env=environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("parts", [
    {"after": INSTALL},
    {"before": INSTALL, "after": INSTALL},  # (`test_uninstall_stops_it` installs before alone)
])
@pytest.mark.parametrize("setting", ["+bytecode"])
def test_source_follows_each_modified_bytecode(setting, parts):
    log = log_of(setting, **parts)
    assert log.count("MODIFIED BYTECODE simple") == 2
    assert log.count("possible source code") == 2
    first, second = (part.split("MODIFIED BYTECODE")[0] for part in log.split("possible source code")[1:])
    assert log.index("MODIFIED BYTECODE") < log.index("possible source code")
    for text in (first, second):
        assert "def simple" in text
        assert "__compiled_fn_" in text


def test_under_plus_dynamo():
    assert log_of("+dynamo,+bytecode", before=INSTALL).count("possible source code") == 2


@pytest.mark.parametrize("setting, count", [("+bytecode", 2), ("+dynamo", 0)])
def test_while_prepare_debug_is_on(setting, count, tmp_path):
    """Dynamo's own log does not hold bytecode, so there is nothing that source could follow."""
    on = f"import depyf; block = depyf.prepare_debug({str(tmp_path / 'dump')!r}); block.__enter__(); " \
         "import atexit; atexit.register(block.__exit__, None, None, None)"
    log = log_of(setting, before=INSTALL, after=on)
    assert log.count("possible source code") == count == log.count("MODIFIED BYTECODE simple")
    assert "Traceback" not in log
    assert (tmp_path / "dump" / "__transformed_code_0_for_simple.py").exists()


SET_UP = """
import logging, sys, threading
from depyf import logs
from depyf.capture.torch_private import hooks
logs.install()
import torch, torch._dynamo, torch._dynamo.convert_frame  # (sets torch's logging up)
class Mine(logging.Handler):
    seen = []
    def emit(self, record):
        self.seen.append(record.getMessage())
torch._logging.set_logs(bytecode=True)
logger = logging.getLogger("torch._dynamo.convert_frame.__bytecode")
above = logger
while above is not None:
    for handler in above.handlers:
        handler.setFormatter(logging.Formatter("MINE %(message)s"))
    above = above.parent
mine = Mine()
logger.addHandler(mine)
before = (logger.level, logger.propagate, list(logger.handlers))

def work(n):
    source = f"def thread_{n}(x):\\n    return x + {n}\\n"
    namespace = {"torch": torch, "__name__": "__main__"}
    exec(source, namespace)
    torch.compile(namespace[f"thread_{n}"], backend="eager")(torch.ones(2))
    logs.install()

threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert (logger.level, logger.propagate, list(logger.handlers)) == before
for n in range(4):
    texts = [t for t in mine.seen if "possible source code" in t and f"def thread_{n}(" in t]
    assert len(texts) == 1, (n, mine.seen)
logs.uninstall()
work(5)
logs.uninstall()
assert not any("possible source" in t and "thread_5" in t for t in mine.seen)
"""


def test_threads_and_a_set_up_of_the_users_own(tmp_path):
    log = log_of_program("", SET_UP, RANK="0", TORCH_LOGS_OUT=str(tmp_path / "out.log"))
    assert log.count("MINE possible source code") == 4


def test_silent_when_the_log_is_off():
    assert "possible source code" not in log_of("", before=INSTALL)


def test_uninstall_stops_it():
    assert log_of("+bytecode", before=INSTALL, late=UNINSTALL).count("possible source code") == 1
    assert log_of("+bytecode", before=INSTALL, after=UNINSTALL).count("possible source code") == 0


def test_logging_is_left_as_it_was():
    from torch._dynamo.convert_frame import _bytecode_hooks

    logger = logging.getLogger(hooks.BYTECODE_LOGGER)
    before = (list(logger.filters), list(logger.handlers), logger.level, len(_bytecode_hooks))
    logs.install()
    logs.install()
    assert len(_bytecode_hooks) == before[3] + 1
    logs.uninstall()
    logs.uninstall()
    assert (list(logger.filters), list(logger.handlers), logger.level, len(_bytecode_hooks)) == before


def test_an_error_of_ours_is_a_line_in_the_log(monkeypatch):
    import depyf.decompiler

    def fail(*args, **kwargs):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(depyf.decompiler, "decompile_code", fail)
    assert "planted" in logs.source_text(fail.__code__)


def test_the_file_that_torch_logs_to_holds_it_too(tmp_path):
    file = tmp_path / "torch.log"
    log_of_program("+bytecode", PROGRAM.format(before=INSTALL, after="", late=UNINSTALL), TORCH_LOGS_OUT=str(file))
    text = file.read_text()
    assert text.count("MODIFIED BYTECODE simple") == 2 and text.count("possible source code") == 1

"""A program under pdb in a pseudo-terminal, with the same methods as :class:`dap.Debugpy`."""

import re
import sys

import pexpect
from dap import Ended

PROMPT = r"\(Pdb\) "
PLACE = re.compile(r"(?<!-)> ([/<].+?)\((\d+)\)")  # (behind what the program printed last)


class Pdb:
    """A program that ``depyf.debug()`` stops in pdb.

    Args:
        command: script and arguments.
        environment: of the process.
        timeout: seconds that any answer may take.
    """

    def __init__(self, command, environment, timeout=300):
        environment = dict(environment, TERM="dumb", PYTHONBREAKPOINT="", NO_COLOR="1", PYTHON_COLORS="0")
        self.child = pexpect.spawn(sys.executable, command, env=environment, encoding="utf-8", timeout=timeout,
                                   dimensions=(100, 1000))
        self.child.setecho(False)
        self.printed = ""

    def stopped(self):
        """Waits for the prompt: ``(path, line)``. :class:`Ended` if the program ends."""
        index = self.child.expect([PROMPT, pexpect.EOF])
        before = self.child.before.replace("\r\n", "\n")
        self.printed += before
        if index == 1:
            raise Ended
        places = PLACE.findall(before)
        assert places, before
        path, line = places[-1]
        return path, int(line)

    def ask(self, command):
        self.child.sendline(command)
        self.child.expect(PROMPT)
        return self.child.before.replace("\r\n", "\n").strip()

    def move(self, command):
        self.child.sendline(command)
        return self.stopped()

    def pause(self):
        return self.stopped()

    def break_at(self, path, line, condition=None):
        """One breakpoint in a file, or none (``line=None``); returns whether it could be set."""
        for number in re.findall(r"^(\d+) +breakpoint .* at " + re.escape(path) + ":", self.ask("break"), re.M):
            self.ask(f"clear {number}")
        if line is None:
            return True
        answer = self.ask(f"break {path}:{line}" + (f", {condition}" if condition else ""))
        return f"{path}:{line}" in answer

    def go(self):
        return self.move("continue")

    def over(self):
        return self.move("next")

    def into(self):
        return self.move("step")

    def out(self):
        self.move("return")
        return self.move("next")

    def names(self):
        return set(re.findall(r"'(.*?)'", self.ask("p sorted(locals())")))

    def value(self, expression):
        """What pdb prints last: before that, the expression may have warned."""
        return (self.ask(f"p {expression}").splitlines() or [""])[-1]

    def output(self):
        return self.printed

    def close(self):
        self.child.close(force=True)

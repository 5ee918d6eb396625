"""A small client of the Debug Adapter Protocol: what an editor says to debugpy when someone clicks.

The program runs as ``python -m debugpy --listen PORT --wait-for-client``; the client talks to it over a socket.
https://microsoft.github.io/debug-adapter-protocol/specification
"""

import json
import re
import socket
import subprocess
import sys
import tempfile
import time


class Ended(Exception):
    """The program is over."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Debugpy:
    """A program under debugpy.

    Args:
        command: script and arguments.
        environment: of the process.
        timeout: seconds that any answer may take.
        just_my_code: as in ``launch.json``: step over library code.

    Child processes are left alone: those in which Inductor tries the processor's instructions would wait for a client.
    """

    def __init__(self, command, environment, timeout=300, just_my_code=False):
        self.timeout = timeout
        self.just_my_code = just_my_code
        port = free_port()
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the session)
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-X", "frozen_modules=off", "-m", "debugpy", "--listen", f"127.0.0.1:{port}",
             "--wait-for-client", "--configure-subProcess", "False", *command],
            env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.socket = self._connect(port)
        self.buffer = b""
        self.number = 0
        self.events = []
        self.thread = None
        self.frame = None
        self._start()

    def _connect(self, port):
        end = time.monotonic() + self.timeout
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", port), timeout=self.timeout)
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)
            else:
                return connection

    # --- messages ----------------------------------------------------------------------------------
    def send(self, command, **arguments):
        self.number += 1
        body = json.dumps({"seq": self.number, "type": "request", "command": command, "arguments": arguments}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.number

    def receive(self):
        """The next message; :class:`Ended` when the other side is gone."""
        while True:
            head, separator, rest = self.buffer.partition(b"\r\n\r\n")
            length = int(re.search(rb"Content-Length: (\d+)", head)[1]) if separator else 0
            if separator and len(rest) >= length:
                self.buffer = rest[length:]
                return json.loads(rest[:length])
            try:
                more = self.socket.recv(1 << 16)
            except ConnectionError:
                more = b""
            if not more:
                raise Ended
            self.buffer += more

    def answer(self, number, may_fail=False):
        """The response to a request; events that come before it are kept."""
        while True:
            message = self.receive()
            if message["type"] == "event":
                self.events.append(message)
            elif message["type"] == "response" and message["request_seq"] == number:
                assert message["success"] or may_fail, message
                return message.get("body", {}) if message["success"] else {"result": message.get("message", "")}

    def ask(self, command, **arguments):
        return self.answer(self.send(command, **arguments))

    def event(self, *names):
        """The next event of these names."""
        while True:
            for index, message in enumerate(self.events):
                if message["event"] in names:
                    return self.events.pop(index)
            message = self.receive()
            if message["type"] == "event":
                self.events.append(message)

    # --- the session -------------------------------------------------------------------------------
    def _start(self):
        self.ask("initialize", adapterID="python", linesStartAt1=True, columnsStartAt1=True, pathFormat="path")
        attached = self.send("attach", justMyCode=self.just_my_code, subProcess=False)
        self.event("initialized")
        self.ask("configurationDone")
        self.answer(attached)

    def stopped(self):
        """Waits until the program stops: ``(path, line)``. :class:`Ended` if it does not."""
        message = self.event("stopped", "terminated", "exited")
        if message["event"] != "stopped":
            raise Ended
        self.thread = message["body"]["threadId"]
        self.frame = self.frames()[0]
        return self.frame["source"]["path"], self.frame["line"]

    def frames(self):
        return self.ask("stackTrace", threadId=self.thread)["stackFrames"]

    def pause(self):
        """Waits for the stop in ``depyf.debug()``."""
        return self.stopped()

    def break_at(self, path, line, condition=None):
        """One breakpoint in a file, or none (``line=None``); returns whether it could be set."""
        points = [] if line is None else [{"line": line, **({"condition": condition} if condition else {})}]
        breakpoints = self.ask("setBreakpoints", source={"path": path}, breakpoints=points)["breakpoints"]
        return all(point["verified"] and point.get("line") == line for point in breakpoints)

    def go(self):
        self.send("continue", threadId=self.thread)
        return self.stopped()

    def over(self):
        self.send("next", threadId=self.thread)
        return self.stopped()

    def into(self):
        self.send("stepIn", threadId=self.thread)
        return self.stopped()

    def out(self):
        self.send("stepOut", threadId=self.thread)
        return self.stopped()

    def names(self):
        """The local variables of the frame, as the editor lists them."""
        scopes = self.ask("scopes", frameId=self.frame["id"])["scopes"]
        reference = next(s["variablesReference"] for s in scopes if s["name"] == "Locals")
        return {v["name"] for v in self.ask("variables", variablesReference=reference)["variables"]}

    def value(self, expression):
        """What the expression is worth, or the error that it raises, as text."""
        number = self.send("evaluate", expression=expression, frameId=self.frame["id"], context="watch")
        return self.answer(number, may_fail=True).get("result", "")

    def output(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def close(self):
        """Ends the session and, if it still runs, the program."""
        self.socket.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

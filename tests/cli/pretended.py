"""What tests of the commands put in the place of a stream."""


class Terminal:
    """A stream that says it is a terminal, and keeps what is written to it."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass

"""``python -m depyf``: the same as the command ``depyf``."""

import sys

from .cli import command

if __name__ == "__main__":
    sys.exit(command())

"""``python -m depyf``: the same as the command ``depyf``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())

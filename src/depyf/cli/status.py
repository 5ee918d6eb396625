"""Exit statuses that the commands share."""

import sys

#: Done, and nothing to say against it.
DONE = 0
#: What was given cannot be read or used, or the result cannot be written.
BAD_INPUT = 2
#: Ended by Ctrl-C.
INTERRUPTED = 130


def refused(why: object) -> int:
    """Say on standard error why a command does nothing, and return its exit status.

    Raises:
        BrokenPipeError: that is why: the reader of the output has seen enough (:func:`depyf.cli.main` ends quietly).
    """
    if isinstance(why, BrokenPipeError):
        raise why
    print(f"depyf: {why}", file=sys.stderr)
    return BAD_INPUT

"""Exit statuses that the commands share."""

#: Done, and nothing to say against it.
DONE = 0
#: What was given cannot be read or used, or the result cannot be written.
BAD_INPUT = 2
#: Ended by Ctrl-C.
INTERRUPTED = 130

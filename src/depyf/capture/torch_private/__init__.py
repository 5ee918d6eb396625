"""All that uses private API of torch: what its documents do not promise, and what may change with any version.

The rest of the package calls this one, which returns torch's objects, or changes torch until a context ends. Each name
is in the table of :mod:`.private_api` once, with what is lost where a torch lacks it::

    BYTECODE_HOOK.get()     # torch's function; MissingPrivateApi where this torch has none

:mod:`.hooks`                callbacks at the events that are watched, for as long as a session lasts
:mod:`.trace_events`         the same for torch's structured trace
:mod:`.current_compilation`  the compilation that this thread is in, found on its stack
:mod:`.guards`               trees of guards, with what torch tests and does not print; guards that a filter drops
:mod:`.frame_values`         values at a graph break, and in the frame that torch compiles again
:mod:`.graph_modules`        nodes and texts of graphs
:mod:`.resume_code`          resume functions and their offsets
:mod:`.cache_entries`        versions of a code object with their guards, which serves a call, other code for a while
:mod:`.compiled_callables`   what ``torch.compile`` was given, and calls of what it returned
:mod:`.pipeline`             a compilation isolated from the user's, and from torch's caches on disk

``depyf doctor`` compares the table with the torch that is installed; a test removes each name in turn.
"""

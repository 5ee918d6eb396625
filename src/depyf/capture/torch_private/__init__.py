"""All that uses private API of torch: what its documents do not promise, and what may change with any version.

The rest of the package calls this one, which returns torch's objects, or changes torch until a context ends. Each name
is in the table of :mod:`.private_api` once, with what is lost where a torch lacks it::

    BYTECODE_HOOK.get()     # torch's function; MissingPrivateApi where this torch has none

:mod:`.hooks`                callbacks at the events that are watched, for as long as a session lasts
:mod:`.trace_events`         the same for torch's structured trace
:mod:`.shared`               changes of torch that several sessions want, ended in any order
:mod:`.stack`                frames of torch's functions on the stack of this thread
:mod:`.current_compilation`  the compilation that this thread is in
:mod:`.guard_print`          trees of guards, with what torch tests and does not print
:mod:`.recompiled_frame`     values in the frame that torch compiles again
:mod:`.graph_modules`        nodes and texts of graphs
:mod:`.resume_code`          resume functions and their offsets
:mod:`.cache_entries`        the compiled versions of a code object with their guards, and which of them serves a call
:mod:`.compiled_callables`   what ``torch.compile`` was given
:mod:`.torch_caches`         torch's caches on disk
:mod:`.replacements`         other code in place of compiled versions, for a while
:mod:`.pipeline`             a compilation isolated from the user's

``depyf doctor`` compares the table with the torch that is installed; a test removes each name in turn.
"""

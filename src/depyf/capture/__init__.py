"""A running torch -> records, each appended to ``records.jsonl`` as soon as it is complete.

    torch calls a hook                     torch_private/hooks.py, the only room that names private API of torch
    the session is called, in a guarded call session.py
    events become a record                 graphs.py, codes.py; ../torch_text/events.py: compilations
    it is appended, its file is written    recorder.py

When the run ends, ``Session.stop`` gives the whole :class:`~depyf.records.model.Capture`. ``live.py`` makes the same
of a function that is compiled already, ``trace_log.py`` of a log that torch alone wrote.
"""

"""A running torch -> records, each appended to ``records.jsonl`` as soon as it is complete.

    torch calls a hook                       torch_private/hooks.py; only torch_private has private names of torch
    which calls the session, guarded         session.py
    events become a record                   graphs.py, codes.py; ../torch_text/events.py: compilations
    it is appended to records.jsonl          ../records/store.py

When the run ends, ``Session.capture`` returns the whole :class:`~depyf.records.model.Capture`. ``live.py`` makes the
same of a function that is compiled already, ``trace_log.py`` of a log that torch alone wrote.
"""

#: What is done with torch's compile caches: separate the entries that are made meanwhile from others; use no cache; use
#: them as they are, without what an entry lacks. (Imported while the interpreter starts.)
CACHES = ("separate", "bypass", "use")

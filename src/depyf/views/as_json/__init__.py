"""JSON for programs: in come the records or results that a command shows, out comes one document.

    explain.document({"": capture}, "dump")  -> {"depyf": ..., "command": "explain", "version": 1, "runs": [...]}
    output.written(document)                  -> its text

A module for each command that has ``--json``; ``output`` has what their documents share. ``schema.json`` beside them is
the JSON Schema of all, docs/json.md explains it; tests hold what is written against both.
"""

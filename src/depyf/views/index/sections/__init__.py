"""The sections of ``index.md``: each tells one kind of fact of a run."""

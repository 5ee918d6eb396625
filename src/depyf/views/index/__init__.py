"""The index of a dump: the story of a run."""

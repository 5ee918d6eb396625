"""Records of a run: plain, immutable, written to ``records.jsonl`` and read back from it."""

"""Undoing what the compiler does to structured code: a file for each thing that it does."""

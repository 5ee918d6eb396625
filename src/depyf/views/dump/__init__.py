"""The files of a dump, each a view of records."""

"""Rules that write operations, by parts of the language: each module has a table ``RULES`` of a function a kind."""

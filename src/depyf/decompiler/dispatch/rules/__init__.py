"""How operations are written, by parts of the language: each module has a table ``RULES``, a function for each kind."""

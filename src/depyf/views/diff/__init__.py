"""Differences between two runs: in come two captures, out come Markdown and an exit status.

    * **graph changed**: the captured one
      * `layers.0-1`: `+ gelu`, `- relu`

``pairing`` finds what belongs together, ``canonical`` leaves out what does not count (ids, addresses, names that torch
counts up), ``difference`` compares.
"""

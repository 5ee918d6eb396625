"""Differences between two runs, as Markdown.

    * **graph changed**: the captured one
      * `layers.0-1`: `+ gelu`, `- relu`

``pairing`` finds what belongs together and leaves out what does not count (ids, addresses, names that torch counts
up), ``difference`` compares.
"""

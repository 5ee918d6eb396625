"""The function that torch makes to draw a function's random numbers (``OutputGraph.random_calls``).

w = random.randint(1, 3)      ->      w, h = __gen_rand_values_2()
h = random.random()
"""

from __future__ import annotations

import re

#: Its name, a global of the function. (torch/_dynamo/output_graph.py)
BEGINNING = "__gen_rand_values"
#: What it does, behind its name.
MEANING = ("draws the random numbers of random.random, randint, randrange and uniform that the lines of the function "
           "draw: all at once, in their order, before the graph runs")


def random_values(text: str) -> list[str]:
    """Return the names of such functions in a text, each once."""
    return list(dict.fromkeys(re.findall(rf"\b{BEGINNING}_\d+\b", text))) if BEGINNING in text else []

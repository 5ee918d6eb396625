"""Budgets: in come the records of a run and what it may have at most, out comes what is beyond that.

    budget("breaks", "0")               -> Budget("breaks", 0.0)
    judge({"": capture}, [that budget])     -> one Result: 2 graph breaks, with the place and cause of each
    sentences(results)                      -> "2 graph breaks, beyond the budget of 0:", "  generate.py:21 in ..."

``budget`` reads what a user gives (``depyf check``, ``@pytest.mark.compiles``), ``judgement`` holds it against each
rank, ``sentences`` says it: what is the same on several ranks once.
"""

class A:
    """A docstring."""
    global x
    x
    x = 1

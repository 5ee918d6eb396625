"""Starts depyf in a program that ``depyf run`` runs, where no ``depyf_start.pth`` is installed.

This folder is then the first of ``PYTHONPATH``. The ``sitecustomize`` that would have been found without it is run
afterwards, and nothing of this folder is left in ``sys.path``. Any Python may come by here, so the text is plain.
"""


def _start():
    import os
    import sys

    folder = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    if sys.version_info >= (3, 10):
        added = package not in sys.path
        if added:  # depyf runs from a folder that only the command knows of
            sys.path.append(package)
        try:
            from depyf.program import start

            start.begin()
        except Exception as error:
            sys.stderr.write("depyf: the program cannot be watched: %s\n" % (error,))
        if added:
            sys.path.remove(package)  # the package knows where it is
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401  (that of the user's)
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


_start()

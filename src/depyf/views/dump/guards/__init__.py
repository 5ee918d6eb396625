"""Guards as people read them, from the conditions of :mod:`depyf.model.guards`.

``versions`` has the versions of a function with their conditions and what differs between two of them, ``sizes`` what
conditions leave open, ``layers`` folds what repeats. Of these are made ``call`` (what a call must satisfy, for the full
code) and ``whole`` (all conditions, a file of its own).
"""

"""Guards in readable form, from the conditions of :mod:`depyf.model.guards`.

``versions`` has the versions of a function with their conditions and the differences between two, ``sizes`` the open
sizes. ``functions`` makes Python of these: what a call must satisfy, for the full code, and all conditions.
"""

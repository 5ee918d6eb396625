"""The forms that the text of Dynamo's code may use, besides plain Python.

==============================  ===========================================================================
``new(cls, a=x, b=y)``          ``cls.__new__(cls)``, with these entries in its ``__dict__``: an object that the
                                traced function made, made again without calling its class
``new(cls, {'k': x}, a=y)``     the same for a class that is a dictionary itself, which holds these items; with a
                                list for one that is a list
``vars(x)['a'] = y``            an entry in the ``__dict__`` of an object, whatever its class says to attributes
``module.buffer = y``           ``module._buffers.update({'buffer': y})``, where the class of the module does just that
==============================  ===========================================================================
"""

from __future__ import annotations

#: Makes an object again.
NEW = "new"
#: The entries of an object.
ENTRIES = "vars"
#: Goes over lists side by side, where what repeats is written once.
SIDE_BY_SIDE = "zip"
#: Stands for ``for k, v in entries.items(): cls.__setitem__(made, k, v)`` while code is simplified.
UPDATE = "<update>"

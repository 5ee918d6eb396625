"""What torch says, as typed, immutable values.

``guards`` has the conditions, ``Tensor``, ``Type``, ``Equals``, ``Range`` and so on, in the user's words; ``reading``
makes them of the guards in the records. ``arithmetic`` computes with sizes.

::

    Guard("2 <= L['x'].size()[0] <= 64", ...)    ->    Range(subject="x.shape[0]", left="x.shape[0]", low=2, high=64)
"""

"""What torch says, as typed, immutable values.

``guards`` has the conditions, ``Tensor``, ``Type``, ``Equals``, ``Range`` and so on, in the user's words; ``reading``
makes them of the guards in the records. ``arithmetic`` computes with sizes. ``graph`` has graphs with their nodes,
which ``graph_text`` reads from torch's print, and facts on the operations in them. ``folding`` joins equal layers,
equal ranks, and ranges of numbers.

::

    Guard("2 <= L['x'].size()[0] <= 64", ...)    ->    Range(subject="x.shape[0]", left="x.shape[0]", low=2, high=64)
    relu: "f32[2, 4]" = l_x_.relu();  l_x_ = None    ->    Node("relu", "call_method", "relu", ("l_x_",), ...)
"""

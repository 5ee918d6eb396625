"""Undo what torch's code generator does: module reads, objects made again, side effects, repeated layers.

In: Dynamo's code, and facts about the live objects that it was compiled for (:mod:`.facts`). Out: text with a small,
documented set of forms (:mod:`.global_names`), and the same with the forms expanded (:mod:`.written_out`), which is
compiled, proven, and run. ::

    self._modules['layers']._modules['0']._parameters['weight']     what runs
    self.layers[0].weight                                           what is read
"""

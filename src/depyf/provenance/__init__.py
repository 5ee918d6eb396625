"""Provenance: user line, captured node, node of a later stage, kernel, and back, from records alone.

    y = torch.relu(self.linear(x))      model.py:12, the user's line
    relu                                captured graph            torch says the line of each node
    addmm, relu                         post-grad graph           alignment.py: aligned with the captured nodes
    cpp_fused_addmm_relu_0(...)         generated module          kernel_mapping: which of its calls computes which node

:class:`~.graph_provenance.Provenance` answers in both directions, from a graph's stages and kernels. ``alignment``
matches the nodes of two stages, ``kernel_mapping`` calls of kernels and nodes; ``sources`` finds the user's files.
"""

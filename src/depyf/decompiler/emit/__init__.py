"""Write a syntax tree as text that every supported Python reads, and write the text's positions back into the tree.

Input: an ``ast.Module``, whose nodes may be refined ones (:mod:`depyf.decompiler.nodes`). Output: text.
:mod:`.text` checks names and depth, and writes the text, syntax that the running ``ast`` has no nodes for, too;
:mod:`.layout` breaks lines that are too long; :mod:`.escapes` writes names that no source can have::

    Try(body, [star handler], ...) on Python 3.10     ->     except* ValueError:
    Call(g, [a, b, ...]), 130 columns wide            ->     g(
                                                                 a,
                                                                 b,
                                                             )
"""

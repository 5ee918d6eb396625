"""Readers of what torch prints: graphs, guards, reasons, expressions, modules that Inductor wrote.

Nothing here imports torch.
"""

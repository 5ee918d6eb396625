"""Watching ``torch.compile``: records of what it did."""

"""Syntax trees to text that every supported Python reads."""

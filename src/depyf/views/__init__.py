"""Views of a capture: the files people read."""

"""Guards as people read them.

``conditions`` puts the guards of the records into the user's words; ``sizes`` names what they leave open; ``facts``
says what they come to for each object; ``layers`` folds what repeats. Of these are made ``call`` (what a call must
satisfy, for the full code), ``whole`` (all conditions, a file of its own), ``changes`` (what differs between two
versions) and ``symbols`` (what the symbols in a graph are). ``versions`` holds what all of them take.
"""

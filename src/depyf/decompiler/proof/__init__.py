"""Proofs that the text is the same program as the code, or an equivalent one. Independent of how the text was made."""

"""What holds for all tests."""

import os

# Tests look at files right after the block that they are made of; what makes them beside the program has its own tests.
os.environ["DEPYF_FILES"] = "now"

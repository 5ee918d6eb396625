"""Run as ``paused_program.py BACKEND DIRECTORY``: stops at a planted fault."""

import sys

import planted_faults
import torch

import depyf

if __name__ == "__main__":
    compiled = torch.compile(planted_faults.log_of_a_negative, backend=sys.argv[1])
    with depyf.prepare_debug(sys.argv[2]):
        compiled(torch.rand(4, 4))
    with depyf.debug(stop_on="nan"):
        compiled(torch.rand(4, 4))
    print("done")

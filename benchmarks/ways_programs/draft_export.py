"""``torch.export``: a draft of a program that depends on data, and an export that fails."""

import torch
from torch.export._draft_export import draft_export


class Pick(torch.nn.Module):
    """Takes as many rows as a tensor says."""

    def forward(self, x, n):
        count = n.item()
        return x[:count].sum() if count > 2 else x.sum()


class Branch(torch.nn.Module):
    """Decides by the values of its input."""

    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


program = draft_export(Pick(), (torch.ones(4, 3), torch.tensor(3)))
print(len(program.graph.nodes) > 2)
try:
    torch.export.export(Branch(), (torch.ones(4),))
except Exception as error:
    print(type(error).__name__)

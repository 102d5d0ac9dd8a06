"""
Update a network without regressions
====================================

A small network knows three classes. It learns examples from elsewhere by forward passes
alone, with a constraint on each example that it is right about today. Needs PyTorch:
``pip install "dszog[torch]"``.
"""

# %%
# The network as it is in use.

from __future__ import annotations

import sys

try:
    import torch
except ImportError:
    sys.exit("This example needs PyTorch: pip install torch")

import dszog.torch as dt

torch.manual_seed(0)
torch.set_num_threads(1)
rule = torch.randn(8, 3)


def examples(n: int, shift: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs around a point, and their classes."""
    inputs = torch.randn(n, 8) + shift
    return inputs, (inputs @ rule).argmax(1)


keep, new, unseen = examples(2000, 0.0), examples(500, 2.0), examples(2000, 2.0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(keep[0]), keep[1]).backward()
    optimizer.step()

# %%
# Its update: some 350 iterations, each of 832 examples forward.


def share_right() -> float:
    """Return how many of the unseen examples from elsewhere are right."""
    return float((model(unseen[0]).argmax(1) == unseen[1]).float().mean())


before = share_right()
report = dt.update(model, new, keep, max_forwards=3e5, seed=0)
print(report)
print(f"unseen, right: {before:.3f} before, {share_right():.3f} after")

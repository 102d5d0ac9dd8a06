"""
Update a transformer on a GPU
=============================

A transformer of 1.3 million weights knows sixteen kinds of sentences. It learns ones
that have fewer key words and some misleading ones, with a constraint on each of 20,000
sentences that it is right about today: by forward passes alone, then with gradients.
Without a GPU a smaller network is updated for show. Needs PyTorch:
``pip install "dszog[torch]"``.
"""

# %%
# Sentences, and the network as it is in use.

from __future__ import annotations

import copy
import sys

try:
    import torch
except ImportError:
    sys.exit("This example needs PyTorch: pip install torch")

import dszog.torch as dt

device = "cuda" if torch.cuda.is_available() else "cpu"
is_gpu = device == "cuda"
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = True
n_keep, width, length = (20_000, 128, 64) if is_gpu else (2000, 32, 16)
rate = 6.0 / length  # of key words


def sentences(n: int, keys: float, decoys: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sentences of 4,096 words; a share of them are key words of their kind."""
    kinds = torch.randint(16, (n,), device=device)
    words = torch.randint(3000, (n, length), device=device)
    luck = torch.rand(n, length, device=device)
    of_kind = 3000 + torch.randint(40, (n, length), device=device)
    words = torch.where(luck < keys, of_kind + 60 * kinds[:, None], words)
    is_decoy = (luck >= keys) & (luck < keys + decoys)
    others = (kinds + 1) % 16
    return torch.where(is_decoy, of_kind + 60 * others[:, None], words), kinds


class Reader(torch.nn.Module):  # type: ignore[misc]
    """Words and places, four layers, and the mean of what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(4096, width)
        self.places = torch.nn.Parameter(0.1 * torch.randn(length, width))
        layer = torch.nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = torch.nn.TransformerEncoder(
            layer, 4 if is_gpu else 1, enable_nested_tensor=False
        )
        self.head = torch.nn.Linear(width, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a number for each kind."""
        found: torch.Tensor = self.head(
            self.layers(self.words(x) + self.places).mean(1)
        )
        return found


keep, unseen_old = (sentences(n, rate, 0.0) for n in (n_keep, n_keep // 5))
new, unseen = (sentences(n_keep // 5, 0.6 * rate, 0.5 * rate) for _ in range(2))
model = Reader().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(1500 if is_gpu else 200):
    i = torch.randint(n_keep, (256,), device=device)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(keep[0][i]), keep[1][i]).backward()
    optimizer.step()

# %%
# Its update. The passes of an iteration are recorded once and replayed; what was in
# training mode is in evaluation mode meanwhile, and the report says so.


def share_right(net: torch.nn.Module, pair: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Return how many examples are right."""
    with torch.no_grad():
        outputs = torch.cat([net.eval()(some) for some in pair[0].split(2000)])
    return float((outputs.argmax(1) == pair[1]).float().mean())


before = share_right(model, unseen), share_right(model, unseen_old)
print(f"unseen, right: {before[0]:.3f} of the new, {before[1]:.3f} of the old")
for gradients in (False, True):
    updated = copy.deepcopy(model)
    passes = 4e6 if is_gpu else 6e4
    report = dt.update(updated, new, keep, gradients=gradients, max_forwards=passes)
    print(f"\nwith gradients: {gradients}\n{report}")
    now = share_right(updated, unseen), share_right(updated, unseen_old)
    print(f"unseen, right: {now[0]:.3f} of the new, {now[1]:.3f} of the old")

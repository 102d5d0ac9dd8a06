"""Checks and figures of dszog.torch on any device: one line of JSON each.

python tools/gpu.py checks      # the CPU and the GPU have the same signs and weights
python tools/gpu.py pace        # an iteration over its own forward passes
python tools/gpu.py digits --seed 0 --forwards 10.6e6 --device cpu
python tools/gpu.py shift --seed 0 --forwards 1e7 --gradients
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from itertools import pairwise
from typing import Any

import torch
from torch.nn.functional import cross_entropy

import dszog.torch as dt
from dszog.methods.named import PointName
from dszog.torch.space import digest_of


def dense(*sizes: int) -> Any:
    """Return a network of dense layers, the same on every device."""
    torch.manual_seed(0)
    layers: list[Any] = []
    for n_in, n_out in pairwise(sizes):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def trained(net: Any, pair: tuple[Any, Any], n_steps: int) -> Any:
    """Return the network after some steps of Adam."""
    inputs, targets = pair
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(n_steps):
        i = torch.randint(len(inputs), (min(1024, len(inputs)),), device=inputs.device)
        optimizer.zero_grad()
        cross_entropy(net(inputs[i]), targets[i]).backward()
        optimizer.step()
    return net


def checks(given: Any) -> dict[str, Any]:
    """Have the CPU and the device move and perturb the same network."""
    found: dict[str, Any] = {}
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        digests = []
        for device in ("cpu", given.device):
            net = dense(64, 256, 10).to(device=device, dtype=kind)
            before = digest_of(net.parameters())
            space = dt.ModuleSpace(net, seed=7)
            for t in range(200):
                for k in range(5):
                    with space.at(PointName(0, 0, k + 1, t, (0.0,) * 5).vector):
                        pass
            space.restore()
            kept = digest_of(net.parameters()) == before
            for t in range(1, 51):
                amounts = tuple(1e-3 * (k - 2.5) / t for k in range(5))
                space.go_to(PointName(t, t, 0, 0, amounts))
            digests.append((kept, digest_of(net.parameters())))
        found[str(kind)] = {
            "1,000 perturbations leave every bit": all(kept for kept, _ in digests),
            "same weights as on the CPU": digests[0][1] == digests[1][1],
        }
    return found


def pace(given: Any) -> dict[str, Any]:
    """Time iterations, and the forward passes they are made of."""
    found: dict[str, Any] = {}
    for width in (600, 2000):
        net = dense(64, width, width, width, 10).to(given.device)
        inputs = torch.randn(10_000, 64, device=given.device)
        targets = torch.randint(10, (10_000,), device=given.device)
        opt = dt.DSZOG(net, n_losses=10_000, n_constraints=10_000, start="sampled")

        def values(i: Any, inputs: Any = inputs, targets: Any = targets) -> Any:
            return cross_entropy(net(inputs[i]), targets[i], reduction="none")  # noqa: B023

        def closure(i: Any, j: Any, values: Any = values) -> Any:
            both = values(torch.cat([i, j]))
            return both[: len(i)], both[len(i) :] - 9.0

        def forwards(values: Any = values) -> None:
            with torch.no_grad():
                for n in (96,) * 6 + (256,):
                    values(torch.arange(n, device=given.device)).cpu()

        seconds = []
        for work in (lambda: opt.step(closure), forwards):  # noqa: B023
            for _ in range(3):
                work()
            begun = time.perf_counter()
            for _ in range(20):
                work()
            seconds.append((time.perf_counter() - begun) / 20)
        found[f"{opt.space.dim} weights"] = {
            "iteration ms": 1e3 * seconds[0],
            "forwards ms": 1e3 * seconds[1],
            "ratio": seconds[0] / seconds[1],
        }
    return found


def digits(given: Any) -> dict[str, Any]:
    """Learn digits that are rotated, and keep the upright ones."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    generator = torch.Generator().manual_seed(1)
    order = torch.randperm(len(loaded.target), generator=generator)
    inputs = torch.tensor(loaded.data / 16, dtype=torch.float32)[order].to(given.device)
    targets = torch.tensor(loaded.target)[order].to(given.device)
    turned = torch.rot90(inputs.view(-1, 8, 8), 1, (1, 2)).reshape(-1, 64)
    keep, new = (inputs[:900], targets[:900]), (turned[900:1500], targets[900:1500])
    net = trained(dense(64, 256, 10).to(given.device), keep, 600)
    held = (turned[1500:], targets[1500:]), (inputs[1500:], targets[1500:])
    return updated(given, net, new, keep, *held)


def shift(given: Any) -> dict[str, Any]:
    """Learn customers that lie elsewhere, and keep 100,000: one rule for all."""
    generator = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    first, second = drawn(32, 8) / 32**0.5, drawn(8, 10) / 8**0.5
    away = drawn(32)
    away = 5.0 * away / away.norm()

    def examples(n: int, where: Any) -> tuple[Any, Any]:
        inputs = drawn(n, 32) + where
        targets = (torch.tanh(inputs @ first) @ second).argmax(1)
        return inputs.to(given.device), targets.to(given.device)

    keep, held_old = examples(100_000, 0.0), examples(20_000, 0.0)
    new, held_new = examples(20_000, away), examples(20_000, away)
    net = trained(dense(32, 256, 256, 10).to(given.device), keep, 3000)
    return updated(given, net, new, keep, held_new, held_old)


def updated(
    given: Any, net: Any, new: Any, keep: Any, held_new: Any, held_old: Any
) -> dict[str, Any]:
    """Update a network with the defaults; count also where it has not seen."""

    def right(pair: Any) -> Any:
        with torch.no_grad():
            return net(pair[0]).argmax(1) == pair[1]

    before, old_right = right(held_new).float().mean().item(), right(held_old)
    begun = time.perf_counter()
    report = dt.update(
        net,
        new,
        keep,
        max_forwards=given.forwards,
        seed=given.seed,
        gradients=given.gradients,
        options=json.loads(given.options),
    )
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "forwards": report.n_forwards,
        "held-out new right, before": before,
        "held-out new right, after": right(held_new).float().mean().item(),
        "kept": report.n_kept,
        "regressions": len(report.regressions),
        "held-out regressions": int((old_right & ~right(held_old)).sum()),
        "of": int(old_right.sum()),
    }


def main() -> None:
    """Do what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    tasks = {"checks": checks, "pace": pace, "digits": digits, "shift": shift}
    parser.add_argument("task", choices=tasks)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--forwards", type=float, default=1e6)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--options", default="{}")
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default)
    given = parser.parse_args()
    name = platform.machine()
    if given.device != "cpu":
        name = torch.cuda.get_device_name()
    found = tasks[given.task](given)
    about = {key: value for key, value in vars(given).items() if key != "device"}
    about |= {"device": name, "torch": torch.__version__}
    print(json.dumps(about | found), flush=True)


if __name__ == "__main__":
    main()

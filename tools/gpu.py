"""Checks, paces and updates of dszog.torch on any device: one line of JSON each.

python tools/gpu.py checks                 # the CPU and the GPU have the same weights
python tools/gpu.py pace --size 1e6        # an iteration over its own forward passes
python tools/gpu.py kills --n 100          # killed and resumed: one digest
python tools/gpu.py update --data digits --method dszog --seed 0 --forwards 10.6e6
python tools/gpu.py jobs --list rivals --name adult-gradients --seed 100 > jobs
xargs -P 4 -L 1 python tools/gpu.py < jobs >> figures.jsonl

Methods are dszog, uniform (all constraints alike), replay (old examples among the new
ones), plain (no constraints) and cooper (needs cooper-optim), with --gradients or
without. Adult is read from the folder DSZOG_DATA; networks that are trained for this
are kept in the folder DSZOG_NETWORKS, if there is one.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import lzma
import os
import platform
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import dszog.torch as dt
from dszog import kernels
from dszog.methods import named
from dszog.methods.named import PointName
from dszog.torch.space import digest_of

# ----------------------------------------------------------------------------- networks


def dense(*sizes: int) -> Any:
    """Return a network of dense layers, the same on every device."""
    torch.manual_seed(0)
    layers: list[Any] = []
    for n_in, n_out in pairwise(sizes):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class Part(torch.nn.Module):
    """A part of a transformer."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in "ab")
        self.inward = torch.nn.Linear(width, 3 * width)
        self.outward = torch.nn.Linear(width, width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        n, length, width = x.shape
        parts = self.inward(self.norms[0](x)).view(n, length, 3, self.n_heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.outward(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Transformer(torch.nn.Module):
    """Sixteen classes of sentences of 64 words."""

    def __init__(self, width: int, n_parts: int, n_heads: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = torch.nn.Embedding(4096, width)
        self.places = torch.nn.Embedding(64, width)
        self.parts = torch.nn.ModuleList(Part(width, n_heads) for _ in range(n_parts))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, 16)
        torch.nn.init.normal_(self.words.weight, std=0.1)
        self.register_buffer("order", torch.arange(64))

    def forward(self, x: Any) -> Any:
        x = self.words(x) + self.places(self.order)
        for part in self.parts:
            x = part(x)
        return self.head(self.norm(x[:, -1]))


SIZES = {
    "1e5": (32, 1, 4),
    "1e6": (128, 4, 4),
    "1e7": (320, 8, 5),
    "1e8": (768, 14, 12),
    "1e9": (2048, 20, 16),
}


def each_loss(outputs: Any, targets: Any) -> Any:
    """Return one loss for each example."""
    return functional.cross_entropy(outputs.float(), targets, reduction="none")


# ------------------------------------------------------------------------------- checks


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
    for way in ({}, {"record": False}, {"layers": 1}):
        runs = [small_run(given.device, **way) for _ in range(2)]
        found[f"two runs are one, {way or 'recorded'}"] = runs[0] == runs[1]
        found[f"digest, {way or 'recorded'}"] = runs[0][:16]
    return found


def small_run(device: str, folder: str = "", layers: int = 0, **more: Any) -> str:
    """Return the digest of a short run, saved or not."""
    large = dt.space.LARGE
    dt.space.LARGE = layers or large
    net = Transformer(*SIZES["1e5"]).to(device)
    words = torch.randint(4096, (500, 64), device=device)
    targets = torch.randint(16, (500,), device=device)

    def values(i: Any) -> Any:
        return each_loss(net(words[i]), targets[i])

    if folder:
        more |= {"checkpoint": folder, "resume": True}
    result = dt.minimize(
        net,
        dt.Losses(values, 500),
        dt.Constraints(lambda j: values(j) - 3.0, 500),
        options={"loss_batch": 8, "constraint_batch": 8, "dual_batch": 16},
        max_iterations=300,
        seed=3,
        **more,
    )
    dt.space.LARGE = large
    return f"{result.weights_digest} {result.digest}"


def kills(given: Any) -> dict[str, Any]:
    """Kill a saved run again and again, go on, and compare; then replay its moves.

    Each is a process of its own, forked before the device is touched.
    """

    def apart(folder: str = "", end: int = -1) -> tuple[int, str]:
        """Return how a process ended, and the digest of its run."""

        def die(progress: Any) -> None:
            if progress.iteration >= end >= 0:
                os.kill(os.getpid(), 9)

        ours, theirs = os.pipe()
        number = os.fork()
        if not number:
            digest = small_run(given.device, folder, callback=die)
            os.write(theirs, digest.encode())
            os._exit(0)
        os.close(theirs)
        status = os.waitpid(number, 0)[1]
        with os.fdopen(ours) as said:
            return os.waitstatus_to_exitcode(status), said.read()

    straight = apart()[1]
    with tempfile.TemporaryDirectory() as folder:
        rng, n_killed = np.random.default_rng(0), 0
        for number in range(given.n):
            end = int((number + rng.random()) * 300 / given.n)
            n_killed += apart(folder, end)[0] == -9
        last = apart(folder)[1]
        begun = time.perf_counter()
        again = apart(folder)[1]  # it is over: nothing but its moves
        seconds = time.perf_counter() - begun
    return {
        "killed": n_killed,
        "one digest": len(straight) > 64 and last == straight,
        "replayed without a pass, one digest": again == straight,
        "replay s": round(seconds, 2),
    }


# --------------------------------------------------------------------------------- pace


def pace(given: Any) -> dict[str, Any]:
    """Time iterations, and a recording of the forward passes they are made of."""
    torch.backends.cuda.matmul.allow_tf32 = given.tf32
    kind = getattr(torch, given.kind)
    net = Transformer(*SIZES[given.size]).to(given.device, kind).eval()
    words = torch.randint(4096, (20_000, 64), device=given.device)
    targets = torch.randint(16, (20_000,), device=given.device)
    is_gpu = given.device != "cpu"
    n_times = 7 if given.size == "1e9" else 30

    def closure(i: Any, j: Any) -> Any:
        which = torch.cat([i, j])
        both = each_loss(net(words[which]), targets[which])
        return both[: len(i)], both[len(i) :] - given.bound

    indices = torch.arange(352, device=given.device)

    def forwards() -> Any:
        with torch.no_grad():
            values = [*closure(indices[:64], indices[64:])]
            for _ in range(5):
                values += closure(indices[:64], indices[64:96])
            return torch.cat(values).double()

    def timed(work: Any) -> float:
        for _ in range(3):
            work()
        seconds = []
        for _ in range(n_times):
            wait()
            begun = time.perf_counter()
            work()
            wait()
            seconds.append(time.perf_counter() - begun)
        return 1e3 * float(np.median(seconds))

    wait, memory = (lambda: None), []
    floor: Any = forwards
    if is_gpu:
        wait = torch.cuda.synchronize
        forwards()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            values = forwards()
        floor = graph.replay
    floor_ms = [timed(floor)]
    eager_ms = timed(forwards)
    if is_gpu:
        memory.append(torch.cuda.max_memory_reserved())
        del values, graph, floor
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    opt = dt.DSZOG(
        net,
        n_losses=20_000,
        n_constraints=20_000,
        record=True,
        step_size=1e-6,
        start="sampled",
    )
    ours = timed(lambda: opt.step(closure))
    found = {
        "weights": opt.space.dim,
        "by layers": opt.space._layers is not None,
        "recorded": bool(opt.passes._recordings),
        "iteration ms": ours,
        "touched": len(opt.weights[0]),
    }
    if is_gpu:
        memory.append(torch.cuda.max_memory_reserved())
        found["memory GB, ours"] = memory[1] / 1e9
        found["memory GB, inference"] = memory[0] / 1e9
        found["memory over inference"] = memory[1] / memory[0]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            values = forwards()
        floor_ms.append(timed(graph.replay))
    found["forwards ms, twice"] = floor_ms
    found["forwards ms, not recorded"] = eager_ms
    found["over forwards"] = ours / float(np.mean(floor_ms))
    return found


def step_pace(given: Any) -> dict[str, Any]:
    """Time steps with gradients, and plain ones of as many passes."""
    found: dict[str, Any] = {}
    torch.backends.cuda.matmul.allow_tf32 = given.tf32
    cases = {
        "dense": (dense(32, 256, 256, 10), lambda n: torch.randn(n, 32), 10),
        "transformer 1e6": (
            Transformer(*SIZES["1e6"]),
            lambda n: torch.randint(4096, (n, 64)),
            16,
        ),
    }
    for name, (net, draw, n_classes) in cases.items():
        net = net.to(given.device)
        inputs = draw(20_000).to(given.device)
        targets = torch.randint(n_classes, (20_000,), device=given.device)

        with torch.no_grad():  # two in a hundred are broken
            bound = each_loss(net(inputs[:500]), targets[:500]).quantile(0.98)

        def closure(i: Any, j: Any, net: Any = net, x: Any = inputs, y: Any = targets):
            which = torch.cat([i, j])
            both = each_loss(net(x[which]), y[which])
            return both[: len(i)], both[len(i) :] - bound  # noqa: B023

        adam = torch.optim.Adam(net.parameters(), lr=1e-6)
        opt = dt.DSZOG(net, n_losses=20_000, n_constraints=20_000, optimizer=adam)

        def plain(net: Any = net, x: Any = inputs, y: Any = targets, adam: Any = adam):
            drawn = np.random.default_rng(0).integers(20_000, size=181)
            which = torch.from_numpy(drawn).to(x.device)
            adam.zero_grad()
            each_loss(net(x[which]), y[which]).mean().backward()
            adam.step()

        ms = []
        for work in (plain, lambda: opt.step(closure)) * 3:  # noqa: B023
            for _ in range(8):
                work()
            if given.device != "cpu":
                torch.cuda.synchronize()
            begun = time.perf_counter()  # the mean: one in four of ours looks
            for _ in range(200):
                work()
                if given.device != "cpu":
                    torch.cuda.synchronize()
            ms.append(1e3 * (time.perf_counter() - begun) / 200)
        found[name] = {
            "plain, ours, in turns, ms": ms,
            "over plain": float(np.median(np.divide(ms[1::2], ms[::2]))),
        }
    return found


# ------------------------------------------------------------------------------ updates


def trained(net: Any, pair: tuple[Any, Any], n_steps: int) -> Any:
    """Return the network after some steps of Adam."""
    inputs, targets = pair
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(n_steps):
        i = torch.randint(len(inputs), (min(1024, len(inputs)),)).to(inputs.device)
        optimizer.zero_grad()
        functional.cross_entropy(net(inputs[i]), targets[i]).backward()
        optimizer.step()
    return net


def digits(device: str) -> tuple[Any, ...]:
    """Return what is new (digits that are rotated) and what to keep (upright ones)."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    generator = torch.Generator().manual_seed(1)
    order = torch.randperm(len(loaded.target), generator=generator)
    inputs = torch.tensor(loaded.data / 16, dtype=torch.float32)[order].to(device)
    targets = torch.tensor(loaded.target)[order].to(device)
    turned = torch.rot90(inputs.view(-1, 8, 8), 1, (1, 2)).reshape(-1, 64)
    keep, new = (inputs[:900], targets[:900]), (turned[900:1500], targets[900:1500])
    net = trained(dense(64, 256, 10).to(device), keep, 600)
    held = (turned[1500:], targets[1500:]), (inputs[1500:], targets[1500:])
    return net, new, keep, *held


def shift(device: str) -> tuple[Any, ...]:
    """Return customers that lie elsewhere, and 100,000 to keep: one rule for all."""
    generator = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    first, second = drawn(32, 8) / 32**0.5, drawn(8, 10) / 8**0.5
    away = drawn(32)
    away = 5.0 * away / away.norm()

    def examples(n: int, where: Any) -> tuple[Any, Any]:
        inputs = drawn(n, 32) + where
        targets = (torch.tanh(inputs @ first) @ second).argmax(1)
        return inputs.to(device), targets.to(device)

    keep, held_old = examples(100_000, 0.0), examples(20_000, 0.0)
    new, held_new = examples(20_000, away), examples(20_000, away)
    net = trained(dense(32, 256, 256, 10).to(device), keep, 3000)
    return net, new, keep, held_new, held_old


def sentences(device: str) -> tuple[Any, ...]:
    """Return sentences with fewer key words and decoys, and 100,000 to keep."""
    generator = torch.Generator(device).manual_seed(5)

    def whole(high: int, *shape: int) -> Any:
        return torch.randint(high, shape, generator=generator, device=device)

    def drawn(n: int, rate: float, decoys: float) -> tuple[Any, Any]:
        targets, words = whole(16, n), whole(3000, n, 64)
        luck = torch.rand(n, 64, generator=generator, device=device)
        keys = 3000 + whole(40, n, 64)
        others = (targets + 1) % 16
        words = torch.where(luck < rate, keys + 60 * targets[:, None], words)
        is_decoy = (luck >= rate) & (luck < rate + decoys)
        return torch.where(is_decoy, keys + 60 * others[:, None], words), targets

    n_keep = 100_000 if device != "cpu" else 2000
    keep, held_old = drawn(n_keep, 0.10, 0.0), drawn(20_000, 0.10, 0.0)
    new, held_new = drawn(20_000, 0.06, 0.05), drawn(20_000, 0.06, 0.05)
    net = Transformer(*SIZES["1e6"]).to(device)
    torch.nn.init.normal_(net.words.weight, std=0.1)
    adam = torch.optim.Adam(net.parameters())
    n_steps = 2500 if device != "cpu" else 5
    for t in range(n_steps):
        i = torch.randint(n_keep, (256,), device=device)
        with torch.autocast(torch.device(device).type, torch.bfloat16):
            loss = functional.cross_entropy(net(keep[0][i]).float(), keep[1][i])
        adam.param_groups[0]["lr"] = 1e-3 * (1 - t / n_steps)
        adam.zero_grad()
        loss.backward()
        adam.step()
    return net.eval(), new, keep, held_new, held_old


def adult(device: str) -> tuple[Any, ...]:
    """Return people with a degree, and those without, whom the network knows."""
    rows, is_test = [], []
    for part in ("data", "test"):
        path = Path(os.environ["DSZOG_DATA"]) / f"adult.{part}.xz"
        with lzma.open(path, "rt") as file:
            found = [line.strip(" .\n").split(", ") for line in file]
        rows += [row for row in found if len(row) == 15]
        is_test += [part == "test"] * (len(rows) - len(is_test))
    columns, numbers = list(zip(*rows, strict=True)), (0, 2, 4, 10, 11, 12)
    parts = []
    for place, column in enumerate(columns[:14]):
        if place in numbers:
            values = np.log1p(np.array(column, float))
            parts.append(((values - values.mean()) / values.std())[:, None])
        else:
            kinds = np.unique(column)
            parts.append((np.array(column)[:, None] == kinds).astype(float))
    inputs = torch.tensor(np.hstack(parts), dtype=torch.float32, device=device)
    targets = torch.tensor([one == ">50K" for one in columns[14]]).long().to(device)
    degree = np.array(columns[4], int) >= 13

    def some(which: Any) -> tuple[Any, Any]:
        places = torch.from_numpy(np.flatnonzero(which)).to(device)
        return inputs[places], targets[places]

    test = np.array(is_test)
    keep, held_old = some(~degree & ~test), some(~degree & test)
    new, held_new = some(degree & ~test), some(degree & test)
    net = trained(dense(inputs.shape[1], 128, 64, 2).to(device), keep, 500)
    return net, new, keep, held_new, held_old


DATA = {"digits": digits, "shift": shift, "sentences": sentences, "adult": adult}


@functools.cache
def loaded(name: str, device: str) -> tuple[Any, ...]:
    """Return a network that is trained, what is new, to keep, and both held out."""
    folder = os.environ.get("DSZOG_NETWORKS")
    if folder is None:
        return DATA[name](device)
    path = Path(folder) / f"{name}-{device}.pt"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        torch.save(DATA[name](device), part)
        os.replace(part, path)
    return torch.load(path, weights_only=False)


BOUNDS = [
    (where, name, getattr(where, name))
    for where, names in ((named, ("REACH", "MOST")), (dt.doors, ("WANDER", "STEADY")))
    for name in names
]


def update(given: Any) -> dict[str, Any]:
    """Update a network in some way; count also where it has not seen."""
    torch.backends.cuda.matmul.allow_tf32 = given.data == "sentences"
    net, new, keep, held_new, held_old = loaded(given.data, given.device)
    net = copy.deepcopy(net)

    def right(pair: Any) -> Any:
        with torch.no_grad():
            outputs = [net(some) for some in pair[0].split(2000)]
        return torch.cat(outputs).argmax(1) == pair[1]

    before = right(held_new).float().mean().item()
    old_right, kept_right = right(held_old), right(keep)
    options, begun = json.loads(given.options), time.perf_counter()
    learnt = new
    if given.method == "replay":
        learnt = _mixed(new, keep, options.pop("share", 0.5))
    if given.method != "dszog":
        way = by_others if given.gradients else by_signs
        n_forwards = way(given, net, learnt, keep, kept_right, options)
    else:
        for where, name, value in BOUNDS:  # all that bounds the step
            setattr(where, name, given.factor * value)
        optimizer, n_looks = None, 2 * (len(learnt[0]) + len(keep[0]))
        if given.gradients and given.rate:
            optimizer = torch.optim.Adam(net.parameters(), lr=given.rate)
        report = dt.update(
            net,
            learnt,
            keep,
            max_forwards=given.forwards + n_looks,  # looks are not counted here
            seed=given.seed,
            gradients=given.gradients,
            optimizer=optimizer,
            options=options,
        )
        n_forwards = report.n_forwards - n_looks
    worse = kept_right & ~right(keep)
    finite = all(bool(torch.isfinite(one).all()) for one in net.parameters())
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "passes": n_forwards,
        "held-out new right, before": before,
        "held-out new right, after": right(held_new).float().mean().item(),
        "new right, after": right(new).float().mean().item(),
        "kept": int(kept_right.sum()),
        "regressions": int(worse.sum()),
        "held-out regressions": int((old_right & ~right(held_old)).sum()),
        "of": int(old_right.sum()),
        "finite": finite,
    }


def _mixed(new: Any, keep: Any, share: float) -> tuple[Any, Any]:
    """Return new examples with a share of old ones among them."""
    n = len(new[0]) + len(keep[0])
    i = torch.arange(n - int(share * n)) % len(new[0])
    j = torch.arange(int(share * n)) % len(keep[0])
    inputs, targets = (torch.cat([a[i], b[j]]) for a, b in zip(new, keep, strict=True))
    return inputs, targets


def _wanted(net: Any, new: Any, keep: Any, kept_right: Any) -> tuple[Any, int]:
    """Return losses and constraints by indices, as `update` has them; how many."""
    kept = kept_right.nonzero().squeeze(1)

    def values(i: Any, j: Any) -> tuple[Any, Any]:
        which = kept[j]
        outputs = net(torch.cat([new[0][i], keep[0][which]]))
        losses = each_loss(outputs[: len(i)], new[1][i])
        return losses, 0.1 - margins(outputs[len(i) :], keep[1][which])

    return values, len(kept)


def by_signs(
    given: Any, net: Any, new: Any, keep: Any, kept_right: Any, options: Any
) -> int:
    """Update by forward passes: plain, replay, or one penalty for all; the last point.

    As many passes in each iteration as ours.
    """
    values, m = _wanted(net, new, keep, kept_right)
    batch = {"loss_batch": 138, "constraint_batch": 1, "penalty": 1e-12}
    if given.method == "uniform":
        batch = {"loss_batch": 64, "constraint_batch": 75}
    n_steps = int(given.forwards / (6 * 139))
    opt = dt.DSZOG(
        net,
        n_losses=len(new[0]),
        n_constraints=m,
        n_iterations=n_steps,
        seed=given.seed,
        record=True,
        distribution="uniform",
        **(batch | options),
    )
    opt.method = replace(opt.method, step_size=given.factor * opt.method.step_size)
    for _ in range(n_steps):
        opt.step(values)
    return opt.n_forwards


def by_others(
    given: Any, net: Any, new: Any, keep: Any, kept_right: Any, options: Any
) -> int:
    """Update by Adam: plain, replay, one penalty for all, or Cooper's multipliers."""
    options = {"dual_rate": 0.1, "penalty": 1.0, "augmented": 0.0} | options
    rate, n_steps = given.rate or 1e-3, int(given.forwards / (3 * 181))
    n_kept = 117 if given.method in ("uniform", "cooper") else 0
    both, m = _wanted(net, new, keep, kept_right)
    device = new[0].device
    torch.manual_seed(given.seed)

    def values() -> tuple[Any, Any, Any]:
        i = torch.randint(len(new[0]), (181 - n_kept,), device=device)
        j = torch.randint(m, (n_kept,), device=device)
        losses, over = both(i, j)
        return losses.mean(), over, j

    adam = torch.optim.Adam(net.parameters(), lr=rate)
    step = _cooper(values, m, adam, options) if given.method == "cooper" else None
    for t in range(n_steps):
        adam.param_groups[0]["lr"] = rate * max(1 - t / n_steps, 1e-3)
        if step is not None:
            step()
            continue
        loss, over, _ = values()
        if n_kept:
            loss = loss + options["penalty"] * over.clamp_min(0.0).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return n_steps * 3 * 181


def _cooper(values: Any, m: int, adam: Any, options: Any) -> Any:
    """Return a step of Cooper's Lagrangian, with a multiplier for each constraint."""
    import cooper

    device = adam.param_groups[0]["params"][0].device

    class Problem(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            kind, more = cooper.formulations.Lagrangian, None
            if options["augmented"]:
                kind = cooper.formulations.AugmentedLagrangian
                more = cooper.penalty_coefficients.DensePenaltyCoefficient(
                    torch.tensor(options["augmented"], device=device)
                )
            self.kept = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY,
                formulation_type=kind,
                penalty_coefficient=more,
                multiplier=cooper.multipliers.IndexedMultiplier(
                    num_constraints=m, device=device
                ),
            )

        def compute_cmp_state(self) -> Any:
            loss, over, j = values()
            state = cooper.ConstraintState(violation=over, constraint_features=j)
            return cooper.CMPState(loss=loss, observed_constraints={self.kept: state})

    problem = Problem()
    duals = torch.optim.SGD(
        problem.dual_parameters(), lr=options["dual_rate"], maximize=True
    )
    return cooper.optim.SimultaneousOptimizer(
        cmp=problem, primal_optimizers=adam, dual_optimizers=duals
    ).roll


def margins(outputs: Any, targets: Any) -> Any:
    """Return by how much the right class leads."""
    places = targets[:, None]
    own = outputs.gather(1, places).squeeze(1)
    return own - outputs.scatter(1, places, -torch.inf).amax(1)


# --------------------------------------------------------------------------------- jobs


def jobs(given: Any) -> dict[str, Any]:
    """Print what belongs together, a line for each: pipe them into xargs."""
    data = {
        name + more.replace(" -", ""): f"update --data {name} --forwards {n}{more}"
        for name, n, more in (
            ("digits", "10.6e6", ""),
            ("shift", "5e7", ""),
            ("sentences", "8e6", ""),
            ("adult", "1e7", ""),
            ("shift", "1e7", " --gradients"),
            ("adult", "1e6", " --gradients"),
            ("sentences", "2e6", " --gradients"),
        )
    }
    rivals = [("plain", {}), *(("replay", {"share": s}) for s in (0.5, 0.75, 0.9))]
    alike = [("uniform", {"penalty": p}) for p in (1, 10, 100, 1000)]
    cooper = [
        ("cooper", {"dual_rate": r, "augmented": a})
        for r in (0.01, 0.1, 1)
        for a in (0, 1, 10)
    ]
    lists = {
        "paces": [
            f"pace --size {size} {more}"
            for size in ("1e6", "1e7", "1e8", "1e9")
            for more in ("", "--tf32", "--kind bfloat16")
        ],
        "steps": [
            f"update --forwards 3e6 --factor {f}" for f in (0.18, 0.4, 1, 2.5, 5.5)
        ],
        "ours": [
            f"{data[given.name]} --seed {seed}"
            for seed in range(given.seed, given.seed + given.n)
        ],
        "rivals": [  # out of these each of them chooses, on one seed
            f"{data[given.name]} --seed {given.seed} {speed} --method {method} "
            f"--options '{json.dumps(options)}'"
            for speed in (
                ("--rate 3e-4", "--rate 1e-3", "--rate 3e-3")
                if "gradients" in given.name
                else ("--factor 0.1", "--factor 0.3", "--factor 1", "--factor 3")
            )
            for method, options in rivals + alike + cooper * ("gradients" in given.name)
        ],
    }
    for line in lists[given.list]:
        print(line, f"--device {given.device}")
    sys.exit()


def main() -> None:
    """Do what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    tasks = {
        one.__name__: one for one in (checks, pace, step_pace, kills, update, jobs)
    }
    parser.add_argument("task", choices=tasks)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="that many, from --seed")
    parser.add_argument("--forwards", type=float, default=1e6)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--method", default="dszog")
    parser.add_argument("--options", default="{}")
    parser.add_argument("--factor", type=float, default=1.0, help="of the step")
    parser.add_argument("--rate", type=float, default=0.0, help="of Adam")
    parser.add_argument("--size", choices=SIZES, default="1e6")
    parser.add_argument("--kind", default="float32")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--bound", type=float, default=3.5, help="of losses, for paces")
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--list", default="ours", help="of jobs")
    parser.add_argument("--name", default="digits", help="of data, for jobs")
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # after it one can still fork
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default)
    given = parser.parse_args()
    torch.set_num_threads(1)
    keys = {
        "update": (
            *("data", "method", "gradients", "seed"),
            *("forwards", "options", "factor", "rate"),
        ),
        "pace": ("size", "kind", "tf32"),
        "kills": ("n",),
    }.get(given.task, ())
    for seed in range(given.seed, given.seed + given.seeds):
        given.seed = seed
        found = tasks[given.task](given)
        name = platform.machine()
        if given.device != "cpu":
            name = torch.cuda.get_device_name()
        about = {"task": given.task, "device": name, "torch": torch.__version__}
        about["kernels"] = kernels.chosen().NAME
        about |= {key: getattr(given, key) for key in keys}
        print(json.dumps(about | found), flush=True)


if __name__ == "__main__":
    main()

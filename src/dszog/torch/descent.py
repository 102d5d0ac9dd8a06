"""An update with gradients: an optimiser steps down the weighted batch.

A saved one is written once a minute and at its end: the weights, the optimiser's
tensors, and where the weights over the constraints stand. What was done since the last
file is done again, to the same bits where passes give the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from dszog.contract import ProblemSize
from dszog.errors import CheckpointError, InputError
from dszog.methods.start import StartPass
from dszog.save.container import dump_json, load_json
from dszog.save.encoding import Arrays, decode, encode
from dszog.torch.doors import NetworkOptimizer, check_empty, evaluating, print_of
from dszog.torch.functions import TorchConstraints, TorchLosses, both_of
from dszog.torch.moves import EVERY, save_tensors

RATE = 1e-3  # of Adam, where no optimiser is given
FILE = "gradients.safetensors"


def descend(
    model: Any,
    params: Sequence[Any],
    losses: TorchLosses,
    constraints: TorchConstraints,
    *,
    optimizer: Any,
    n_forwards: int,
    options: dict[str, Any],
    seed: int,
    checkpoint: Any = None,
    resume: bool = False,
) -> int:
    """Take as many steps as the passes allow; return how many passes it took."""
    m = len(constraints)
    options = {"start": "sampled" if m > n_forwards / 10 else "exact"} | options
    opt = NetworkOptimizer(
        params,
        n_losses=len(losses),
        n_constraints=m,
        seed=seed,
        optimizer=optimizer,
        horizon_queries=max(n_forwards, 1),
        **options,
    )
    n_losses, n_drawn, n_duals = opt.method.batches(opt.state.size)
    n_start = (
        m
        if options["start"] == "exact"
        else StartPass.sample_size(opt.state.size, n_forwards)
    )
    if opt.method.distribution == "uniform":
        n_start = n_duals = 0
    each = 3 * (n_losses + n_drawn) + n_duals
    n = (n_forwards - n_start) // each
    if n < 1:
        raise InputError(
            f"dszog.torch.update: with gradients the looks and one step take "
            f"{n_start + each:,} forward passes more than max_forwards allows beside "
            f"the looks before and after ({n_forwards:,}). Raise it."
        )
    if optimizer is None:
        opt.optimizer = torch.optim.Adam(params, lr=RATE)
    saved, first = None, 0
    if checkpoint is not None:
        about = f"{print_of(model, params)} {seed} {n_forwards} {m} {len(losses)}"
        saved = _Saved(Path(checkpoint), opt, about, resume)
        first = saved.n_done
    closure = both_of(losses, constraints)
    with evaluating(model):
        for t in range(first, n):
            if optimizer is None:
                for group in opt.optimizer.param_groups:
                    group["lr"] = RATE * max(1.0 - t / n, 1e-3)
            opt.step(closure)
            if saved is not None:
                saved.after(t + 1, is_last=t + 1 == n)
    return n_start + n * each


class _Saved:
    """A folder with one file, of a run with gradients."""

    def __init__(
        self, folder: Path, opt: NetworkOptimizer, about: str, resume: bool
    ) -> None:
        check_empty(folder, resume)
        folder.mkdir(parents=True, exist_ok=True)
        self._path, self._opt, self._about = folder / FILE, opt, about
        self._due = time.perf_counter() + EVERY
        self.n_done = 0
        if self._path.exists():
            self._read()

    def after(self, n_done: int, *, is_last: bool) -> None:
        """Write where the run stands, if it is time."""
        if not is_last and time.perf_counter() < self._due:
            return
        arrays: Arrays = []
        state = dump_json(encode(self._opt.state, arrays)).decode()
        tensors = {f"state.{i}": torch.tensor(one) for i, one in enumerate(arrays)}
        for name, weights in enumerate(self._opt.space.weights):
            tensors[f"weights.{name}"] = weights.cpu().contiguous()
        numbers, held = {}, self._opt.optimizer.state_dict()
        for place, values in held["state"].items():
            for name, value in values.items():
                if isinstance(value, torch.Tensor):
                    tensors[f"optimizer.{place}.{name}"] = value.cpu().contiguous()
                else:
                    numbers[f"{place}.{name}"] = value
        facts = {
            "about": self._about,
            "n_done": n_done,
            "groups": held["param_groups"],
            "numbers": numbers,
        }
        about = {"state": state, "facts": json.dumps(facts)}
        save_tensors(self._path, tensors, about)
        self._due = time.perf_counter() + EVERY

    def _read(self) -> None:
        """Put network, optimiser and state to what the file says."""
        opt = self._opt
        try:
            with safe_open(self._path, "pt") as file:
                about = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            facts = json.loads(about["facts"])
            if facts["about"] != self._about:
                raise CheckpointError(
                    "The folder holds another run. Use the settings, examples and "
                    "frozen weights that it began with, or an empty folder."
                )
            arrays = [
                tensors[f"state.{i}"].numpy()
                for i in range(sum(name.startswith("state.") for name in tensors))
            ]
            size: ProblemSize = opt.state.size
            opt.state = decode(load_json(about["state"].encode()), arrays, size)
            for name, weights in enumerate(opt.space.weights):
                weights.copy_(tensors[f"weights.{name}"])
            state: dict[int, dict[str, Any]] = {}
            rest = {n[10:]: t for n, t in tensors.items() if n.startswith("optimizer.")}
            for key, value in (rest | facts["numbers"]).items():
                place, name = key.split(".", 1)
                state.setdefault(int(place), {})[name] = value
            opt.optimizer.load_state_dict(
                {"state": state, "param_groups": facts["groups"]}
            )
            self.n_done = int(facts["n_done"])
        except CheckpointError:
            raise
        except Exception as error:  # whatever a damaged file makes of it
            raise CheckpointError(f"{FILE} cannot be read: {error}") from error

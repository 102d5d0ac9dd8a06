"""An update with gradients: an optimiser's steps down losses and broken constraints.

A saved one is written once a minute and at its end: the weights and the optimiser's
tensors. What was done since the last file is done again, to the same bits where passes
give the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dszog.contract.arrays import frozen_floats
from dszog.contract.interrupts import Interrupts
from dszog.errors import EvaluationError, InputError
from dszog.run.history import Progress
from dszog.run.meter import Limits
from dszog.run.scipy_call import as_called
from dszog.show.progress import show_progress
from dszog.torch.first_order import (
    NOT_FINITE,
    TOGETHER,
    GradientSteps,
    check_optimizer,
    settings_of,
)
from dszog.torch.functions import TorchConstraints, TorchLosses, all_of, both_of
from dszog.torch.moves import EVERY, load_tensors, save_tensors
from dszog.torch.start import begin, facts_of, take_start

RATE = 3e-4  # of Adam, where no optimiser is given
FILE = "gradients.safetensors"
NO_POINT = frozen_floats(np.empty(0))  # the weights are where the network is


def descend(
    model: Any,
    named: Mapping[str, Any],
    losses: TorchLosses,
    constraints: TorchConstraints,
    *,
    optimizer: Any,
    n_forwards: int,
    options: dict[str, Any],
    seed: int,
    max_time: float | None = None,
    checkpoint: Any = None,
    resume: bool = False,
    progress: bool = False,
    callback: Any = None,
) -> tuple[int, str]:
    """Take as many steps as passes and time allow.

    Return how many passes it took, and what else ended it. It ends where all looks are
    used, so that a saved run goes on from there.
    """
    begun, ended = time.perf_counter(), ""
    n, params = (len(losses), len(constraints)), list(named.values())
    adam = optimizer or torch.optim.Adam(params, lr=RATE)
    folder = None if checkpoint is None else Path(checkpoint).absolute()
    known = take_start(folder, resume, named)
    steps = GradientSteps(adam, params[0].device, n, seed, options)
    if n_forwards < steps.most_passes:
        raise InputError(
            f"dszog.torch.update: with gradients one step takes up to "
            f"{steps.most_passes:,} forward passes, more than max_forwards allows "
            f"beside the looks before and after ({n_forwards:,}). Raise it."
        )
    settings = {"seed": seed, "options": str(options), **settings_of(adam)}
    settings["max_forwards, less the looks"] = n_forwards
    # Losses may vary: there are no differences of them to drown in it.
    facts = facts_of(model, named, losses, constraints, may_vary=True, **settings)
    saved, limits = None, Limits(queries=n_forwards, time=max_time)
    if folder is not None:
        tensors = {name: one.detach().cpu().contiguous() for name, one in named.items()}
        begin(folder, model, tensors, known, facts)
        saved = _Saved(folder / FILE, params, steps)
        begun -= saved.seconds
    closure = both_of(losses, constraints)
    last = n_forwards - steps.most_passes
    held = check_optimizer("dszog.torch.update", adam, params)
    moving = _moving(model, held, adam)
    with moving, Interrupts() as interrupts, ExitStack() as opened:
        told = [as_called(one, "dszog") for one in all_of(callback)]
        if progress:
            told.append(opened.enter_context(show_progress(limits)))
        is_last = steps.n_passes > last
        while not is_last:
            gone = steps.n_passes / n_forwards
            if max_time is not None:
                elapsed = time.perf_counter() - begun
                gone = min(max(gone, elapsed / max_time), 1.0)
            if optimizer is None:
                for group in adam.param_groups:
                    group["lr"] = RATE * max(1.0 - gone, 1e-3)
            interrupts.hold()
            info = steps.step(closure, gone)
            elapsed = time.perf_counter() - begun
            now = Progress(
                iteration=steps.n_steps,
                n_queries=steps.n_passes,
                elapsed=elapsed,
                x=NO_POINT,
                sampled_objective=info.sampled_objective,
                sampled_violation=info.sampled_violation,
                sampled_share=info.sampled_share,
                n_touched=info.n_touched,
            )
            ended = ended or _stopped_by(told, now)
            if interrupts.interrupted():
                ended = "The run was interrupted."
            if max_time is not None and elapsed >= max_time:
                ended = ended or "The time is up."
            is_whole = not steps.n_steps % TOGETHER
            is_last = steps.n_passes > last or (bool(ended) and is_whole)
            if is_last and not all(bool(one.isfinite().all()) for one in params):
                raise EvaluationError(NOT_FINITE)
            if saved is not None:
                saved.after(elapsed, is_last=is_last)
    return steps.n_passes, ended


def _stopped_by(told: list[Any], progress: Progress) -> str:
    """Tell those who want to know how far it is; return what ends the run, if any."""
    try:
        for one in told:
            one(progress)
    except StopIteration:
        return "A callback ended the run."
    except KeyboardInterrupt:
        return "The run was interrupted."
    return ""


@contextmanager
def _moving(model: Any, ids: set[int], optimizer: Any) -> Iterator[None]:
    """Have gradients of some weights alone, and none left: others stay where they are.

    The optimiser may hold more of them than may change.
    """
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in ids]
    for one in others:
        one.requires_grad_(False)
    try:
        yield
    finally:
        for one in others:
            one.requires_grad_(True)
        optimizer.zero_grad()


class _Saved:
    """The file of a run with gradients: where it stands."""

    def __init__(self, path: Path, params: Sequence[Any], steps: GradientSteps) -> None:
        self._path, self._params, self._steps = path, params, steps
        self._due, self.seconds = time.perf_counter() + EVERY, 0.0
        if path.exists():
            self._read()

    def after(self, seconds: float, *, is_last: bool) -> None:
        """Write where the run stands, if it is time."""
        steps = self._steps
        is_due = time.perf_counter() >= self._due and not steps.n_steps % TOGETHER
        if not (is_last or is_due):
            return
        tensors = {
            f"weights.{name}": one.detach().cpu().contiguous()
            for name, one in enumerate(self._params)
        }
        numbers, held = {}, steps.optimizer.state_dict()
        for place, values in held["state"].items():
            for name, value in values.items():
                if isinstance(value, torch.Tensor):
                    tensors[f"optimizer.{place}.{name}"] = value.cpu().contiguous()
                else:
                    numbers[f"{place}.{name}"] = value
        facts = {
            "done": [steps.n_steps, steps.n_passes, seconds],
            "groups": held["param_groups"],
            "numbers": numbers,
        }
        save_tensors(self._path, tensors, facts)
        self._due = time.perf_counter() + EVERY

    def _read(self) -> None:
        """Put network, optimiser and steps to what the file says."""
        tensors, facts = load_tensors(self._path)
        with torch.no_grad():
            for name, weights in enumerate(self._params):
                weights.copy_(tensors[f"weights.{name}"])
        state: dict[int, dict[str, Any]] = {}
        rest = {n[10:]: t for n, t in tensors.items() if n.startswith("optimizer.")}
        for key, value in (rest | facts["numbers"]).items():
            place, name = key.split(".", 1)
            state.setdefault(int(place), {})[name] = value
        self._steps.optimizer.load_state_dict(
            {"state": state, "param_groups": facts["groups"]}
        )
        *done, self.seconds = facts["done"]
        self._steps.n_steps, self._steps.n_passes = map(int, done)

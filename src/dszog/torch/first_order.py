"""Steps with gradients: down the losses and those constraints that are broken.

Many constraints are looked at by forward passes, without gradients, every few steps.
Those that hold have none to give: only the broken ones, which are few, go back through
the network. The penalty rises over the run: first learn, then mend what is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from dszog.contract.arrays import all_finite
from dszog.contract.validation import check_count, check_positive_number
from dszog.errors import EvaluationError, InputError
from dszog.maths.random_stream import stream
from dszog.methods.base import Info
from dszog.torch.functions import check_options
from dszog.torch.passes import Both

DEFAULTS = {
    "penalty": 10.0,
    "loss_batch": 64,
    "dual_batch": 352,
    "constraint_batch": 32,
}
RISE = 100.0  # times the penalty at the end of a run
TOGETHER = 4  # steps whose constraints are looked at by one pass
AHEAD = 16  # such looks whose draws are made at once
NOT_FINITE = (
    "dszog.torch: the network gives values that are not finite. Lower the rate of the "
    "optimiser, and compute losses in float32."
)


def settings_of(optimizer: Any) -> dict[str, Any]:
    """Return what decides how an optimiser steps, beside its state, by name."""
    found: dict[str, Any] = {"optimizer": type(optimizer).__name__}
    groups = optimizer.state_dict()["param_groups"]
    for name in dict.fromkeys(name for group in groups for name in group):
        if name != "params":
            values = dict.fromkeys(_plain(group.get(name)) for group in groups)
            found[f"optimizer {name}"] = ", ".join(values)
    return found


def _plain(value: Any) -> str:
    return str(value.item() if isinstance(value, torch.Tensor) else value)


def check_optimizer(owner: str, optimizer: Any, changing: Iterable[Any]) -> set[int]:
    """Return the ids of weights that it moves; refuse one that cannot move any."""
    groups = getattr(optimizer, "param_groups", ())
    held = {id(one) for group in groups for one in group["params"]}
    moved = held.intersection(map(id, changing))
    if not moved:
        raise InputError(
            f"{owner}: `optimizer` must hold weights of the network that may change, "
            f"got {type(optimizer).__name__} with none of them. Make it of "
            "model.parameters(), after the last copy of the model."
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InputError(
            f"{owner}: `optimizer` must step by itself, got LBFGS, which asks for "
            "values again. Use Adam or SGD."
        )
    return moved


class GradientSteps:
    """An optimiser's steps down ``mean loss + penalty * mean squared violation``.

    Of options, `loss_batch` losses are drawn for a step and `dual_batch` constraints
    looked at; at most `constraint_batch` of those that are broken get a gradient.
    """

    def __init__(
        self,
        optimizer: Any,
        device: Any,
        n: tuple[int, int],
        seed: int,
        options: Mapping[str, Any],
    ) -> None:
        check_options(options, DEFAULTS, "with gradients ")
        chosen = DEFAULTS | dict(options)
        owner = "dszog.torch"
        self.penalty = check_positive_number(owner, "penalty", chosen.pop("penalty"))
        n_losses, n_looks, n_most = (
            check_count(owner, k, v) for k, v in chosen.items()
        )
        self.optimizer, self._device, self._n, self._seed = optimizer, device, n, seed
        self._batches = min(n_losses, n[0]), min(TOGETHER * n_looks, n[1])
        self._most = n_most
        self._draws: tuple[int, Any] = (-1, None)
        self._broken: list[tuple[Any, int]] = []  # for each turn, and how many
        self._info = Info()
        self.n_steps = self.n_passes = 0
        self._sees_weights = False

    @property
    def most_passes(self) -> int:
        """What a step takes at most: a backward pass counts as two."""
        n_losses, n_looks = self._batches
        return n_looks + 3 * (n_losses + self._most)

    def step(self, both: Both, gone: float) -> Info:
        """Take a step; `both` gives losses and constraints, by indices.

        `gone` is the share of the run that is over.
        """
        i, j = self._drawn()
        turn = self.n_steps % TOGETHER
        if turn == 0:
            self._look(both, i[:0], j)
        mine, n_mine = self._broken[turn]
        self.optimizer.zero_grad()
        with torch.enable_grad():
            losses, over = both(i, mine)
        if not losses.requires_grad or (n_mine and not over.requires_grad):
            raise InputError(
                "dszog.torch: losses and constraints must have gradients, got values "
                "without. Compute them in PyTorch from what the network gives, without "
                "detach() and not in torch.inference_mode(); or leave gradients out."
            )
        if turn == 0 or self._device.type == "cpu":  # to wait for a GPU takes its time
            value = float(losses.detach().double().mean())
            if not math.isfinite(value):
                raise EvaluationError(NOT_FINITE)
            self._info = self._info._replace(sampled_objective=value)
        share = self.penalty * RISE**gone * n_mine * TOGETHER / len(j)
        # All is scaled to the larger of both weights: no optimiser shall run away. What
        # the mean and the penalty pass back is known without them: fewer launches.
        scale = 1.0 / max(1.0, share)
        values, slopes = [losses], [torch.full_like(losses, scale / len(i))]
        if n_mine:
            values.append(over)  # beyond 1 the square goes on as a line
            slope = over.detach().clamp(0.0, 1.0)
            slopes.append(slope.mul_(2.0 * share * scale / len(mine)))
        torch.autograd.backward(values, slopes)
        held = (one for group in self.optimizer.param_groups for one in group["params"])
        if not self._sees_weights and all(one.grad is None for one in held):
            raise InputError(
                "dszog.torch: no parameter of the optimiser got a gradient: do losses "
                "and constraints use this network? Compute them with the network that "
                "was given, not with a copy of it, and make the optimiser of its "
                "parameters."
            )
        self._sees_weights = True
        try:
            self.optimizer.step()
        except RuntimeError as error:
            if "sparse" not in str(error):
                raise
            raise InputError(
                f"dszog.torch: {type(self.optimizer).__name__} cannot take a step: "
                f"{error}. Make embeddings with sparse=False; or give an optimizer for "
                "both kinds of gradients, such as torch.optim.SGD."
            ) from error
        self.n_steps += 1
        self.n_passes += 3 * (len(i) + len(mine))
        return self._info

    def _look(self, both: Both, no_losses: Any, j: Any) -> None:
        """Find the broken constraints of the next steps."""
        with torch.no_grad():
            found = both(no_losses, j)[1].double().cpu()
        values = found.numpy()
        if not all_finite(values):
            raise EvaluationError(NOT_FINITE)
        broken = (found > 0.0).nonzero().squeeze(1)
        turns = [broken[turn::TOGETHER] for turn in range(TOGETHER)]
        where = j[torch.cat([one[: self._most] for one in turns]).to(self._device)]
        parts = where.split([min(len(one), self._most) for one in turns])
        self._broken = [(p, len(one)) for p, one in zip(parts, turns, strict=True)]
        self.n_passes += len(values)
        over = np.maximum(values, 0.0)
        self._info = Info(
            sampled_violation=float(over.max()),
            sampled_share=len(broken) / len(over),
            weighted_violation=float(over.sum()) / max(len(broken), 1),
            n_touched=len(broken),
        )

    def _drawn(self) -> tuple[Any, Any]:
        """Return the losses of this step, and the constraints that were looked at."""
        block, place = divmod(self.n_steps, AHEAD * TOGETHER)
        if self._draws[0] != block:
            rng, (n_losses, n_looks) = stream(self._seed, block), self._batches
            losses = rng.integers(self._n[0], size=(AHEAD * TOGETHER, n_losses))
            looks = np.tile(np.arange(n_looks), (AHEAD, 1))
            if n_looks < self._n[1]:
                looks = rng.integers(self._n[1], size=(AHEAD, n_looks))
            tables = [torch.from_numpy(one).to(self._device) for one in (losses, looks)]
            self._draws = block, tables
        losses, looks = self._draws[1]
        return losses[place], looks[place // TOGETHER]

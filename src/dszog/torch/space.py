"""The weights of a network as the variables of a run: moved and perturbed in place.

A copy keeps them while they are perturbed, in float32 where they are coarser; each
perturbation and each move starts from it, so nothing drifts and no small move is lost.
Names of points (:mod:`dszog.methods.named`) say
where to go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from dszog.contract.arrays import FloatArray
from dszog.contract.signs import BLOCK, Signs
from dszog.contract.validation import shown
from dszog.errors import DszogError, InputError, InputTypeError
from dszog.methods.named import PointName
from dszog.torch.moves import MoveLog
from dszog.torch.signs import add_signs

REFUSED = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
KINDS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class ModuleSpace:
    """Holds the trainable weights of a network, and follows names.

    Parameters
    ----------
    model : torch.nn.Module
    params : "all", or names or parts of names, or parameters
        Which weights may change: of those that require gradients.
    seed : int
        Of the directions.
    radius : float
        How far along a direction the network is perturbed.
    """

    def __init__(
        self, model: Any, params: Any = "all", seed: int = 0, radius: float = 1e-3
    ) -> None:
        self.model = model
        self.radius = radius
        self.named = chosen_parameters(model, params)
        self.weights = [one.detach() for one in self.named.values()]
        self.device = self.weights[0].device
        self.places, end = [], 0
        for one in self.weights:
            self.places.append(end)
            end += -(-one.numel() // BLOCK) * BLOCK
        self.span = end
        self.dim = sum(one.numel() for one in self.weights)
        self.seed = seed
        self.start = [_exact(one).cpu() for one in self.weights]
        self._kept = [_exact(one) for one in self.weights]
        self._perturbed: tuple[int, int] | None = None
        self.n_moves = 0
        self._aside: tuple[int, list[Any]] | None = None
        self.log: MoveLog | None = None  # where moves are written down, if saved

    @property
    def norm(self) -> float:
        """The Euclidean length of the weights."""
        return float(
            np.sqrt(sum(float(one.double().square().sum()) for one in self._kept))
        )

    def digest(self) -> str:
        """Return a print of the weights."""
        return digest_of(self._kept)

    # ---------------------------------------------------------------------- to points

    @contextmanager
    def at(self, point: FloatArray) -> Iterator[None]:
        """Have the network at a point, by its name, for the length of the block."""
        name = PointName.of(point)
        self.go_to(name)
        wanted = (name.perturbed_at, name.perturbed) if name.perturbed else None
        if wanted != self._perturbed:
            if wanted is None:
                self.restore()
            else:
                self.perturb(name.perturbed_at, name.perturbed - 1)
        try:
            yield
        except BaseException:
            self.restore()
            raise

    def perturb(self, iteration: int, number: int) -> None:
        """Put the network to the end of a step along a direction."""
        self._perturbed = iteration, number + 1
        signs = Signs(self.seed, iteration, (number,), self.span, self.radius)
        self._write(self.weights, signs, (self.radius,))

    def restore(self) -> None:
        """Undo a perturbation, to the bit."""
        if self._perturbed is not None:
            for one, kept in zip(self.weights, self._kept, strict=True):
                one.copy_(kept)
            self._perturbed = None

    def go_to(self, name: PointName) -> None:
        """Move the network to an iterate: the next one, the start, or a logged one."""
        if name.n_moves == self.n_moves:
            return
        if name.n_moves == self.n_moves + 1:
            self.move(name)
            return
        if name.n_moves == 0:  # a look back from the end, or a new beginning
            self._aside = self.n_moves, [one.cpu().clone() for one in self._kept]
            self.load(self.start, 0)
            return
        if self._aside is not None and name.n_moves == self._aside[0]:
            self.load(self._aside[1], self._aside[0])
            return
        if self.log is None:
            raise DszogError(
                f"The network is at move {self.n_moves}, the run asks for move "
                f"{name.n_moves}. This is a bug in dszog: please report it."
            )
        found = self.log.snapshot_before(name.n_moves)
        if found is not None and (
            not self.n_moves < name.n_moves or found[0] > self.n_moves
        ):
            self.load([found[1][key] for key in self.named], found[0])
        elif self.n_moves > name.n_moves:
            self.load(self.start, 0)
        for move in self.log.moves(self.n_moves + 1, name.n_moves):
            self.move(move)

    def follow(self, progress: Any) -> None:
        """Move on after an iteration: a callback, also while a journal is replayed."""
        name = PointName.of(progress.x)
        self.go_to(name)
        if self.log is not None:
            self.log.note(name)
            if self.log.is_due:
                self.log.write_snapshot(name.n_moves, self.tensors())

    def move(self, name: PointName) -> None:
        """Take one move, from where the network is."""
        self.restore()
        signs = name.move(self.seed, self.span)
        self._write(self._kept, signs, name.amounts)
        for one, kept in zip(self.weights, self._kept, strict=True):
            one.copy_(kept)
        self.n_moves = name.n_moves

    def load(self, tensors: Iterable[Any], n_moves: int) -> None:
        """Put the network to weights that are given."""
        for one, kept, tensor in zip(self.weights, self._kept, tensors, strict=True):
            kept.copy_(tensor)
            one.copy_(kept)
        self._perturbed, self.n_moves = None, n_moves

    def tensors(self) -> dict[str, Any]:
        """Return the weights by name, on the CPU."""
        kept = zip(self.named, self._kept, strict=True)
        return {name: one.cpu().clone() for name, one in kept}

    def _write(self, to: list[Any], signs: Signs, amounts: tuple[float, ...]) -> None:
        flat = [
            one.view(-1) if one.is_contiguous() else torch.empty_like(kept).view(-1)
            for one, kept in zip(to, self._kept, strict=True)
        ]
        kept = [one.view(-1) for one in self._kept]
        add_signs(kept, flat, self.places, signs, amounts)
        for one, moved in zip(to, flat, strict=True):
            if not one.is_contiguous():
                one.copy_(moved.view(one.shape))


def _exact(weights: Any) -> Any:
    """Return a copy in which small moves are not lost."""
    kind = torch.float64 if weights.dtype == torch.float64 else torch.float32
    return weights.to(kind, memory_format=torch.contiguous_format, copy=True)


def chosen_parameters(model: Any, params: Any) -> dict[str, Any]:
    """Return the parameters that may change, by name; refuse what cannot be."""
    if type(model).__name__ in REFUSED:
        raise InputTypeError(
            f"dszog.torch: a {type(model).__name__} spreads a network over devices, "
            "which is not supported. Pass model.module, on one device."
        )
    if not isinstance(model, torch.nn.Module):
        raise InputTypeError(
            f"dszog.torch: `model` must be a torch.nn.Module, got {shown(model)}. Pass "
            "the network itself."
        )
    trainable = {n: p for n, p in model.named_parameters() if p.requires_grad}
    if isinstance(params, str) and params == "all":
        found = trainable
    else:
        wanted = [params] if isinstance(params, str) else list(params)
        ids = {id(one) for one in wanted if not isinstance(one, str)}
        parts = [one for one in wanted if isinstance(one, str)]
        for part in parts:
            if not any(part in name for name in trainable):
                raise InputError(
                    f"dszog.torch: no trainable weight is called {part!r}. There are: "
                    f"{', '.join(list(trainable)[:6])}, ..."
                )
        found = {
            name: one
            for name, one in trainable.items()
            if id(one) in ids or any(part in name for part in parts)
        }
    if not found:
        raise InputError(
            "dszog.torch: there is nothing to change, got a network without trainable "
            "weights. Set requires_grad_(True) on those that may change."
        )
    devices = {str(one.device) for one in found.values()}
    if len(devices) > 1 or "meta" in devices:
        raise InputError(
            f"dszog.torch: the weights must be on one device, got {sorted(devices)}. "
            "Move the network there: model.to(device)."
        )
    for name, one in found.items():
        if one.dtype not in KINDS:
            raise InputError(
                f"dszog.torch: weights must be float64, float32, bfloat16 or float16, "
                f"got {one.dtype} for {name!r}. Freeze it: requires_grad_(False)."
            )
        if not bool(torch.isfinite(one.detach()).all()):
            raise InputError(
                f"dszog.torch: weights must be finite, got others in {name!r}. Load "
                "a network that was trained to its end."
            )
    return found


def digest_of(tensors: Iterable[Any]) -> str:
    """Return a print of tensors: the same for the same bits."""
    print_ = hashlib.sha256()
    for one in tensors:
        flat = one.detach().cpu().contiguous().reshape(-1)
        print_.update(flat.view(torch.uint8).numpy().tobytes())
    return print_.hexdigest()

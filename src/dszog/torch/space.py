"""The weights of a network as the variables of a run: moved and perturbed in place.

A copy keeps them while they are perturbed, in float32 where they are coarser; each
perturbation and each move starts from it, so nothing drifts and no small move is lost.
A large network is perturbed layer by layer instead (:mod:`dszog.torch.layers`). Names
of points (:mod:`dszog.methods.named`) say where to go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch

from dszog.contract.arrays import FloatArray
from dszog.contract.interrupts import held_interrupts
from dszog.contract.signs import BLOCK, GROUP, Signs
from dszog.contract.validation import shown
from dszog.errors import DszogError, InputError, InputTypeError
from dszog.methods.named import PointName
from dszog.torch.layers import Layers
from dszog.torch.moves import MoveLog
from dszog.torch.signs import Mover

LARGE = 2 * 10**7  # weights, from which on no copy is kept
REFUSED = {"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"}
NO_FLOAT64 = {"mps"}
KINDS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class ModuleSpace:
    """Holds the trainable weights of a network, and follows names.

    Parameters
    ----------
    model : torch.nn.Module
    params : "all", or parts of names, layers or parameters
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
        sizes = [-(-one.numel() // BLOCK) * BLOCK for one in self.weights]
        *self.places, self.span = accumulate(sizes, initial=0)
        self.dim = sum(one.numel() for one in self.weights)
        self.seed = seed
        self.start = [_exact(one.cpu()) for one in self.weights]
        self._kept = [_exact(one) if _needs_copy(one) else one for one in self.weights]
        self._layers: Layers | None = None
        self._restores = False  # whether copies are kept of all weights
        self._perturbed: tuple[int, int] | None = None
        self.n_moves = 0
        self._aside: tuple[int, list[Any]] | None = None
        self.log: MoveLog | None = None  # where moves are written down, if saved
        signed = seed - 2**64 if seed >= 2**63 else seed
        self.words = torch.tensor([signed, 0], device=self.device)
        self._make_movers()
        self.seal()

    @property
    def norm(self) -> float:
        """The Euclidean length of the weights."""
        kind = torch.float64
        norms = [torch.linalg.vector_norm(one, dtype=kind) for one in self._kept]
        return float(torch.stack(norms).square().sum().sqrt())

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

    def prepare(self, look: Callable[[], Any]) -> None:
        """Perturb a large network by layers, if `look` sees the same values then."""
        if self._restores or self._layers is not None or self.dim < LARGE:
            return
        self._layers = Layers.of(self, look)
        if self._layers is None:
            self._keep_copies()

    def perturb(self, iteration: int, number: int) -> None:
        """Put the network to the end of a step along a direction."""
        signs = Signs(self.seed, iteration, (number,), self.span, self.radius)
        self._perturbed = iteration, number + 1
        if self._layers is not None:
            self._layers.perturb(signs)
            return
        if not self._restores:
            self._keep_copies()
        self._to_weights(signs, (self.radius,))

    def restore(self) -> None:
        """Undo a perturbation, to the bit."""
        if self._perturbed is not None:
            self._perturbed = None
            if self._layers is not None:
                self._layers.restore()
            else:
                self._to_weights()

    def close(self) -> None:
        """Leave the network alone, at the iterate."""
        self.restore()
        if self._layers is not None:
            self._layers.close()
            self._layers = None

    def go_to(self, name: PointName) -> None:
        """Move the network to an iterate: the next one, the start, or a logged one."""
        if name.n_moves != self.n_moves:
            with held_interrupts():  # half of a move would be taken for none
                self._go_to(name)

    def _go_to(self, name: PointName) -> None:
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
        signs, n = name.move(self.seed, self.span), len(name.amounts)
        if n in self._recorded:
            self._recorded[n](name.iteration, name.amounts)
        else:
            self._move(signs, name.amounts)
            if self._to_kept.is_launched and n <= GROUP:
                from dszog.torch.on_gpu import RecordedMove

                self._recorded[n] = RecordedMove(self._move, signs, self.words)
        self.n_moves = name.n_moves

    def _move(self, signs: Signs, amounts: Any) -> None:
        for begin in range(0, len(signs), GROUP):
            some = replace(signs, numbers=signs.numbers[begin:][:GROUP])
            self._to_kept(some, amounts[begin:][:GROUP])
        self._to_weights()

    def load(self, tensors: Iterable[Any], n_moves: int) -> None:
        """Put the network to weights that are given."""
        self.restore()
        for kept, tensor in zip(self._kept, tensors, strict=True):
            kept.copy_(tensor)
        self._to_weights()
        self.n_moves = n_moves

    def adopt(self) -> None:
        """Take weights that were changed from outside as where the network is."""
        pairs = [*zip(self._kept, self.weights, strict=True)]
        exact = [(a, b) for a, b in pairs if a is not b and a.dtype == b.dtype]
        if exact:
            torch._foreach_copy_(*map(list, zip(*exact, strict=True)))
        for (kept, one), version in zip(pairs, self._versions, strict=True):
            if kept.dtype != one.dtype and one._version != version:
                kept.copy_(one)  # a copy of all would lose small moves

    def seal(self) -> None:
        """Note how often weights were written to, so that `adopt` sees who else did."""
        self._versions = [one._version for one in self.weights]

    def tensors(self) -> dict[str, Any]:
        """Return the weights by name, on the CPU."""
        kept = zip(self.named, self._kept, strict=True)
        return {name: one.cpu().clone() for name, one in kept}

    def mover(self, which: Sequence[int], outs: Sequence[Any]) -> Mover:
        """Return who writes some weights, moved along directions, to other tensors."""
        bases, places = ([one[i] for i in which] for one in (self._kept, self.places))
        return Mover(bases, outs, places, self.words)

    def _keep_copies(self) -> None:
        both = zip(self._kept, self.weights, strict=True)
        self._kept = [_exact(kept) if kept is one else kept for kept, one in both]
        self._restores = True
        self._make_movers()

    def _make_movers(self) -> None:
        everything = range(len(self.weights))
        copied = [i for i in everything if self._kept[i] is not self.weights[i]]
        self._recorded: dict[int, Any] = {}  # moves, by how many directions
        self._to_kept = self.mover(everything, self._kept)
        self._to_weights = self.mover(copied, [self.weights[i] for i in copied])


def _exact(weights: Any) -> Any:
    """Return a copy in which small moves are not lost."""
    kind = torch.float64 if weights.dtype == torch.float64 else torch.float32
    return weights.to(kind, memory_format=torch.contiguous_format, copy=True)


def _needs_copy(weights: Any) -> bool:
    """Whether weights cannot be moved where they are."""
    is_exact = weights.dtype in (torch.float64, torch.float32)
    return not (is_exact and weights.is_contiguous())


def chosen_parameters(model: Any, params: Any) -> dict[str, Any]:
    """Return the parameters that may change, by name; refuse what cannot be."""
    if not isinstance(model, torch.nn.Module):
        raise InputTypeError(
            f"dszog.torch: `model` must be a torch.nn.Module, got {shown(model)}. Pass "
            "the network itself."
        )
    for kind in {type(one).__name__ for one in model.modules()} & REFUSED:
        raise InputTypeError(
            f"dszog.torch: a {kind} spreads a network over devices, which is not "
            "supported. Pass model.module, on one device."
        )
    for name, one in model.named_parameters():
        if torch.nn.parameter.is_lazy(one):
            raise InputError(
                f"dszog.torch: {name!r} has no shape yet. Call the network on an "
                "example before."
            )
    found = {n: p for n, p in model.named_parameters() if p.requires_grad}
    if not (isinstance(params, str) and params == "all"):
        is_one = isinstance(params, (str, torch.Tensor, torch.nn.Module))
        is_one = is_one or not isinstance(params, Iterable)
        names: set[str] = set()
        for one in [params] if is_one else params:
            names |= _names_of(one, model, found)
        found = {name: one for name, one in found.items() if name in names}
    if not found:
        raise InputError(
            "dszog.torch: there is nothing to change, got a network or `params` "
            "without trainable weights. Set requires_grad_(True) on those that may "
            "change."
        )
    kinds = {one.device.type for one in model.parameters()}
    if kinds & NO_FLOAT64:
        raise InputError(
            f"dszog.torch: the network is on {kinds.pop()!r}, where PyTorch has no "
            "float64. Move it to the CPU or a GPU of NVIDIA: model.to('cpu')."
        )
    devices = {str(one.device) for one in model.parameters()}
    if len(devices) > 1 or "meta" in devices:
        raise InputError(
            f"dszog.torch: the weights must be on one device, got {sorted(devices)}. "
            "Move the network there: model.to(device)."
        )
    for name, one in found.items():
        if one.is_inference():
            raise InputError(
                f"dszog.torch: {name!r} was made in torch.inference_mode(), where "
                "weights cannot be changed later. Build or load the network outside of "
                "it; torch.no_grad() will do."
            )
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


def _names_of(wanted: Any, model: Any, trainable: dict[str, Any]) -> set[str]:
    """Return the names of weights that are meant by one entry of `params`."""
    if isinstance(wanted, str):
        found = {name for name in trainable if wanted in name}
        if not found:
            raise InputError(
                f"dszog.torch: no trainable weight is called {wanted!r}. There are: "
                f"{', '.join(list(trainable)[:6])}, ..."
            )
        return found
    is_module = isinstance(wanted, torch.nn.Module)
    ids = {id(one) for one in (wanted.parameters() if is_module else [wanted])}
    if not ids <= {id(one) for one in model.parameters()}:
        raise InputError(
            f"dszog.torch: `params` must be weights of the network or parts of their "
            f"names, got {type(wanted).__name__}, which is none of them. Take them "
            "from this network, after its last copy."
        )
    return {name for name, one in trainable.items() if id(one) in ids}


def digest_of(tensors: Iterable[Any]) -> str:
    """Return a print of tensors: the same for the same bits."""
    print_ = hashlib.sha256()
    for one in tensors:
        flat = one.detach().cpu().contiguous().reshape(-1)
        print_.update(flat.view(torch.uint8).numpy().tobytes())
    return print_.hexdigest()

"""The forward passes of an iteration: all at the iterate, then along each direction.

On a GPU they are recorded once, perturbations included, and replayed: small networks
spend most of their time on launches. A recording is used only if it gives what the
passes give that it was made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from dszog.contract import Query, Reply
from dszog.contract.arrays import FloatArray
from dszog.errors import EvaluationError
from dszog.methods.named import PointName
from dszog.torch.space import ModuleSpace

Both = Callable[[Any, Any], tuple[Any, Any]]  # losses and constraints, by indices
CLOSE = 1e-3  # relative: what a recording may differ by, as sums are ordered otherwise
N_CHECKED = 2  # iterations whose recording is compared
AT_ONCE = 256  # examples of a forward pass, where many are looked at
SOME, FEW = 512, 100  # constraints that are looked at, and that must hold at the start
ALONG, PARTS = 16, 4  # directions along each of which a quarter of them is looked at
FAR, NEAR = 4, 16  # directions, and values of each kind, to see whether any moves
FLAT = 0.01  # of the losses, if fewer change when the weights do
BLIND = (
    "dszog.torch: none of the values changed when the weights were perturbed, not even "
    "by as much as their own size: does the closure use this network? Compute losses "
    "and constraints with the network that was given, not with a copy of it."
)
WANDERS = tuple(2.0 ** (-k / 2) for k in range(17))  # shares of the weights' length


def in_parts(look: Callable[[Any], Any], indices: Any) -> list[Any]:
    """Look at some indices at a time: at fewer, where memory does not suffice."""
    found, size = [], AT_ONCE
    while len(indices):
        try:
            found.append(look(indices[:size]))
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            size //= 2
        else:
            indices = indices[size:]
    return found


def device_failure(error: BaseException) -> EvaluationError | None:
    """Return what to say of a device that cannot go on; None where it is no such."""
    if isinstance(error, torch.OutOfMemoryError):
        torch.cuda.empty_cache()
        return EvaluationError(
            "dszog.torch: the GPU has not enough memory for the passes of an "
            "iteration. What was saved is whole. Use smaller batches, such as "
            "options={'loss_batch': 32, 'dual_batch': 64}, and go on with resume=True."
        )
    if _is_lost(error):
        return EvaluationError(
            f"dszog.torch: the GPU failed: {error}. What was saved is whole: start "
            "Python anew and go on with resume=True."
        )
    return None


def _is_lost(error: BaseException) -> bool:
    """Whether nothing on the device can be trusted now."""
    return "CUDA error" in str(error) and not isinstance(error, EvaluationError)


class Passes:
    """Answers the two queries of an iteration.

    `both` gives the values of losses and of constraints, by two tensors of indices; one
    of them may be empty. With `record` it must do the same in each call. What goes
    through the network beyond what the queries cost is charged, if the budget has it.
    """

    def __init__(self, space: ModuleSpace, both: Both, *, record: bool) -> None:
        self._space, self._both = space, both
        self._records = record and space.device.type == "cuda"
        self._recordings: dict[Any, _Recording] = {}
        self.charge: Callable[[int], bool] = lambda _: True
        self._sees_weights, self._n_seen, self._n_moved = False, 0, 0

    def __call__(self, around: Query, dual: Query) -> tuple[Reply, Reply]:
        """Return the values around the iterate, and those that weights learn from."""
        space = self._space
        numbers = tuple((around.steps[:, 2].astype(int) - 1).tolist())
        drawn, (distinct, places) = around.constraints, around.distinct_constraints
        # One that is drawn twice is evaluated twice: batches keep their shape.
        n_again = (1 + len(numbers)) * (len(drawn) - len(distinct))
        if n_again and not self.charge(n_again):
            drawn = distinct
        n = len(around.losses), len(drawn), len(dual.constraints)
        wanted = np.concatenate([around.losses, drawn, dual.constraints])
        iteration = int(around.steps[0, 3]) if len(around.steps) else 0
        space.go_to(PointName.of(around.x))
        space.restore()
        try:
            with torch.no_grad():
                found = self._found(wanted, n, numbers, iteration)
        except BaseException as error:
            self._give_up(error)
            raise
        n_around = n[0] + n[1]
        table = np.empty((1 + len(numbers), n_around))
        table[0], table[1:] = found[:n_around], found[sum(n) :].reshape(-1, n_around)
        self._note_moves(table, n[0], wanted[: n[0]], wanted[n[0] :])
        constraints = table[:, n[0] :].copy()
        if drawn is not around.constraints:
            constraints = constraints[:, places]
        return (
            Reply(table[:, : n[0]].copy(), constraints),
            Reply(np.empty((1, 0)), found[np.newaxis, n_around : sum(n)].copy()),
        )

    def _found(self, wanted: Any, n: Any, numbers: Any, iteration: int) -> FloatArray:
        def passes(indices: Any) -> Any:
            i, j = indices[: n[0]], indices[n[0] :]
            values = [*self._both(i, j)]
            for number in numbers:
                space.perturb(iteration, number)
                values += self._both(i, j[: n[1]])
            space.restore()
            return torch.cat(values).double()

        space, n_passed = self._space, len(wanted) + len(numbers) * (n[0] + n[1])
        if not self._recordings and (n_more := self._prepare(wanted[:2], wanted[-2:])):
            self.charge(n_more)
        recording = self._recordings.get((n, numbers))
        if recording is None and self._records and self.charge(n_passed):
            recording = self._recorded(passes, wanted, (n, numbers))
        if recording is not None and recording.n_checked < N_CHECKED:
            recording = recording if self.charge(n_passed) else None
        if recording is None:
            indices = torch.from_numpy(wanted).to(space.device)
            return np.asarray(passes(indices).cpu())
        found = recording.replay(wanted, iteration)
        if recording.n_checked < N_CHECKED:
            recording.n_checked += 1
            truth = np.asarray(passes(recording.indices).cpu())
            scale = float(np.abs(truth).max(initial=0.0))
            if not np.allclose(found, truth, CLOSE, CLOSE * scale, equal_nan=True):
                self._recordings, self._records = {}, False
                return truth
        return found

    def _prepare(self, *wanted: Any) -> int:
        """Have the space choose how to perturb; return how many values that took."""
        (i, j), n_looks = self._on_device(*wanted), 0

        def look() -> Any:
            nonlocal n_looks
            n_looks += len(i) + len(j)
            return torch.cat(self._both(i, j)).double()

        self._space.prepare(look)
        return n_looks

    def _on_device(self, *wanted: Any) -> Iterator[Any]:
        for one in wanted:
            yield torch.from_numpy(np.array(one)).to(self._space.device)

    @property
    def are_losses_flat(self) -> bool:
        """Whether hardly any loss changed when the weights were perturbed."""
        return self._n_moved < FLAT * self._n_seen

    def _note_moves(self, table: FloatArray, n_losses: int, i: Any, j: Any) -> None:
        """Note which losses change; refuse functions that do not see the weights."""
        are_others = table[1:] != table[0]
        self._n_seen += are_others[:, :n_losses].size
        self._n_moved += int(are_others[:, :n_losses].sum())
        if not self._sees_weights and len(table) > 1:
            self._sees_weights = bool(are_others.any()) or self._sees_far(i, j)
            if not self._sees_weights:
                raise EvaluationError(BLIND)

    def _sees_far(self, *wanted: Any) -> bool:
        """Whether any value changes when weights move by as much as their size."""
        space, (i, j) = self._space, self._on_device(*(one[:NEAR] for one in wanted))
        if not self.charge((1 + FAR) * (len(i) + len(j))):
            return True  # nobody knows
        before = space.radius
        try:
            with torch.no_grad():
                first = torch.cat(self._both(i, j))
                space.radius = space.norm / math.sqrt(space.dim) or 1.0
                for number in range(FAR):
                    space.perturb(0, number)
                    if not torch.equal(torch.cat(self._both(i, j)), first):
                        return True
        finally:
            space.restore()
            space.radius = before
        return False

    def steadiness(self, n_constraints: int) -> tuple[float, int]:
        """Return how far the weights may wander, and how many values that took.

        It is the share of their length by which random signs may move them before one
        in a hundred of some constraints breaks; infinite where that says nothing.
        """
        space = self._space
        n = min(n_constraints, SOME)
        chosen = np.arange(n) * n_constraints // n
        n_looks = n + self._prepare(chosen[:2], chosen[-2:])
        (indices,) = self._on_device(chosen)

        def are_kept(some: Any) -> Any:
            if not len(some):
                return some > 0
            parts = in_parts(lambda j: self._both(some[:0], j)[1], some)
            return torch.cat(parts) <= 0.0

        first = are_kept(indices)
        before, length = space.radius, space.norm / math.sqrt(space.dim)
        low, high = -1, len(WANDERS)  # the first that holds lies between
        while high - low > 1:
            middle = (low + high) // 2
            space.radius = WANDERS[middle] * length
            n_broken = n_held = 0
            for number in range(ALONG):  # one direction alone says little
                space.perturb(0, number)
                some = slice(number % PARTS, None, PARTS)
                n_broken += int((first[some] & ~are_kept(indices[some])).sum())
                n_held += int(first[some].sum())
                n_looks += len(first[some])
            if 100 * n_broken <= n_held:
                high = middle
            else:
                low = middle
        space.restore()
        space.radius = before
        says = high < len(WANDERS) and int(first.sum()) >= FEW
        return (WANDERS[high] if says else math.inf), n_looks

    def _recorded(self, passes: Any, wanted: Any, key: Any) -> _Recording | None:
        """Record the passes; from then on none are, where that cannot be."""
        try:
            self._recordings[key] = _Recording(passes, wanted, self._space)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # noqa: BLE001  (whatever cannot be recorded)
            self._records = False
            self._space.restore()
            torch.cuda.synchronize()
        return self._recordings.get(key)

    def _give_up(self, error: BaseException) -> None:
        """Leave the weights as they are at the iterate; say what can be done."""
        self._recordings = {}
        if not _is_lost(error):
            self._space.restore()
        if (failure := device_failure(error)) is not None:
            raise failure from error


class _Recording:
    """A CUDA graph of the passes of an iteration."""

    def __init__(self, passes: Any, wanted: Any, space: ModuleSpace) -> None:
        self.n_checked = 0
        given = torch.from_numpy(np.append(wanted, 0))
        self._given = given.pin_memory()
        self._told = given.to(space.device)
        self.indices = self._told[:-1]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            passes(self.indices)  # whatever is made at the first call
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            space.words[1:].copy_(self._told[-1:])
            self._values = passes(self.indices)
        self._found = torch.empty(self._values.shape, dtype=torch.float64).pin_memory()

    def replay(self, wanted: Any, iteration: int) -> FloatArray:
        given = self._given.numpy()
        given[:-1], given[-1] = wanted, iteration
        self._told.copy_(self._given, non_blocking=True)
        self._graph.replay()
        self._found.copy_(self._values, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return np.array(self._found)

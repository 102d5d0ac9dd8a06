"""The forward passes of an iteration: all at the iterate, then along each direction.

On a GPU they are recorded once, perturbations included, and replayed: small networks
spend most of their time on launches. A recording is used only if it gives what the
passes give that it was made of.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Passes:
    """Answers the two queries of an iteration.

    `both` gives the values of losses and of constraints, by two tensors of indices; one
    of them may be empty. With `record` it must do the same in each call.
    """

    def __init__(self, space: ModuleSpace, both: Both, *, record: bool) -> None:
        self._space, self._both = space, both
        self._records = record and space.device.type == "cuda"
        self._recordings: dict[Any, _Recording] = {}

    @property
    def are_recorded(self) -> bool:
        """Whether the last iterations were replayed."""
        return bool(self._recordings)

    def __call__(self, around: Query, dual: Query) -> tuple[Reply, Reply]:
        """Return the values around the iterate, and those that weights learn from."""
        space = self._space
        n = len(around.losses), len(around.constraints), len(dual.constraints)
        wanted = np.concatenate([around.losses, around.constraints, dual.constraints])
        numbers = tuple((around.steps[:, 2].astype(int) - 1).tolist())
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
        return (
            Reply(table[:, : n[0]].copy(), table[:, n[0] :].copy()),
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

        space = self._space
        if not self._recordings:
            here = torch.from_numpy(wanted[[0, 1, -2, -1]]).to(space.device)
            space.prepare(lambda: torch.cat(self._both(here[:2], here[2:])).double())
        recording = self._recordings.get((n, numbers))
        if recording is None and self._records:
            recording = self._recorded(passes, wanted, (n, numbers))
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
        if isinstance(error, torch.OutOfMemoryError):
            self._space.restore()
            torch.cuda.empty_cache()
            raise EvaluationError(
                "dszog.torch: the GPU has not enough memory for the forward passes of "
                "an iteration. The network is as it was after the last one, and what "
                "was saved is whole. Use smaller batches, such as options={'loss_batch'"
                ": 32, 'dual_batch': 64}, and go on with resume=True."
            ) from error
        if "CUDA error" in str(error):  # nothing on the device can be trusted now
            raise EvaluationError(
                f"dszog.torch: the GPU failed: {error}. What was saved is whole: start "
                "Python anew and go on with resume=True."
            ) from error
        self._space.restore()


class _Recording:
    """A CUDA graph of the passes of an iteration."""

    def __init__(self, passes: Any, wanted: Any, space: ModuleSpace) -> None:
        self.n_checked = 0
        self._words = space.words
        self.indices = torch.from_numpy(wanted).to(space.device)
        self._given = torch.from_numpy(wanted.copy()).pin_memory()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            passes(self.indices)  # whatever is made at the first call
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._values = passes(self.indices)
        self._found = torch.empty(self._values.shape, dtype=torch.float64).pin_memory()

    def replay(self, wanted: Any, iteration: int) -> FloatArray:
        self._given.numpy()[:] = wanted
        self.indices.copy_(self._given, non_blocking=True)
        self._words[1] = iteration
        self._graph.replay()
        self._found.copy_(self._values, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return np.array(self._found)

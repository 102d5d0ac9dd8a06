"""What a folder of checkpoints tells to somebody who only looks at it.

Nothing is locked, written or executed; the run may go on, end or vanish meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import CheckpointError
from dszog.methods import DSZOG, DSZOGState, SampledSQP, SampledSQPState
from dszog.run.history import Counts, History
from dszog.run.meter import Limits
from dszog.run.run import Ending
from dszog.save.checkpoints import END, NAMES, WORKERS, heaviest_of
from dszog.save.container import read
from dszog.save.encoding import field_in, value_in
from dszog.save.files import Owner, owner_of
from dszog.save.store import numbers_in, path_of, read_checkpoint

Going: TypeAlias = Literal["running", "ended", "failed", "dead", "unknown"]
MAX_DEPTH = 3  # folders below a given one in which runs are looked for
MAX_END = 2**24  # bytes of a note
MAX_DIGITS = 19  # of a size


@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """A run as its folder shows it."""

    going: Going
    owner: Owner | None  # the process that wrote last
    wrote: float  # when, in seconds since the epoch
    facts: dict[str, str]  # method, sizes, tag, seed
    limits: Limits
    counts: Counts
    failures: Sequence[str]
    notes: Sequence[str]
    history: FloatArray  # (rows, columns of a History)
    weights: Sequence[tuple[int, float]]  # of the constraints that weigh most
    names: Mapping[str, str]  # of these, where they have names
    workers: Sequence[tuple[str, int, float]]  # name, answers, seconds at them
    lost: tuple[int, int]  # attempts lost with a worker, and ended as overdue
    end: Ending | None = None

    def column(self, name: str) -> FloatArray:
        column: FloatArray = self.history[:, History.COLUMNS.index(name)]
        return column


def runs_in(folder: Path, depth: int = MAX_DEPTH) -> Iterator[Path]:
    """Yield the folders of runs: this one, or those below it. No link is followed."""
    try:
        if numbers_in(folder, "checkpoint", "journal"):
            yield folder
        elif depth:
            for entry in sorted(os.scandir(folder), key=lambda one: one.name):
                if entry.is_dir(follow_symlinks=False):
                    yield from runs_in(folder / entry.name, depth - 1)
    except OSError:  # gone meanwhile, or not ours to see
        return


def trace_of(folder: Path) -> tuple[object, ...]:
    """Return what changes when a run writes, or its process ends."""
    try:
        files = [(one.name, one.stat().st_mtime_ns) for one in os.scandir(folder)]
        return (*sorted(files), owner_of(folder)[1])
    except (OSError, CheckpointError):
        return ()


def look_at(folder: Path) -> View:
    """Return what the newest whole checkpoint of a folder tells, and the end if any."""
    bad = ["it has none"]
    try:
        for number in reversed(numbers_in(folder, "checkpoint")):
            try:
                return _looked(folder, number)
            except CheckpointError as error:
                bad = [f"{path_of(folder, 'checkpoint', number).name}: {error}"]
    except OSError as error:
        bad = [str(error.strerror)]
    raise CheckpointError(f"No checkpoint can be read: {bad[0]}.")


def _looked(folder: Path, number: int) -> View:
    file = read_checkpoint(folder, number)
    known = file.about.get("fingerprint")
    facts = {
        str(k): str(v) for k, v in (known if isinstance(known, dict) else {}).items()
    }
    facts["seed"] = str(file.about.get("seed"))
    part = partial(field_in, file.arrays, _size_of(facts), "Run")
    heaviest: list[tuple[int, float]] = []
    with suppress(CheckpointError):  # other versions may have had other states
        heaviest = _heaviest(part("position").state)
    owner, holds = owner_of(folder)
    look = View(
        going="unknown" if holds is None else "running" if holds else "dead",
        owner=owner,
        wrote=max(one.stat().st_mtime for one in os.scandir(folder)),
        facts=facts,
        limits=part("limits"),
        counts=part("counts"),
        failures=[one.message for one in part("failures").first],
        notes=part("notes"),
        history=part("history").table,
        weights=heaviest,
        **_told_of(file.about),
    )
    with suppress(CheckpointError):
        return look if holds else _ended(look, folder)
    return look


def _ended(look: View, folder: Path) -> View:
    """Return a look at a run that left word of its end; CheckpointError if not."""
    facts, arrays = read(folder / END, most=MAX_END)
    newest = max(numbers_in(folder, "journal"), default=0)
    mark = [newest, path_of(folder, "journal", newest).stat().st_size]
    end = value_in(arrays, _size_of({}))
    if facts.get("mark") != mark or not isinstance(end, Ending):
        raise CheckpointError("the run went on after that")
    return replace(
        look,
        going="ended" if end.success else "failed",
        counts=end.counts,
        notes=end.notes,
        history=end.history.table,
        weights=_listed(end.indices, end.weights),
        end=end,
        **_told_of(facts),
    )


def _size_of(facts: dict[str, str]) -> ProblemSize:
    """Return the sizes of a problem as far as they are told; bounds are not."""
    names = ("dim", "number of losses", "number of constraints")
    dim, n_losses, n_constraints = (
        int(text) if text.isdecimal() and len(text) < MAX_DIGITS else 0
        for text in (facts.get(name, "") for name in names)
    )
    return ProblemSize(
        dim=dim,
        n_losses=n_losses,
        n_constraints=n_constraints,
        lower=np.broadcast_to(-np.inf, dim),
        upper=np.broadcast_to(np.inf, dim),
    )


def _heaviest(state: Any) -> list[tuple[int, float]]:
    """Return the constraints that weigh most, where the method has weights."""
    if isinstance(state, DSZOGState):
        indices, weights = DSZOG().weights(state)
    elif isinstance(state, SampledSQPState):
        indices, weights = SampledSQP().weights(state)
    else:
        return []
    return _listed(*heaviest_of(indices, weights))


def _listed(indices: IntArray, weights: FloatArray) -> list[tuple[int, float]]:
    return list(zip(indices.tolist(), weights.tolist(), strict=True))


def _told_of(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint and the word of an end tell of names and workers."""
    named = facts.get(NAMES)
    named = named if isinstance(named, dict) else {}
    try:
        n_lost, n_overdue, *rows = facts.get(WORKERS) or (0, 0)
        return {
            "names": {str(j): str(name) for j, name in named.items()},
            "workers": [(str(who), int(n), 1e-3 * int(ms)) for who, n, ms in rows],
            "lost": (int(n_lost), int(n_overdue)),
        }
    except (TypeError, ValueError) as error:
        raise CheckpointError("its workers make no sense") from error

"""All that a run needs to go on, as the content of a checkpoint, and back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dszog.contract import ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, frozen_floats
from dszog.errors import (
    CheckpointError,
    CheckpointWarning,
    DszogError,
    OtherRunError,
)
from dszog.methods import METHODS, State
from dszog.run.accounting import Ledger
from dszog.run.history import History
from dszog.run.loop import N_SEEN, Position
from dszog.run.meter import Limits, Meter
from dszog.run.stage import Stage
from dszog.save import Store, settings_of, with_settings
from dszog.save.fingerprint import differences
from dszog.save.records import failure_from_json, failure_to_json

PARTS = {
    "limits",
    "start",
    "notes",
    "method",
    "planned",
    "attempt",
    "round",
    "ends",
    "position",
    "meter",
    "failures",
    "first failures",
    "history",
    "ledger",
}

NOTED = "calls to learn sizes"


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What the call asks for, to be compared with what a checkpoint is of."""

    method: Any  # as given, before a run changes it
    seed: int | None  # None if none was given
    fingerprint: dict[str, str]
    surroundings: dict[str, str]
    n_noted: int = 0  # calls to learn sizes that the folder has a note of

    def about(self, seed: int) -> dict[str, Any]:
        """Return what a checkpoint says of itself."""
        said: dict[str, Any] = {
            "seed": str(seed),  # may have more digits than others' numbers
            "fingerprint": self.fingerprint,
            "surroundings": self.surroundings,
        }
        if self.n_noted:
            said[NOTED] = self.n_noted  # and are in its counts
        return said


def run_content(
    stage: Stage,
    *,
    limits: Limits,
    method: Any,
    start: FloatArray,
    notes: list[str],
    meter: Meter,
    history: History,
    ledger: Ledger,
) -> dict[str, Any]:
    """Return the content of a checkpoint."""
    failures = meter.failures
    return {
        "limits": _limits(limits),
        "start": start,
        "notes": notes,
        "method": settings_of(method),
        "planned": settings_of(stage.method),
        "attempt": stage.attempt,
        "round": stage.round,
        "ends": [_limits(end) for end in stage.ends],
        "position": {
            **{
                item.name: getattr(stage.position, item.name)
                for item in fields(Position)
            },
            "seen": stage.position.worst_seen,
        },
        "meter": meter.saved(),
        "failures": failures.saved(),
        "first failures": [failure_to_json(f) for f in failures.report.first],
        "history": history.saved(),
        "ledger": ledger.saved(),
    }


class LoadedRun:
    """The content of a checkpoint, checked and taken apart."""

    n_noted = 0  # calls to learn sizes that are in its counts
    is_elsewhere = False  # whether it was saved by other versions or on another machine

    def __init__(self, content: dict[str, Any], contract: Contract) -> None:
        if set(content) != PARTS:
            raise CheckpointError("it has other parts than it should")
        self._content = content
        self.start: FloatArray = frozen_floats(_typed(content["start"], np.ndarray))
        self.notes: list[str] = [_typed(note, str) for note in content["notes"]]
        self.limits = _as_limits(content["limits"])
        self.stage = Stage(
            attempt=_typed(content["attempt"], int),
            round=_typed(content["round"], int),
            ends=[_as_limits(end) for end in _typed(content["ends"], list)],
            method=with_settings(contract.method, content["planned"]),
            position=_as_position(content["position"]),
        )
        if not 0 <= self.stage.round < len(self.stage.ends):
            raise CheckpointError("it names a round that there is not")
        if self.start.shape != self.stage.position.state.x.shape:
            raise CheckpointError("its start does not fit the problem")

    def with_settings(self, method: Any) -> Any:
        """Return the method as the run had changed it."""
        return with_settings(method, self._content["method"])

    def restore(self, meter: Meter, history: History, ledger: Ledger) -> None:
        """Bring all counts to where they were."""
        content = self._content
        meter.restore(content["meter"])
        first = [failure_from_json(found) for found in content["first failures"]]
        meter.failures.restore(content["failures"], first)
        history.restore(content["history"])
        ledger.restore(content["ledger"])


def load_run(store: Store, contract: Contract, size: ProblemSize) -> LoadedRun | None:
    """Return the run that a folder holds; None if it holds none.

    Raises
    ------
    CheckpointError
        If it is another run than the one that is asked for.
    """
    n_noted, is_elsewhere = 0, False

    def compare(about: dict[str, Any]) -> None:
        nonlocal n_noted, is_elsewhere
        is_elsewhere = _compare(about, contract, str(store.folder))
        n_noted = _noted_in(about)

    def build(content: dict[str, Any]) -> LoadedRun:
        run = _build(content, contract, size)
        run.n_noted, run.is_elsewhere = n_noted, is_elsewhere
        return run

    return store.load(size, compare, build)


def saved_seed(store: Store) -> int | None:
    """Return the seed of the run that a folder holds; None if it holds none."""
    about = store.about()
    return None if about is None else _seed_of(about)


def saved_method(store: Store) -> str:
    """Return the name of the method of the run that a folder holds; empty if none."""
    about = store.about()
    said = "" if about is None else _texts(about, "fingerprint").get("method type", "")
    names = {repr(kind.__name__): name for name, kind in METHODS.items()}
    return names.get(said, "")


def saved_calls(store: Store) -> int:
    """Return how many calls to learn sizes are in the counts of a folder's run."""
    about = store.about()
    return 0 if about is None else _noted_in(about)


def _noted_in(about: dict[str, Any]) -> int:
    n_noted = about.get(NOTED, 0)
    if type(n_noted) is not int or not 0 <= n_noted < 2**63:
        raise CheckpointError(f"The {NOTED} of the checkpoint make no sense.")
    return n_noted


def _seed_of(about: dict[str, Any]) -> int:
    text = about.get("seed")
    if not (isinstance(text, str) and text.isascii() and text.isdigit()):
        raise CheckpointError("The checkpoint does not say which seed it has.")
    return int(text[:40])


def _compare(about: dict[str, Any], contract: Contract, folder: str) -> bool:
    """Refuse to go on with another run; warn, and say so, where the bits may differ."""
    other = differences(_texts(about, "fingerprint"), contract.fingerprint)
    seed = _seed_of(about)
    if contract.seed is not None and contract.seed != seed:
        other.append(f"seed ({seed} there, {contract.seed} here)")
    if other:
        raise OtherRunError(
            f"The run in {folder!r} is another one, it differs in: {'; '.join(other)}. "
            "Call with the same arguments, or give an empty folder."
        )
    changed = differences(_texts(about, "surroundings"), contract.surroundings)
    if changed:
        warnings.warn(
            f"The run in {folder!r} began elsewhere: {'; '.join(changed)}. It goes on, "
            "but its numbers may differ in the last digits from an uninterrupted run.",
            CheckpointWarning,
            stacklevel=2,
        )
    return bool(changed)


def _texts(about: dict[str, Any], name: str) -> dict[str, str]:
    facts = about.get(name)
    if not isinstance(facts, dict) or not all(
        isinstance(text, str) for text in facts.values()
    ):
        raise CheckpointError(f"The {name} of the checkpoint makes no sense.")
    return facts


def _build(content: dict[str, Any], contract: Contract, size: ProblemSize) -> LoadedRun:
    """Take a content apart; raise if it cannot have been written by this module."""
    try:
        run = LoadedRun(content, contract)
        # Once on trial: whatever is wrong with the content shows before it is used.
        run.with_settings(contract.method)
        run.restore(Meter(_no_answer, size), History(), Ledger(lambda: 0.0))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointError(f"its content makes no sense ({error!s:.80})") from error
    return run


def _no_answer(queries: Sequence[Query]) -> Sequence[Reply]:
    raise DszogError("A meter on trial answers nothing.")


def _limits(limits: Limits) -> tuple[Any, ...]:
    return limits.iterations, limits.queries, limits.time


def _as_limits(found: Any) -> Limits:
    iterations, queries, time = _typed(found, tuple)
    return Limits(
        iterations=None if iterations is None else _typed(iterations, int),
        queries=None if queries is None else _typed(queries, int),
        time=None if time is None else _typed(time, float),
    )


def _as_position(found: Any) -> Position:
    kinds: dict[str, Any] = {
        "state": State,
        "average": np.ndarray,
        "last_good": (State, type(None)),
        "weighted_violation": float,
        "n_done": int,
        "n_rejected": int,
        "first": dict,
        "digest": bytes,
    }
    if set(_typed(found, dict)) - {"seen"} != set(kinds):
        raise CheckpointError("its position has other parts than it should")
    made = {name: _typed(found[name], kind) for name, kind in kinds.items()}
    position = Position(**made)
    if position.average.shape != position.state.x.shape:
        raise CheckpointError("its average does not fit the problem")
    position.average = frozen_floats(position.average)
    position.first = {name: float(value) for name, value in position.first.items()}
    if "seen" in found:  # older checkpoints have none
        position.seen = _as_seen(found["seen"], position.state.size.n_constraints)
    return position


def _as_seen(found: Any, n_constraints: int) -> dict[int, float]:
    """Return the constraints that a run remembers, in their order."""
    indices, values = (_typed(one, np.ndarray) for one in _typed(found, tuple))
    if (
        indices.dtype != np.int64
        or values.dtype != np.float64
        or indices.ndim != 1
        or indices.shape != values.shape
        or len(indices) > N_SEEN
        or not ((indices >= 0) & (indices < n_constraints)).all()
        or not np.isfinite(values).all()
    ):
        raise CheckpointError("the constraints that it remembers make no sense")
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def _typed(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise CheckpointError(f"a {type(value).__name__} in it is out of place")
    return value

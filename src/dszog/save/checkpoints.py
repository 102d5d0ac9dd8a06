"""The checkpoints of one run: saved for the call that asks for it, and for no other.

Between the run and its journal a `Recorder` first replays what is written, then writes
on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dszog.contract import Cost, ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import printable
from dszog.errors import CheckpointError, CheckpointWarning, OtherRunError
from dszog.methods import METHODS
from dszog.methods.slopes import SlopesDSZOG
from dszog.run.history import Counts, Rows
from dszog.run.meter import Replayed, ReplayOverError
from dszog.run.result import Result
from dszog.run.run import Ending, Run
from dszog.save.encoding import (
    check_weights_of,
    pack_value,
    settings_of,
    with_settings,
)
from dszog.save.fingerprint import defaults, differences, surroundings
from dszog.save.journal import (
    Answered,
    Asked,
    Lost,
    Record,
    pack,
    question,
    unpack,
)
from dszog.save.store import Store


class _Pair(NamedTuple):
    asked: Asked
    n_retried: int
    answered: Answered

    @property
    def n_queries(self) -> int:
        """What was used up."""
        return self.asked.n_queries + self.n_retried


class Recorder:
    """Replays the replies of a store's journals, then appends to the last of them.

    With `is_timed` a clock decides how the run goes on; with `is_elsewhere` versions or
    the machine are others than those that the checkpoint names. Either way it may go
    differently the second time: what was answered then, and is not asked again, is
    lost. Who asks beyond the journal elsewhere is stopped once: what follows has to be
    written behind a checkpoint of this process.
    """

    def __init__(
        self, store: Store, *, is_timed: bool = False, is_elsewhere: bool = False
    ) -> None:
        self._store = store
        self._is_timed = is_timed
        # Nor is it known who wrote the journals behind a checkpoint that is damaged.
        self._may_differ = is_elsewhere or len(store.chain) > 1
        self.n_lost = 0  # queries that were used up for nothing
        self.elapsed = 0.0  # of the latest record
        self.stops_after_replay = self._may_differ
        self.has_asked = False  # whether any question was not in the journals
        self._pairs = self._read()
        self._next: _Pair | None = None
        self._advance()

    @property
    def is_replaying(self) -> bool:
        """Whether there are replies left to replay."""
        return self._next is not None

    def _read(self) -> Iterator[_Pair]:
        """Yield questions with their answers; count those that have none as lost."""
        # What was lost between a question and its answer was asked again.
        open_question: Asked | None = None
        n_retried = 0
        for journal in self._store.chain:
            for record in map(unpack, journal.records()):
                if isinstance(record, Lost):
                    if open_question is None:
                        self.n_lost += record.n_queries
                    else:
                        n_retried += record.n_queries
                elif isinstance(record, Asked):
                    if open_question is not None:
                        self.n_lost += open_question.n_queries + n_retried
                    open_question, n_retried = record, 0
                    self.elapsed = max(self.elapsed, record.elapsed)
                elif open_question is not None:
                    self.elapsed = max(self.elapsed, record.elapsed)
                    yield _Pair(open_question, n_retried, record)
                    open_question, n_retried = None, 0
                else:
                    raise CheckpointError("The journal has an answer to no question.")
        if open_question is not None:
            self.n_lost += open_question.n_queries + n_retried

    def _advance(self) -> None:
        self._next = next(self._pairs, None)

    def replayed(self, queries: Sequence[Query], charged: Cost) -> Replayed | None:
        """Return the journalled replies to these queries; None if there are none left.

        CheckpointError if the journal has the answers to other questions,
        ReplayOverError if all are replayed and the run is to be stopped there.
        """
        if self._next is None and not self.stops_after_replay:
            return None
        asked = question(queries)
        if asked >= 0:
            # A look at the result, after which the run went on all the same.
            while self._next is not None and self._next.asked.in_check:
                self._lose(self._next)
        if self._next is None:
            if self.stops_after_replay and asked >= 0:
                raise ReplayOverError
            return None
        there, n_retried, answered = self._next
        fits = there.question == asked and len(answered.replies) == len(queries)
        if fits and (there.losses, there.constraints) == (
            charged.losses,
            charged.constraints,
        ):
            self._advance()
            return Replayed(
                answered.replies, n_retried, answered.spent, answered.elapsed
            )
        if not (self._is_timed or asked < 0):
            self._drop_or_raise()
        self.drop()
        return self.replayed(queries, charged)

    def _drop_or_raise(self) -> None:
        """Give up a journal that answers other questions, where that may be."""
        if not self._may_differ:
            raise CheckpointError(
                "The journal answers other questions than this run asks: the method "
                "goes another way than it went before. Resume with the versions and on "
                "the machine that the run began with, or start again."
            )
        n_before = self.n_lost
        self.drop()
        warnings.warn(
            f"{printable(str(self._store.folder))}: what was evaluated after the "
            "checkpoint answers other questions than this run asks. "
            f"{self.n_lost - n_before:,} queries are charged as lost, and the run goes "
            "on from there.",
            CheckpointWarning,
            stacklevel=2,
        )

    def drop(self) -> None:
        """Count all replies that were not replayed as lost."""
        while self._next is not None:
            self._lose(self._next)

    def _lose(self, pair: _Pair) -> None:
        self.n_lost += pair.n_queries
        self._advance()

    def asked(self, queries: Sequence[Query], charged: Cost, elapsed: float) -> None:
        """Take note of queries before they are answered."""
        self.has_asked = True
        self._note(
            Asked(charged.losses, charged.constraints, question(queries), elapsed)
        )

    def retried(self, n_queries: int) -> None:
        """Take note of queries that are about to be made again."""
        self._note(Lost(n_queries))

    def answered(self, replies: Sequence[Reply], spent: float, elapsed: float) -> None:
        """Take note of the answers, before anybody uses them."""
        self._note(Answered(elapsed, spent, replies))

    def _note(self, record: Record) -> None:
        self._store.append(pack(record))


NOTED, WORKERS, NAMES = "calls to learn sizes", "workers", "names"
END = "end.dszog"
N_HEAVIEST = 10  # weights that are named
GONE = ("'SizedDSZOG'",)  # methods of earlier versions
MAX_NAME = 40  # characters of the name of a worker


@dataclass(eq=False, kw_only=True)
class Checkpoints:
    """A folder, and what a run in it has to agree with; a `dszog.run.run.Saver`."""

    store: Store
    method: Any  # as given, before a run changes it
    seed: int | None  # None if none was given
    fingerprint: dict[str, str]
    surroundings: dict[str, str] = field(default_factory=surroundings)
    n_noted: int = 0  # calls to learn sizes that the folder has a note of
    names_of: Callable[..., dict[int, str]] = lambda *_: {}  # of constraints
    pool: Any = None  # of workers, which counts what each has done
    _is_elsewhere: bool = field(default=False, init=False)

    @property
    def place(self) -> str:
        return str(self.store.folder)

    @property
    def n_failed(self) -> int:
        return self.store.n_failed

    @property
    def is_due(self) -> bool:
        return self.store.is_due

    @property
    def wants_stop(self) -> bool:
        return self.store.wants_stop

    def sync(self) -> None:
        self.store.sync()

    def log(self, *, is_timed: bool) -> Recorder:
        """Return the replies since the last checkpoint, to which more are added."""
        return Recorder(self.store, is_timed=is_timed, is_elsewhere=self._is_elsewhere)

    def save(self, run: Run, seed: int) -> None:
        about: dict[str, Any] = {
            "seed": str(seed),  # may have more digits than others' numbers
            "fingerprint": self.fingerprint,
            "surroundings": self.surroundings,
        }
        if self.n_noted:
            about[NOTED] = self.n_noted  # and are in its counts
        method, planned = settings_of(run.method), settings_of(run.planned)
        content = replace(run, method=method, planned=planned)
        heaviest, _ = heaviest_of(*run.method.weights(run.position.state))
        self.store.save(about | self._work() | self._names(heaviest), content)

    def end(self, result: Result, said: str = "") -> None:
        """Leave word of how the run ended, for those who look at its folder."""
        indices, weights = heaviest_of(*result.weights)
        told = Ending(
            said=said or result.verdict,
            success=bool(result.success) and not said,
            notes=(result.message,),
            evidence=tuple(f"{name}: {text}" for name, text in result.evidence()),
            objective=float(result.fun),
            violation=float(result.maxcv),
            counts=Counts(
                n_iterations=result.nit,
                n_loss_queries=result.nfev,
                n_constraint_queries=result.ncev,
                seconds=result.costs.time,
            ),
            history=Rows(stride=1, table=np.column_stack([*result.history.values()])),
            indices=indices.astype(np.int64),
            weights=weights.astype(float),
        )
        with suppress(CheckpointError):  # nobody's result is lost for it
            facts = {"kind": "end", "mark": self.store.mark, **self._work()}
            facts |= self._names(indices)
            self.store.write(END, pack_value(facts, told))

    def _names(self, indices: IntArray) -> dict[str, Any]:
        """Return the names of the constraints that weigh most, if they have any."""
        named = self.names_of(indices).items()
        return {NAMES: {str(j): name[:MAX_NAME] for j, name in named}} if named else {}

    def _work(self) -> dict[str, Any]:
        """Return what each worker did, in whole numbers: answers and milliseconds."""
        if self.pool is None:
            return {}
        traffic, done = self.pool.traffic, self.pool.done.items()
        told = [[_short(name), n, round(1e3 * s)] for name, (n, s) in done]
        return {WORKERS: [traffic.n_lost, traffic.n_timeouts, *told]}

    def load(self, size: ProblemSize) -> Run | None:
        """Return the run that the folder holds; None if it holds none."""
        n_there = 0

        def compare(about: dict[str, Any]) -> None:
            nonlocal n_there
            self._compare(about)
            n_there = _noted_in(about)

        run = self.store.load(size, compare, self._built)
        if run is not None:  # the calls of processes that died before it was saved
            run.counts.lost_before += max(self.n_noted - n_there, 0)
        return run

    def _built(self, run: Any) -> Run:
        if not isinstance(run, Run):
            raise CheckpointError("it has no content")
        check_weights_of(run.position.state)
        method = with_settings(self.method, run.method)
        planned = with_settings(self.method, run.planned)
        return replace(run, method=method, planned=planned)

    def _compare(self, about: dict[str, Any]) -> None:
        """Refuse to go on with another run; warn where the bits may differ."""
        there = defaults(self.method) | _texts(about, "fingerprint")
        if there.get("method type") in GONE:
            raise OtherRunError(
                f"The run in {self.place!r} was begun with {there['method type']}, a "
                "form of DSZOG that this version no longer has. Start again in an "
                "empty folder, or end it with the version that began it."
            )
        other = differences(there, self.fingerprint)
        seed = _seed_of(about)
        if self.seed is not None and self.seed != seed:
            other.append(f"seed ({seed} there, {self.seed} here)")
        if other:
            raise OtherRunError(
                f"The run in {self.place!r} is another one, it differs in: "
                f"{'; '.join(other)}. Call with the same arguments, or give an empty "
                "folder."
            )
        changed = differences(_texts(about, "surroundings"), self.surroundings)
        self._is_elsewhere = bool(changed)
        if changed:
            warnings.warn(
                f"The run in {self.place!r} began elsewhere: {'; '.join(changed)}. It "
                "goes on, but its numbers may differ in the last digits from an "
                "uninterrupted run.",
                CheckpointWarning,
                stacklevel=2,
            )


def heaviest_of(indices: IntArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the constraints that weigh most, the heaviest first, and their weights."""
    order = np.argsort(-weights, kind="stable")[:N_HEAVIEST]
    return indices[order], weights[order]


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[:8]}...{name[-4:]}"


def saved_seed(store: Store) -> int | None:
    """Return the seed of the run that a folder holds; None if it holds none."""
    about = store.about()
    return None if about is None else _seed_of(about)


def saved_method(store: Store) -> str:
    """Return the name of the method of the run that a folder holds; empty if none."""
    about = store.about()
    said = "" if about is None else _texts(about, "fingerprint").get("method type", "")
    names = {repr(kind.__name__): name for name, kind in METHODS.items()}
    names[repr(SlopesDSZOG.__name__)] = "dszog"
    return names.get(said, "")


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


def _texts(about: dict[str, Any], name: str) -> dict[str, str]:
    facts = about.get(name)
    if not isinstance(facts, dict) or not all(
        isinstance(text, str) for text in facts.values()
    ):
        raise CheckpointError(f"The {name} of the checkpoint makes no sense.")
    return facts

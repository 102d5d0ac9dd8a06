"""Between a run and its journal: first replay what is written, then write on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dszog.contract import Cost, Query, Reply
from dszog.contract.validation import printable
from dszog.errors import CheckpointError, CheckpointWarning
from dszog.run.meter import Replayed, ReplayOverError
from dszog.save.records import (
    Answered,
    Asked,
    Lost,
    pack_answered,
    pack_asked,
    pack_lost,
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
            for number in range(len(journal.places)):
                record = unpack(journal.content(number))
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
                self._lose()
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
            self._lose()

    def _lose(self) -> None:
        if self._next is not None:
            self.n_lost += self._next.n_queries
        self._advance()

    def asked(self, queries: Sequence[Query], charged: Cost, elapsed: float) -> None:
        """Take note of queries before they are answered."""
        self.has_asked = True
        self._store.append(pack_asked(charged, question(queries), elapsed))

    def retried(self, n_queries: int) -> None:
        """Take note of queries that are about to be made again."""
        self._store.append(pack_lost(n_queries))

    def answered(self, replies: Sequence[Reply], spent: float, elapsed: float) -> None:
        """Take note of the answers, before anybody uses them."""
        self._store.append(pack_answered(replies, spent, elapsed))

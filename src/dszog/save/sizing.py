"""How many values functions return, learned within the budget of a run.

The calls that learn it come before there is a run to save, and so before there is a
journal. A note of them is written before they are made, and again with what they told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dszog.contract.arrays import FloatArray
from dszog.errors import CheckpointError, InputError, OtherRunError
from dszog.problem.constraints.scipy_forms import learn_widths
from dszog.run.run import SizeNote
from dszog.save.container import read
from dszog.save.encoding import NO_SIZE, pack_value, value_in
from dszog.save.fingerprint import differences, print_of
from dszog.save.store import Store

NAME = "sizes.dszog"
MAX_BYTES = 2**24  # a note of two million functions


class Sizing:
    """Asks functions how many values they return, within the budget of a run.

    With a store, each call is noted in its folder before it is made, so that a process
    that dies in one leaves a trace of it. Who resumes is not asked again; who begins
    is, whose functions may be others than those of an attempt before.
    """

    def __init__(self, store: Store | None, max_queries: int | None) -> None:
        self._store = store
        self._max_queries = max_queries
        there = None if store is None else read_note(store.folder)
        self._note = there or SizeNote(n_calls=0, about={}, widths=())

    @property
    def n_noted(self) -> int:
        """How many such calls there were, of all processes of the run."""
        return self._note.n_calls

    def __call__(
        self, functions: Sequence[Callable[[FloatArray], Any]], x0: FloatArray
    ) -> Sequence[int]:
        """Return how many values each function returns."""
        if self._store is None:
            self._check_affordable(len(functions))
            return learn_widths(functions, x0)
        here = {
            "x0": print_of(x0),
            "constraints of unknown size": f"{len(functions)}",
        }
        note = self._note
        if note.widths and self._store.resumes:
            if note.about == here:
                return note.widths
            if self._store.has_run:
                raise OtherRunError(
                    f"The run in {str(self._store.folder)!r} is another one, it "
                    f"differs in: {'; '.join(differences(note.about, here))}. Call "
                    "with the same arguments, or give an empty folder."
                )
        self._check_affordable(len(functions))
        n_calls = self.n_noted + len(functions)
        noted = SizeNote(n_calls=n_calls, about=here, widths=())
        self._write(noted)
        widths = learn_widths(functions, x0)
        self._write(replace(noted, widths=tuple(widths)))
        return widths

    def count(self, n_calls: int) -> None:
        """Note calls that were made before there was anybody to ask."""
        if n_calls:
            self._write(replace(self._note, n_calls=self.n_noted + n_calls))

    def _write(self, note: SizeNote) -> None:
        if self._store is not None:
            self._store.write(NAME, pack_value({"kind": "sizes"}, note))
            self._note = note

    def _check_affordable(self, n_calls: int) -> None:
        """Refuse a budget that is gone before it is known how many constraints are."""
        # Before any call: each process that is told to try again would make them again.
        n_before = self.n_noted
        if self._max_queries is None or n_before + n_calls < self._max_queries:
            return
        used = f", after {n_before} in processes that were killed" if n_before else ""
        raise InputError(
            f"minimize: it takes {n_calls} queries to learn how many constraints there "
            f"are{used}, got max_queries={self._max_queries}. Raise max_queries, or "
            "give NonlinearConstraint limits with an entry per constraint."
        )


def read_note(folder: Path) -> SizeNote | None:
    """Return the note in a folder; None if there is none."""
    path = folder / NAME
    if not os.path.lexists(path):
        return None
    try:
        note = value_in(read(path, most=MAX_BYTES)[1], NO_SIZE)
        if not isinstance(note, SizeNote):
            raise CheckpointError("it holds something else")
    except CheckpointError as error:
        raise CheckpointError(
            f"The note of calls {NAME!r} in {str(folder)!r} cannot be used: {error}. "
            "Put it back as it was. Or delete it: sizes are then learned again, and "
            "calls before a first checkpoint are missing from the count."
        ) from error
    return note

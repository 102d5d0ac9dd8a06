"""A folder of checkpoints: two generations, a journal for each, one writer."""

from __future__ import annotations

import os
import re
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dszog.contract import ProblemSize
from dszog.contract.interrupts import held_interrupts
from dszog.contract.validation import printable
from dszog.errors import (
    CheckpointError,
    CheckpointWarning,
    CheckpointWriteError,
    OtherRunError,
)
from dszog.save.container import read
from dszog.save.encoding import Arrays, pack_value, value_in
from dszog.save.files import FolderLock, make_folder, write_whole
from dszog.save.journal import Journal

LAYOUT = 2  # of what a checkpoint holds
KEPT = 2  # generations
SAVE_EVERY = 10.0  # seconds
SAVE_SHARE = 0.005  # of the time may go into saving
MAX_JOURNAL = 2**28  # bytes after which a journal is replaced by a checkpoint
SET_ASIDE = ".aside"
STOP = "stop"  # a file that ends the run
LOOK_EVERY = 1.0  # seconds after which it is looked for again

_NAME = re.compile(r"(checkpoint|journal)-([0-9]{8})\.dszog")


Made = TypeVar("Made")


class CheckpointFile(NamedTuple):
    """A checkpoint that is whole, as it lies in its file."""

    about: dict[str, Any]
    run: bytes
    arrays: Arrays


class Store:
    """A folder that one run writes its checkpoints to.

    Without `resume` it has to be empty. With `warns` a write that fails is a warning
    and no error: nothing is written to the journal from then on, which would have a
    hole in it, until a checkpoint is.
    """

    def __init__(self, folder: Path, *, resume: bool, warns: bool = False) -> None:
        make_folder(folder)
        self._warns = warns
        self.resumes = resume
        self.n_failed = 0  # writes
        self._has_hole = False  # the journal, in which nothing may follow
        self.folder = folder
        self._lock = FolderLock(folder)
        self._run = secrets.token_bytes(16)
        self._good: list[int] = []  # the generations to keep, ascending
        self._written: set[int] = set()  # by this process
        self._bad: set[int] = set()  # that are damaged, and stay
        self.chain: list[Journal] = []  # those to read, the last one to append to
        self._due = self._look_at = 0.0
        with suppress(OSError):
            os.unlink(folder / STOP)  # it was for a run before
        if not resume and self.has_run:
            self.close()
            raise OtherRunError(
                f"The folder {str(folder)!r} holds checkpoints of an earlier run. Go "
                "on with it: resume=True; or give an empty folder."
            )

    # ------------------------------------------------------------------------- reading

    def load(
        self,
        size: ProblemSize,
        compare: Callable[[dict[str, Any]], None],
        build: Callable[[Any], Made],
    ) -> Made | None:
        """Return what the newest whole checkpoint holds; None if there is none at all.

        `compare` is given what it says of itself and raises if that is another run;
        `build` makes something of its content, where a CheckpointError means: not
        whole. Such a one is named in a warning, and stays where it is.
        """
        numbers = self._numbers("checkpoint")
        if not numbers and not self._numbers("journal"):
            return None
        bad: list[str] = []
        for number in reversed(numbers):
            path = self._path("checkpoint", number)
            try:
                file = read_checkpoint(self.folder, number)
            except CheckpointError as error:
                bad.append(f"{path.name}: {error}")
                continue
            compare(file.about)
            try:
                made = build(value_in(file.arrays, size))
            except CheckpointError as error:
                bad.append(f"{path.name}: {error}")
                continue
            self._run = file.run
            self._good = [number]
            lost = "nothing but time is lost, its journal has the replies since"
            if not self._open_chain(number):
                lost = "what was evaluated since is evaluated again"
            if bad:
                self._warn(f"{'; '.join(bad)}. {path.name} is used instead: {lost}.")
            return made
        listed = "; ".join(bad) or "there is only a journal"
        raise CheckpointError(
            f"No checkpoint in {str(self.folder)!r} can be used: {listed}. Start again "
            "in an empty folder."
        )

    def about(self) -> dict[str, Any] | None:
        """Return what the newest whole checkpoint says of itself, if there is one."""
        for number in reversed(self._numbers("checkpoint")):
            with suppress(CheckpointError):
                return read_checkpoint(self.folder, number).about
        return None

    @property
    def mark(self) -> list[int]:
        """The generation written to, and how far its journal goes."""
        number = max(self._numbers("journal"), default=0)
        return [number, self.chain[-1].n_bytes if self.chain else 0]

    @property
    def has_run(self) -> bool:
        return bool(self._numbers("checkpoint", "journal"))

    def _open_chain(self, generation: int) -> bool:
        """Open the journals from a checkpoint on, which follow on each other."""
        # Returns whether all of them are usable. What follows a damaged one is renamed.
        whole = True
        for number in self._numbers("journal"):
            path = self._path("journal", number)
            if number < generation:
                continue
            if not whole:
                self._set_aside(path)
                continue
            try:
                journal = Journal.open(path, self._run, number)
            except CheckpointError as error:
                self._warn(f"{path.name} cannot be used: {error}.")
                self._set_aside(path)
                whole = False
                continue
            self.chain.append(journal)
            if journal.n_cut:
                self._warn(
                    f"The last {journal.n_cut} bytes of {path.name} were not whole and "
                    "were cut off; what they held is evaluated again."
                )
                whole = number == self._numbers("journal")[-1]
        if not self.chain:
            path = self._path("journal", generation)
            self.chain.append(Journal.new(path, self._run, generation))
        return whole

    def _set_aside(self, path: Path) -> None:
        """Give a journal that does not fit another name; nothing is deleted."""
        number = 0
        while (target := path.with_name(f"{path.name}{SET_ASIDE}{number}")).exists():
            number += 1
        os.rename(path, target)

    def _warn(self, text: str) -> None:
        warnings.warn(
            f"{printable(str(self.folder))}: {text}", CheckpointWarning, stacklevel=2
        )

    # ------------------------------------------------------------------------- writing

    @property
    def is_due(self) -> bool:
        return time.perf_counter() >= self._due or (
            bool(self.chain) and self.chain[-1].n_bytes > MAX_JOURNAL
        )

    @property
    def wants_stop(self) -> bool:
        """Whether somebody has asked the run to end, by a file; looks now and then."""
        if (now := time.perf_counter()) < self._look_at:
            return False
        self._look_at = now + LOOK_EVERY
        return os.path.lexists(self.folder / STOP)

    def append(self, record: bytes) -> None:
        if not self._has_hole:
            with self._warning():
                self._lock.check_owner()
                self.chain[-1].append(record)

    @contextmanager
    def _warning(self, *, leaves_hole: bool = True) -> Iterator[None]:
        """Make a warning of a write that fails, where that is wanted."""
        try:
            yield
        except CheckpointWriteError as error:
            if not self._warns:
                raise
            self.n_failed += 1
            self._warn(f"{error} The run goes on, and will try to save again.")
            if leaves_hole:
                self._has_hole = True
                self._due = time.perf_counter() + SAVE_EVERY

    def write(self, name: str, pieces: Sequence[bytes]) -> None:
        """Put another file into the folder, in place of the one before."""
        with self._warning(leaves_hole=False):
            self._lock.check()
            write_whole(self.folder / name, pieces)

    def save(self, about: dict[str, Any], content: Any) -> None:
        """Write a checkpoint and begin its journal; drop the third oldest."""
        with self._warning():
            self._save(about, content)

    def _save(self, about: dict[str, Any], content: Any) -> None:
        before = time.perf_counter()
        self._lock.check()
        number = max(self._numbers("checkpoint", "journal"), default=0) + 1
        facts = {
            "layout": LAYOUT,
            "generation": number,
            "run": self._run.hex(),
            "about": about,
        }
        pieces = pack_value(facts, content)
        if self.chain and not self._has_hole:
            self.chain[-1].sync()
        write_whole(self._path("checkpoint", number), pieces)
        journal = Journal.new(self._path("journal", number), self._run, number)
        for old in self.chain:
            old.close()
        self.chain, self._has_hole = [journal], False
        self._good = [*self._good, number][-KEPT:]
        self._written.add(number)
        self._prune()
        took = time.perf_counter() - before
        self._due = before + max(SAVE_EVERY, took / SAVE_SHARE)

    def _prune(self) -> None:
        """Delete what is older than the generations that are kept."""
        for kind in ("checkpoint", "journal"):
            for number in self._numbers(kind):
                # Of those between two good ones the damaged are not ours to delete.
                is_old = number < self._good[0]
                if is_old and (kind == "journal" or self._is_whole(number)):
                    with suppress(OSError):  # a file too many does no harm
                        os.unlink(self._path(kind, number))

    def _is_whole(self, number: int) -> bool:
        if number not in self._written and number not in self._bad:
            try:
                read_checkpoint(self.folder, number)
            except CheckpointError:
                self._bad.add(number)
        return number not in self._bad

    def sync(self) -> None:
        if self.chain and not self._has_hole:
            with self._warning():
                self.chain[-1].sync()

    def close(self) -> None:
        """Let other runs use the folder."""
        with held_interrupts():
            try:
                for journal in self.chain:
                    journal.close()
            finally:
                self.chain = []
                self._lock.release()

    # --------------------------------------------------------------------------- names

    def _path(self, kind: str, number: int) -> Path:
        return path_of(self.folder, kind, number)

    def _numbers(self, *kinds: str) -> list[int]:
        """Return the generations that there are files of, ascending."""
        try:
            return numbers_in(self.folder, *kinds)
        except OSError as error:
            raise CheckpointWriteError(
                f"The folder {str(self.folder)!r} cannot be read any more "
                f"({error.strerror}). Start again with a folder that stays."
            ) from error


def path_of(folder: Path, kind: str, number: int) -> Path:
    return folder / f"{kind}-{number:08d}.dszog"


def numbers_in(folder: Path, *kinds: str) -> list[int]:
    """Return the generations that a folder has files of, ascending."""
    matches = map(_NAME.fullmatch, os.listdir(folder))
    return sorted({int(one[2]) for one in matches if one and one[1] in kinds})


def read_checkpoint(folder: Path, number: int) -> CheckpointFile:
    """Return what a file holds; CheckpointError if it is not whole."""
    facts, arrays = read(path_of(folder, "checkpoint", number))
    if facts.get("layout") != LAYOUT:
        raise CheckpointError(
            "it was made by another version of dszog: finish it with that version, "
            "or begin in an empty folder"
        )
    if set(facts) != {"layout", "generation", "run", "about"}:
        raise CheckpointError("its header has unknown parts")
    if facts["generation"] != number:
        raise CheckpointError("it does not belong under this name")
    if not isinstance(facts["about"], dict):
        raise CheckpointError("it does not say what it is about")
    try:
        run = bytes.fromhex(facts["run"])
    except (TypeError, ValueError):
        run = b""
    if len(run) != 16:
        raise CheckpointError("it does not say which run it belongs to")
    return CheckpointFile(facts["about"], run, arrays)

"""The note of the calls that learn how many values functions return.

They come before there is a run to save, and so before there is a journal. The note is
written before they are made, and again with what they told.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dszog.errors import CheckpointError
from dszog.save.container import pack, read
from dszog.save.files import write_whole

NAME = "sizes.dszog"
MAX_BYTES = 2**24  # a note of two million functions


@dataclass(frozen=True, kw_only=True)
class SizeNote:
    """What is known of such calls."""

    n_calls: int = 0  # by all processes, each counted before it is made
    about: dict[str, str] = field(default_factory=dict)  # the problem that they are of
    widths: tuple[int, ...] = ()  # what they told; empty until they have


def write_note(folder: Path, note: SizeNote, library: str) -> None:
    """Put a note into a folder, in place of the one before."""
    facts = {"kind": "sizes", "n_calls": note.n_calls, "about": note.about}
    widths = np.array(note.widths, dtype=np.int64)
    write_whole(folder / NAME, pack(facts, [widths], library))


def read_note(folder: Path) -> SizeNote | None:
    """Return the note in a folder; None if there is none."""
    path = folder / NAME
    if not os.path.lexists(path):
        return None
    try:
        facts, arrays = read(path, most=MAX_BYTES)
        if set(facts) != {"kind", "n_calls", "about"} or facts["kind"] != "sizes":
            raise CheckpointError("it holds something else")
        n_calls, about = facts["n_calls"], facts["about"]
        if not isinstance(about, dict) or not all(
            isinstance(text, str) for text in about.values()
        ):
            raise CheckpointError("it does not say what it is about")
        if len(arrays) != 1 or arrays[0].dtype != np.int64 or arrays[0].ndim != 1:
            raise CheckpointError("it has no sizes")
        widths = tuple(arrays[0].tolist())
        if any(width < 1 for width in widths):
            raise CheckpointError("a size in it makes no sense")
        if type(n_calls) is not int or not len(widths) <= n_calls < 2**63:
            raise CheckpointError("its number of calls makes no sense")
    except CheckpointError as error:
        raise CheckpointError(
            f"The note of calls {NAME!r} in {str(folder)!r} cannot be used: {error}. "
            "Put it back as it was. Or delete it: sizes are then learned again, and "
            "calls of processes that were killed before a first checkpoint are missing "
            "from the count."
        ) from error
    return SizeNote(n_calls=n_calls, about=about, widths=widths)

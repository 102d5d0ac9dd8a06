"""Whole records survive, torn ones are cut off, and nothing follows a torn one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dszog.contract import Failure, Query, Reply
from dszog.contract.arrays import frozen_floats
from dszog.errors import CheckpointError, CheckpointWriteError
from dszog.save.journal import (
    Answered,
    Asked,
    Journal,
    Lost,
    pack,
    question,
    unpack,
)
from tests.save.system_calls import full_disk

RUN = bytes(range(16))
CONTENTS = [bytes([i]) * (1 + 13 * i % 97) for i in range(20)]
BITS = st.integers(0, 2**64 - 1)


def written(path: Path, contents: list[bytes]) -> None:
    journal = Journal.new(path, RUN, 3)
    for content in contents:
        journal.append(content)
    journal.close()


def read(path: Path) -> tuple[list[bytes], int]:
    journal = Journal.open(path, RUN, 3)
    contents = list(journal.records())
    journal.close()
    return contents, journal.n_cut


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path / "j", CONTENTS)
    assert read(tmp_path / "j") == (CONTENTS, 0)
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("n_missing", [*range(1, 60), 100, 200, 400])
def test_a_torn_tail_is_cut_and_no_more_lost(tmp_path: Path, n_missing: int) -> None:
    path = tmp_path / "j"
    written(path, CONTENTS)
    os.truncate(path, path.stat().st_size - n_missing)
    kept, n_cut = read(path)
    assert kept == CONTENTS[: len(kept)]
    assert len(kept) < len(CONTENTS)
    n_lost = len(b"".join(CONTENTS[len(kept) :])) + 8 * (len(CONTENTS) - len(kept))
    assert n_cut or n_lost == n_missing
    for restart in range(3):
        journal = Journal.open(path, RUN, 3)
        assert journal.n_cut == 0
        journal.append(b"restart %d" % restart)
        journal.close()
        kept.append(b"restart %d" % restart)
        assert read(path) == (kept, 0)


@pytest.mark.usefixtures("no_syncs")  # thousands would take long
def test_every_flipped_bit_ends_the_journal_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, CONTENTS[:4])
    content = path.read_bytes()
    head = len(content) - sum(8 + len(record) for record in CONTENTS[:4])
    for place in range(8 * head, 8 * len(content)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << (place % 8)
        path.write_bytes(bytes(changed))
        kept, n_cut = read(path)
        assert kept == CONTENTS[: len(kept)]
        assert n_cut > 0


def test_zeros_as_a_loss_of_power_leaves_them_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, CONTENTS)
    with path.open("ab") as file:
        file.write(bytes(4096))
    assert read(path) == (CONTENTS, 4096)


@pytest.mark.parametrize("length", range(41))
def test_a_journal_torn_in_its_head_is_begun_again(tmp_path: Path, length: int) -> None:
    path = tmp_path / "j"
    written(path, [])
    os.truncate(path, min(length, path.stat().st_size))
    assert read(path) == ([], 0)
    assert read(path) == ([], 0)


@pytest.mark.parametrize(("run", "generation"), [(bytes(16), 3), (RUN, 4)])
def test_a_journal_of_another_run_or_generation_is_refused(
    tmp_path: Path, run: bytes, generation: int
) -> None:
    written(tmp_path / "j", CONTENTS)
    with pytest.raises(CheckpointError, match="another run"):
        Journal.open(tmp_path / "j", run, generation)


def test_a_swapped_pair_of_records_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, [b"first", b"other", b"third"])
    content = path.read_bytes()
    start = len(content) - 3 * 13
    swapped = content[start + 13 : start + 26] + content[start : start + 13]
    path.write_bytes(content[:start] + swapped + content[start + 26 :])
    assert read(path) == ([], 39)


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_a_record_left_by_an_interrupt_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: float
) -> None:
    path = tmp_path / "j"
    journal = Journal.new(path, RUN, 3)
    journal.append(b"before")
    pwrite = os.pwrite

    def interrupted(handle: int, content: bytes, offset: int) -> int:
        pwrite(handle, content[: int(part * len(content))], offset)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "pwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        journal.append(b"one that is interrupted")
    monkeypatch.undo()
    journal.append(b"after")
    journal.close()
    assert read(path) == ([b"before", b"after"], 0)  # nothing to cut off


def test_what_the_system_takes_in_parts_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda handle, content, at: pwrite(handle, content[:40], at)
    )
    written(tmp_path / "j", CONTENTS)
    monkeypatch.undo()
    assert read(tmp_path / "j") == (CONTENTS, 0)


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_disk_that_fails_is_loud(tmp_path: Path, call: str) -> None:
    journal = Journal.new(tmp_path / "j", RUN, 3)
    journal.append(b"before")
    fails = journal.sync if call == "fsync" else lambda: journal.append(b"after")
    with full_disk(call), pytest.raises(CheckpointWriteError, match="No space left"):
        fails()
    journal.close()
    assert read(tmp_path / "j")[0][0] == b"before"


@given(st.lists(BITS, max_size=12), st.lists(BITS, max_size=6))
def test_replies_come_back_bit_for_bit(first: list[int], second: list[int]) -> None:
    losses = np.array(first, dtype=np.uint64).view(np.float64)[np.newaxis]
    jacobian = np.array(second, dtype=np.uint64).view(np.float64)[:, np.newaxis]
    failure = Failure(
        kind="exception",
        what="loss",
        index=3,
        iteration=2,
        x=frozen_floats([-0.0, 5e-324, np.inf]),
        message="Grüße \x00 \ud800",
    )
    reply = Reply(
        losses=losses,
        constraints=np.empty((1, 0)),
        jacobian=jacobian,
        failures=(failure,),
    )

    found = unpack(pack(Answered(1.5, 0.25, [reply, reply])))

    assert isinstance(found, Answered)
    assert (found.spent, found.elapsed, len(found.replies)) == (0.25, 1.5, 2)
    back = found.replies[1]
    assert back.losses.tobytes() == losses.tobytes()
    assert back.losses.shape == losses.shape
    assert back.constraints.shape == (1, 0)
    assert back.jacobian.tobytes() == jacobian.tobytes()
    assert back.failures[0].message == failure.message
    assert back.failures[0].x.tobytes() == failure.x.tobytes()
    assert not back.losses.flags.writeable


def test_questions_come_back() -> None:
    for record in (Asked(3, 4, -5, 2.5), Lost(9)):
        assert unpack(pack(record)) == record


def test_a_question_is_known_by_its_points_indices_and_iteration() -> None:
    def asked(iteration: int = 0, x: float = 1.0, loss: int = 2, con: int = 3) -> int:
        indices: Any = {"losses": np.array([loss]), "constraints": np.array([con])}
        return question([Query.at(np.array([x]), iteration=iteration, **indices)])

    prints = {asked(), asked(1), asked(x=2.0), asked(loss=3), asked(con=4)}
    assert len(prints) == 5
    assert asked() == asked()
    assert question([Query.to_check(np.ones(1))]) < 0 <= asked(2**40)


@given(st.binary(max_size=120))
def test_any_bytes_give_a_record_or_our_error(content: bytes) -> None:
    for start in (b"", b"\1", b"\2", b"\3"):
        with contextlib.suppress(CheckpointError):
            unpack(start + content)

"""A folder of checkpoints survives every death, every damage and every disk error."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pytest

from dszog.contract import ProblemSize
from dszog.errors import CheckpointError, CheckpointWarning, CheckpointWriteError
from dszog.save.container import unpack
from dszog.save.files import make_folder, write_whole
from dszog.save.store import Store
from tests.runs import Record, python, said_by
from tests.save.cells import Killed
from tests.save.system_calls import watched

SIZE = ProblemSize(
    dim=2, n_losses=1, n_constraints=3, lower=np.zeros(2), upper=np.ones(2)
)


def content_of(number: int) -> dict[str, Any]:
    return {"number": number, "array": np.full(5, float(number))}


def opened(folder: Path, *, resume: bool = True) -> Store:
    return Store(folder, resume=resume)


def load(store: Store) -> int | None:
    def build(content: dict[str, Any]) -> int:
        number: int = content["number"]
        if not np.array_equal(content["array"], np.full(5, float(number))):
            raise AssertionError("loaded something that was never saved")
        return number

    return store.load(SIZE, lambda about: None, build)


def loaded(folder: Path) -> int | None:
    store = opened(folder)
    try:
        return load(store)
    finally:
        store.close()


def filled(folder: Path, n_saves: int = 3) -> Path:
    store = opened(folder)
    for number in range(1, n_saves + 1):
        store.save({}, content_of(number))
        store.chain[-1].append(b"reply to %d" % number)
    store.close()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def unread(path: Path) -> tuple[int, ...]:
    """Return what writing changes of a file; reading may set its access time."""
    found = path.lstat()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def newest(folder: Path) -> Path:
    return sorted(folder.glob("checkpoint-*"))[-1]


# ------------------------------------------------------------------------ generations
def test_two_generations_are_kept_with_their_journals(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run", 5)
    assert names(folder) == [
        "checkpoint-00000004.dszog",
        "checkpoint-00000005.dszog",
        "journal-00000004.dszog",
        "journal-00000005.dszog",
        "lock",
    ]
    assert loaded(folder) == 5
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(CheckpointError, match=r"run' is a file\. Give a folder\."):
        make_folder(tmp_path / "run")


def test_a_used_folder_is_not_written_to_without_resume(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    before = names(folder)
    with pytest.raises(CheckpointError, match="resume=True; or give an empty folder"):
        opened(folder, resume=False)
    assert names(folder) == before


def written(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": written(lambda content: b""),
    "cut": written(lambda content: content[: len(content) // 2]),
    "other magic": written(lambda content: b"\x93NUMPY\1\0" + content[8:]),
    "pickle": written(lambda content: b"\x80\x04K\x01."),
    "zeros": written(lambda content: bytes(len(content))),
    "flipped": written(lambda c: c[:100] + bytes([c[100] ^ 4]) + c[101:]),
    "swapped": lambda path: path.write_bytes(
        sorted(path.parent.glob("checkpoint-*"))[0].read_bytes()
    ),
    "link": replaced(lambda path: path.symlink_to("/etc/hostname")),
    "folder": replaced(Path.mkdir),
    "pipe": replaced(os.mkfifo),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_newest_is_named_and_not_used(tmp_path: Path, how: str) -> None:
    folder = filled(tmp_path / "run")
    DAMAGES[how](newest(folder))
    bad = newest(folder)
    before = unread(bad)
    store = opened(folder)
    with pytest.warns(CheckpointWarning, match=r"-00000003.*00000002\S* is used"):
        number = load(store)
    assert number == 2
    replies = [reply for journal in store.chain for reply in journal.records()]
    assert replies == [b"reply to 2", b"reply to 3"]  # nothing but time is lost
    for later in (4, 5, 6):
        store.save({}, content_of(later))
    store.close()
    assert unread(bad) == before  # neither deleted nor written to
    assert loaded(folder) == 6


@pytest.mark.parametrize("how", DAMAGES)
def test_with_no_good_one_left_the_error_names_them(tmp_path: Path, how: str) -> None:
    folder = filled(tmp_path / "run")
    for path in sorted(folder.glob("checkpoint-*"), reverse=True):
        DAMAGES[how if how != "swapped" else "cut"](path)
    with pytest.raises(CheckpointError, match=r"00000003.*00000002.*empty folder"):
        loaded(folder)


def test_files_of_others_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled(tmp_path / "run")
    stat = os.fstat

    def of_another(handle: int) -> os.stat_result:
        found = list(stat(handle))
        found[4] = os.geteuid() + 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", of_another)
    with pytest.raises(CheckpointError, match="belongs to another user"):
        loaded(folder)


def test_a_damaged_journal_is_the_end_of_the_replies(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    DAMAGES["cut"](newest(folder))
    journal = folder / "journal-00000002.dszog"
    os.truncate(journal, journal.stat().st_size - 1)
    store = opened(folder)
    with pytest.warns(CheckpointWarning) as caught:
        number = load(store)
    assert number == 2
    said = " ".join(str(warning.message) for warning in caught)
    assert "bytes of journal-00000002.dszog were not whole" in said
    assert "evaluated again" in said
    assert [list(journal.records()) for journal in store.chain] == [[]]
    store.close()
    assert "journal-00000003.dszog.aside0" in names(folder)


quiet = pytest.mark.filterwarnings("ignore::dszog.CheckpointWarning")


@quiet
@pytest.mark.parametrize("how", ["cut", "zeros", "other magic", "link"])
def test_a_damaged_newest_journal_costs_replies(tmp_path: Path, how: str) -> None:
    folder = filled(tmp_path / "run")
    DAMAGES[how](folder / "journal-00000003.dszog")
    store = opened(folder)
    assert load(store) == 3
    store.chain[-1].append(b"on")
    store.save({}, content_of(4))
    store.close()
    assert loaded(folder) == 4


def test_a_journal_alone_is_no_run(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run")
    for path in folder.glob("checkpoint-*"):
        path.unlink()
    with pytest.raises(CheckpointError, match="only a journal"):
        loaded(folder)


@quiet
@pytest.mark.parametrize("n_files", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_corrupted_checkpoint_is_loaded(
    no_syncs: None, tmp_path: Path, n_files: int, record_property: Record
) -> None:
    folder = filled(tmp_path / "run")
    n_missed = 0
    path = newest(folder)
    content = path.read_bytes()
    rng = np.random.Generator(np.random.Philox(key=n_files))
    for number in range(n_files):
        changed = bytearray(content)
        if number % 4 == 3:
            changed = changed[: rng.integers(len(changed))]
        else:
            places = rng.choice(8 * len(content), rng.integers(1, 9), replace=False)
            for place in places:
                changed[place // 8] ^= 1 << (place % 8)
        path.write_bytes(bytes(changed))
        n_missed += loaded(folder) != 2
    record_property("corruptions", n_files)
    record_property("undetected", n_missed)
    assert n_missed == 0


# --------------------------------------------------------------------- deaths in a save
def save_three(folder: Path, done: list[int]) -> None:
    store = opened(folder)
    load(store)
    for number in range(4, 7):
        store.save({}, content_of(number))
        done.append(number)
        store.chain[-1].append(b"reply")
    store.close()


@quiet
def test_a_death_in_any_save_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    template = filled(tmp_path / "template")
    n_calls, at = 10**9, 0
    while at <= n_calls:
        at += 1
        folder = tmp_path / f"run{at}"
        shutil.copytree(template, folder)
        done = [3]

        def die(name: str, number: int, *arguments: Any, at: int = at) -> None:
            if number >= at:  # and everything after it: nobody is there to clean up
                raise Killed

        with watched(before=die) as made, suppress(Killed):
            save_three(folder, done)
            n_calls = len(made)
        for path in folder.glob("checkpoint-*.dszog"):
            unpack(path.read_bytes())  # under its name a file is whole
        (folder / "lock").unlink()  # its descriptor is still open in this process
        found = loaded(folder)
        assert found is not None
        assert found >= done[-1]
        shutil.rmtree(folder)
    assert n_calls > 40


@quiet
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
def test_a_disk_error_at_any_call_is_loud(tmp_path: Path, number: int) -> None:
    template = filled(tmp_path / "template")
    n_calls, at, n_loud = 10**9, 0, 0
    while at < n_calls:
        at += 1
        folder = tmp_path / f"run{at}"
        shutil.copytree(template, folder)
        store = opened(folder)
        load(store)

        def fail(name: str, count: int, *arguments: Any, at: int = at) -> None:
            if count == at and name not in ("unlink", "close"):
                raise OSError(number, os.strerror(number))

        with watched(before=fail) as made:
            try:
                store.save({}, content_of(4))
                n_calls = len(made)
            except CheckpointWriteError as error:
                n_loud += 1
                assert os.strerror(number) in str(error)  # noqa: PT017
                assert "resume=True" in str(error)  # noqa: PT017
        store.close()
        assert loaded(folder) in (3, 4)
        shutil.rmtree(folder)
    assert n_loud >= 6


def test_the_order_of_a_save_is_write_sync_rename_sync(tmp_path: Path) -> None:
    with watched() as made:
        write_whole(tmp_path / "file", [b"a", b"b"])
    told = [name for name in made if name not in ("close", "unlink")]
    expected = ["open", "write", "write", "fsync", "rename", "open", "fsync"]
    assert told == expected


@quiet
def test_what_was_not_synced_may_be_lost_and_nothing_is_missing(tmp_path: Path) -> None:
    """Lose power after each call: names and contents fall back to their last sync."""
    folder = filled(tmp_path / "run")
    disk = Shadow(folder)
    with watched(after=disk.note):
        save_three(folder, [])
    assert len(disk.survivors) > 20
    for number, files in enumerate(disk.survivors):
        copy = tmp_path / f"survivor{number}"
        copy.mkdir(mode=0o700)
        for name, content in files.items():
            (copy / name).write_bytes(content)
        assert loaded(copy) in (3, 4, 5, 6)
        shutil.rmtree(copy)


class Shadow:
    """A folder as it would be after a loss of power, kept along with the real one.

    A name is as of the last sync of the folder, or newer; what a file holds is what it
    held at its last sync, or nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._synced: dict[int, bytes] = {}  # by inode
        for path in folder.iterdir():
            self._synced[path.stat().st_ino] = path.read_bytes()
        self._names = self._now()
        self.survivors: list[dict[str, bytes]] = []

    def _now(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in self._folder.iterdir()}

    def note(self, name: str, number: int, *arguments: Any) -> None:
        """Take note of a call, and of what would be left were power lost after it."""
        if name == "fsync":
            self._sync(arguments[0])
        for names in (self._names, self._now()):  # the second: renamed, not written
            self.survivors.append(
                {n: self._synced.get(i, b"") for n, i in names.items()}
            )

    def _sync(self, handle: int) -> None:
        inode = os.fstat(handle).st_ino
        if inode == self._folder.stat().st_ino:
            self._names = self._now()
            return
        for path in self._folder.iterdir():
            if path.stat().st_ino == inode:
                self._synced[inode] = path.read_bytes()


# ----------------------------------------------------------------------------- folders
def test_a_folder_that_anybody_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(CheckpointError, match=r"by anybody.*chmod o-w"):
        opened(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot be used.*Give another one"):
        opened(tmp_path / "file" / "run")


# -------------------------------------------------------------------------- one writer

OWNER = """
import sys, pathlib
from dszog.save.store import Store
store = Store(pathlib.Path(sys.argv[1]), resume=True)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_told_of_the_first_if_alive(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    start = python("-c", OWNER, str(folder))
    with subprocess.Popen(**start, stdin=PIPE, stdout=PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "locked\n"
        said = (
            rf"process {owner.pid} on \S+, started \d{{4}}-\d\d-\d\d .*another folder"
        )
        for _ in range(100):
            with pytest.raises(CheckpointError, match=said):
                opened(folder)
        owner.kill()
        owner.wait()
    opened(folder).close()


def test_two_stores_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    store = opened(tmp_path)
    with pytest.raises(CheckpointError, match=re.escape(f"process {os.getpid()} on")):
        opened(tmp_path)
    store.close()
    opened(tmp_path).close()


FORKING = """
import os, multiprocessing, pathlib, sys, time
from dszog.save.store import Store

def live_on():
    print(os.getpid(), flush=True)
    time.sleep(60)

store = Store(pathlib.Path(sys.argv[1]), resume=True)
if sys.argv[2] == "multiprocessing":
    multiprocessing.get_context("fork").Process(target=live_on).start()
elif not os.fork():
    live_on()
time.sleep(60)
"""


@pytest.mark.parametrize("how", ["os.fork", "multiprocessing"])
def test_a_child_of_a_killed_run_keeps_no_lock(how: str, tmp_path: Path) -> None:
    start = python("-c", FORKING, str(tmp_path / "run"), how)
    with subprocess.Popen(**start, stdout=PIPE) as run:
        assert run.stdout is not None
        child = int(run.stdout.readline())
        try:
            with pytest.raises(CheckpointError, match=f"process {run.pid} on"):
                opened(tmp_path / "run")  # the run itself keeps it
            run.kill()
            run.wait()
            opened(tmp_path / "run").close()
        finally:
            os.kill(child, signal.SIGKILL)


GOING_ON = """
import os, pathlib, sys
from dszog.save.store import Store
from dszog.errors import CheckpointWriteError

store = Store(pathlib.Path(sys.argv[1]), resume=True)
store.save({}, {"number": 1})
if not os.fork():
    for write in (lambda: store.append(b"reply"), lambda: store.save({}, {})):
        try:
            write()
        except CheckpointWriteError as error:
            print(error, flush=True)
    others = os.open(os.devnull, os.O_RDONLY)  # gets the number that the lock had
    store.close()
    os.fstat(others)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
store.append(b"reply")
store.save({}, {"number": 2})
store.close()
"""


def test_a_child_that_goes_on_as_the_run_writes_nothing(tmp_path: Path) -> None:
    *said, code = said_by("-c", GOING_ON, str(tmp_path / "run")).splitlines()
    assert len(said) == 2
    assert all("was forked from it. End children" in one for one in said)
    assert code == "0"
    assert [n for n in names(tmp_path / "run") if n.startswith("checkpoint")] == [
        "checkpoint-00000001.dszog",
        "checkpoint-00000002.dszog",
    ]


@pytest.mark.parametrize("signed", ["[" * 4096, '{"pid": 1e999}', "{}", ""])
def test_a_lock_that_is_not_signed_is_a_lock(signed: str, tmp_path: Path) -> None:
    store = opened(tmp_path)
    (tmp_path / "lock").write_text(signed)
    with pytest.raises(CheckpointError, match="a process that has not signed yet"):
        opened(tmp_path)
    store.close()


def test_the_journal_before_is_synced_with_each_save(tmp_path: Path) -> None:
    store = opened(tmp_path / "run")
    store.save({}, content_of(1))
    store.chain[-1].append(b"a reply")
    journal = (tmp_path / "run" / "journal-00000001.dszog").stat().st_ino
    synced: list[int] = []

    def note(name: str, number: int, handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)

    with watched(("fsync",), before=note):
        store.save({}, content_of(2))
    store.close()
    # First of all: were the new one damaged, the one before has its replies.
    assert synced[0] == journal

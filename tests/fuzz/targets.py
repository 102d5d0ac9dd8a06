"""The five readers, each with files to start from and what it may raise."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dszog
import dszog.save.store
from dszog.contract import ProblemSize, cost
from dszog.errors import CheckpointError, InputError
from dszog.methods import METHODS
from dszog.readers import read_csv, read_libsvm
from dszog.run.feasible_set import with_feasible_set
from dszog.run.meter import ReplayOverError
from dszog.run.run import SizeNote
from dszog.save.checkpoints import (
    Checkpoints,
    Recorder,
    saved_method,
    saved_seed,
)
from dszog.save.encoding import pack_value
from dszog.save.files import write_whole
from dszog.save.fingerprint import fingerprint
from dszog.save.looking import look_at
from dszog.save.sizing import NAME, read_note
from dszog.save.store import Store
from tests.fuzz import mutate
from tests.fuzz.mutate import Rng, pick
from tests.save.cells import CELLS, Cell, Killed, die_at


@dataclass(frozen=True)
class Target:
    """A reader: how to make a case, and how to read it."""

    name: str
    case: Callable[[Rng], Any]  # made from the seeds
    read: Callable[[Path, Any], bool]  # whether it was accepted; in an empty folder
    files: tuple[str, ...]  # of the source, whose branches should be reached


LIBSVM = [
    b"+1 1:0.5 3:2\n-1 2:1 # note\n",
    b"0.5 1:1e-3 2:-2.5E+2 7:.5\n# all of a line\n1\n-1 3:4.\n",
    b"1 0:2 1:3\n2 5:1\n",
    b"1\n2\n",
]
CSV = [
    b"age,sex,pay\n39,Male,1.5\n50,Female,?\n",
    b'name,note\n"a, b","say ""x"""\n"two\nlines",y\n',
    b"# top\na;b\n1; 2\n3; 4\n",
    b"a;b\n1,5;1'234'567,5\n2,25;-1.000\n",
]


def _text_case(seeds: list[bytes], parting: str) -> Callable[[Rng], Any]:
    def case(rng: Rng) -> tuple[bytes, int]:
        seed = pick(rng, seeds)
        return mutate.text(rng, seed, parting), int(rng.integers(2**31))

    return case


def _placed(folder: Path, content: bytes, choice: int) -> Any:
    """Write a file and return its path; now and then one that is none."""
    path = folder / "data\x1b[31m"
    path.write_bytes(content)
    wrong = {0: folder, 1: folder / "missing", 2: None, 3: b"data", 4: "a\0b"}
    return wrong.get(choice % 97, path)


def _read_libsvm(folder: Path, case: tuple[bytes, int]) -> bool:
    content, choice = case
    path = _placed(folder, content, choice)
    options: dict[str, Any] = {"zero_based": choice % 5 == 0}
    options["n_features"] = (None, None, 3, 20, 2**31 - 1, 2**31)[choice % 6]
    if choice % 7 == 0:
        options["max_bytes"] = 20
    try:
        X, y = read_libsvm(path, **options)
    except (InputError, dszog.InputTypeError) as error:
        _check_message(error)
        return False
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise ValueError("an infinite value was read")
    if X.shape[0] != len(y) or X.indices.min(initial=0) < 0:
        raise ValueError("the rows do not fit together")
    if X.indices.max(initial=0) >= X.shape[1]:
        raise ValueError("an index lies outside")
    return True


def _read_csv(folder: Path, case: tuple[bytes, int]) -> bool:
    content, choice = case
    path = _placed(folder, content, choice)
    delimiters = (",", ",", ",", None, None, ";", ";", "\t", "::", '"')
    options: dict[str, Any] = {"delimiter": delimiters[choice // 7 % 10]}
    options["decimal"] = ".,;"[(choice // 70 % 20) // 9]
    options["thousands"] = ("", "", ",", ".", "'")[choice // 1400 % 5]
    try:
        table = read_csv(path, **options)
    except (InputError, dszog.InputTypeError) as error:  # one may be of the path
        _check_message(error)
        return False
    if table.take(np.arange(table.n_rows) % 2 == 0).n_rows != (table.n_rows + 1) // 2:
        raise ValueError("other rows were taken")
    for name in (*table.names, *(["no such column"] if choice % 8 == 0 else [])):
        for column in (
            lambda name=name: table.numbers(name),
            lambda name=name: table.texts(name),
        ):
            try:
                column()
            except InputError as error:
                _check_message(error)
    return True


def _check_message(error: Exception) -> None:
    """Refuse messages that steer a terminal or that nobody would read to the end."""
    if not str(error).isprintable() or len(str(error)) > 2000:
        raise ValueError(f"this is no message: {str(error)[:300]!r}")


N_ITERATIONS = 6


class Saved:
    """Folders that runs left behind, with what it takes to go on with them."""

    def __init__(self, folder: Path) -> None:
        self.cells: list[Cell] = [
            cell
            for cell in CELLS
            if cell.name
            in (
                *("dszog-sparse", "dszog-dense", "dszog-uniform", "zopsgd-matrix"),
                *("accszofw-matrix", "fzcgs-sparse", "acczomda-linearise"),
                *("accszofw-retract", "fcgs-matrix", "sampled_sqp-values"),
            )
        ]
        self.folders: list[Path] = []
        self.contracts: list[dict[str, Any]] = []
        for number, cell in enumerate(self.cells):
            self.folders.append(folder / cell.name)
            # Some died, one of them in its first look at the constraints.
            kill_at = {0: 10**9, 1: 1, 3: 4, 5: 4, 7: 4}.get(number, 10**9)
            if not number:  # one that has calls to tell of
                self.folders[-1].mkdir()
                note = pack_value({"kind": "sizes"}, NOTE)
                write_whole(self.folders[-1] / NAME, note)
            with contextlib.suppress(Killed):
                one = cell.fresh(die_at(kill_at))
                one.run(self.folders[-1], max_iterations=N_ITERATIONS)
            problem = cell.problem()
            method = METHODS[cell.method](**cell.options)
            method, _ = with_feasible_set(problem, method)
            given = fingerprint(
                problem, method, constraint_tol=1e-2, on_failure="raise", weights=None
            )
            self.contracts.append({"method": method, "fingerprint": given})

    def _replay(self, run: Any, recorder: Recorder, size: ProblemSize) -> None:
        """Ask what the run would ask next, as far as the journal has an answer."""
        queries = run.method.ask(run.position.state)
        with contextlib.suppress(ReplayOverError):
            while recorder.is_replaying:
                recorder.replayed(queries, cost(queries, size))
        recorder.drop()

    def load(self, number: int, folder: Path, seed: int | None) -> bool:
        """Go on with the run in a folder as far as its files go."""
        size = self.cells[number].problem().size
        store = None
        with contextlib.suppress(CheckpointError):
            look_at(folder)  # what `dszog watch` reads
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                store = Store(folder, resume=True)
                saved_seed(store)
                saved_method(store)
                contract = self.contracts[number]
                saver = Checkpoints(store=store, seed=seed, **contract)
                run = saver.load(size)
                if run is not None:
                    self._replay(run, Recorder(store), size)
        except CheckpointError as error:
            _check_message(error)
            return False
        finally:
            if store is not None:
                store.close()
        for warning in caught:
            if not issubclass(warning.category, dszog.CheckpointWarning):
                raise ValueError(f"an unexpected warning: {warning.message}")
            _check_message(Exception(str(warning.message)))
        return run is not None


def _saved_case(
    saved: Saved, kind: str, change: Callable[[Rng, bytes], bytes]
) -> Callable[[Rng], Any]:
    def case(rng: Rng) -> tuple[int, str, bytes]:
        number = int(rng.integers(len(saved.cells)))
        files = sorted(saved.folders[number].glob(f"{kind}-*.dszog"))
        newest = rng.random() < 0.7
        path = files[-1] if newest else files[0]
        return number, path.name, change(rng, path.read_bytes())

    return case


def _saved_reader(saved: Saved, keep: str) -> Callable[[Path, Any], bool]:
    def read(folder: Path, case: tuple[int, str, bytes]) -> bool:
        number, name, content = case
        target = folder / "run"
        shutil.copytree(saved.folders[number], target)
        if keep == "one":  # nothing to fall back on
            for path in target.glob("checkpoint-*.dszog"):
                path.unlink()
        (target / name).write_bytes(content)
        if len(content) % 7 == 3:
            (target / "other name").hardlink_to(target / name)
        try:
            seed = (1, 1, 1, None, 2)[len(content) % 5]
            return saved.load(number, target, seed)
        finally:
            shutil.rmtree(target)

    return read


NOTE = SizeNote(n_calls=7, about={"x0": "[1, 2]", "number": "2"}, widths=(3, 1))


def _note_case(seed: bytes) -> Callable[[Rng], Any]:
    def case(rng: Rng) -> tuple[bytes, int]:
        return mutate.checkpoint(rng, seed), 0

    return case


def _read_sizes(folder: Path, case: tuple[bytes, int]) -> bool:
    (folder / NAME).write_bytes(case[0])
    try:
        note = read_note(folder)
    except CheckpointError as error:
        _check_message(error)
        return False
    widths = () if note is None else note.widths
    if note is None or note.n_calls < len(widths) or min(widths, default=1) < 1:
        raise ValueError("a note that makes no sense was read")
    return True


def targets(folder: Path) -> list[Target]:
    """Return the readers; what they need is made in the folder."""
    dszog.save.store.SAVE_EVERY = 0.0
    dszog.save.store.SAVE_SHARE = 1.0
    saved = Saved(folder)
    text = ("readers/content.py", "readers/lines.py")
    container = ("save/container.py", "save/encoding.py", "save/checkpoints.py")
    records = ("save/journal.py",)
    whole = _saved_case(saved, "checkpoint", mutate.checkpoint)
    appended = _saved_case(saved, "journal", mutate.journal)
    sizes = _note_case((saved.folders[0] / NAME).read_bytes())
    libsvm, csv = _text_case(LIBSVM, " "), _text_case(CSV, ",")
    return [
        Target("libsvm", libsvm, _read_libsvm, ("readers/libsvm.py", *text)),
        Target("csv", csv, _read_csv, ("readers/csv.py", *text)),
        Target("checkpoint", whole, _saved_reader(saved, "one"), container),
        Target("journal", appended, _saved_reader(saved, "all"), records),
        Target("sizes", sizes, _read_sizes, ("save/sizing.py",)),
    ]

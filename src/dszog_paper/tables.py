"""The tables of the paper: which runs each needs, and with which settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from dszog_paper.protocol import (
    KERNEL,
    OURS,
    PUBLISHED,
    Form,
    Protocol,
    Stage,
    TaskName,
    Unit,
    grid,
)

PAIRWISE = ("a9a", "w8a", "gen", "svm")
FAIRNESS = ("D1", "D2", "D3", "D4")
BASELINES = ("zoscgd", "zopsgd", "acczomda", "accszofw")
FORMS: tuple[Form, ...] = ("lifted", "full")  # of the same set of pairs
LABELS = {
    "dszog": "DSZOG",
    OURS: "DSZOG, our settings",
    "zoscgd": "ZOSCGD",
    "zopsgd": "ZOPSGD",
    "acczomda": "AccZOMDA",
    "accszofw": "AccSZOFW",
}

Printed: TypeAlias = tuple[float, float | None]  # mean and spread
PrintedRows: TypeAlias = dict[str, dict[str, Printed]]  # by data set, then by column


def _printed(text: str) -> tuple[int, PrintedRows]:
    """Read a table: its number and columns, then a line for each data set."""

    def entry(text: str) -> Printed:
        mean, _, spread = text.partition("+-")
        return float(mean), float(spread) if spread else None

    (number, *columns), *lines = (line.split() for line in text.splitlines())
    return int(number), {
        data: dict(zip(columns, map(entry, entries), strict=True))
        for data, *entries in lines
    }


_, *_TEXTS = Path(__file__).with_name("printed.txt").read_text().strip().split("\n\n")
PRINTED: dict[int | str, PrintedRows] = dict(map(_printed, _TEXTS))
"""The tables of accuracies that the paper prints, by number, to stand beside ours."""

Record: TypeAlias = dict[str, Any]
Get: TypeAlias = Callable[[Unit], Record | None]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A run whose settings are chosen on validation data, stage by stage."""

    unit: Unit
    stages: tuple[Stage, ...] = ()
    n_selection: int = 1

    def follow(self, get: Get) -> tuple[list[Unit], Unit | None]:
        """Return the runs to choose from, as far as they are known, and the choice."""
        # The runs of a stage are known once those of the stage before are made; the
        # choice is None until all are.
        units: list[Unit] = []
        chosen = self.unit
        for stage in self.stages:
            scores: list[tuple[float, Unit]] = []
            for setting in stage:
                candidate = chosen.with_setting(**dict(setting))
                turns = [candidate.again(turn) for turn in range(self.n_selection)]
                units += turns
                records = [record for record in map(get, turns) if record is not None]
                if len(records) == self.n_selection:
                    total = sum(record["validation_accuracy"] for record in records)
                    scores.append((total / self.n_selection, candidate))
            if len(scores) < len(stage):
                return units, None
            chosen = max(scores, key=lambda score: score[0])[1]  # the first of equals
        return units, chosen


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One entry of a table."""

    row: str
    column: str
    choice: Choice
    override: dict[str, float] = field(default_factory=dict)
    form: Form | None = None  # another form than the one the settings were chosen in
    n_repetitions: int = 1
    printed: Printed | None = None

    def units(self, get: Get) -> list[Unit]:
        """Return the runs that are reported; none while settings are not chosen."""
        _, chosen = self.choice.follow(get)
        if chosen is None:
            return []
        chosen = chosen.with_setting(**self.override)
        if self.form is not None:
            chosen = replace(chosen, form=self.form)
        return [chosen.again(turn) for turn in range(self.n_repetitions)]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of accuracies."""

    number: int | str
    title: str
    cells: tuple[Cell, ...]

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the data sets."""
        return tuple(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> tuple[str, ...]:
        """The methods, or the settings of one."""
        return tuple(dict.fromkeys(cell.column for cell in self.cells))


def all_units(tables: Iterable[Table], get: Get) -> list[Unit]:
    """Return each run that is reported or was chosen from, as far as they are known."""
    cells = [cell for table in tables for cell in table.cells]
    units = (cell.units(get) + cell.choice.follow(get)[0] for cell in cells)
    return list(dict.fromkeys(chain.from_iterable(units)))


def missing(tables: Iterable[Table], get: Get) -> list[Unit]:
    """Return the runs that can be made now and are not there; none if all is done."""
    return [unit for unit in all_units(tables, get) if get(unit) is None]


# ------------------------------------------------------------------------ the tables


def plan(protocol: Protocol, stand_ins: frozenset[str] = frozenset()) -> list[Table]:
    """Return all tables of accuracies, in their order."""
    # `stand_ins` are the data whose files are not at hand.
    runs = _Runs(protocol, stand_ins)
    return [
        _comparison(runs, 2, "Pairwise constraints: test accuracy", PAIRWISE),
        _comparison(runs, 3, "Fairness constraints: test accuracy", FAIRNESS),
        _steps(runs, 6, "Fairness constraints: DSZOG's eta_w", FAIRNESS),
        _steps(runs, 7, "Pairwise constraints: DSZOG's eta_w", PAIRWISE),
        _steps(runs, 8, "Fairness constraints: DSZOG's eta_p", FAIRNESS),
        _steps(runs, 9, "Pairwise constraints: DSZOG's eta_p", PAIRWISE),
        _kernel(runs, 10, "test accuracy"),
        _kernel(runs, 11, "DSZOG's beta"),
        _kernel(runs, 12, "DSZOG's a and b"),
    ]


@dataclass(frozen=True)
class _Runs:
    """The runs of each method under a protocol."""

    protocol: Protocol
    stand_ins: frozenset[str]

    def choice(
        self, data: str, method: str, stages: tuple[Stage, ...], **more: Any
    ) -> Choice:
        task: TaskName = "pairwise" if data in PAIRWISE else "fairness"
        stand_in = data in self.stand_ins
        unit = Unit(task=task, data=data, method=method, stand_in=stand_in, **more)
        return Choice(unit=unit, stages=stages, n_selection=self.protocol.n_selection)

    def published(self, data: str) -> Choice:
        stages, end = self.protocol.stages, self.protocol.iterations
        return self.choice(data, "dszog", stages, setting=PUBLISHED, iterations=end)

    def ours(self, data: str) -> Choice:
        """Return our settings, with the iterations that cost the same queries."""
        # Some 2,600 (1,500) queries an iteration against 800 (600).
        factor = 3 if data in PAIRWISE else 2
        end = factor * self.protocol.iterations
        return self.choice(data, OURS, (self.protocol.ours,), iterations=end)

    def baseline(self, data: str, method: str, **more: Any) -> Choice:
        stages = (grid(step_size=self.protocol.steps),)
        end = self.protocol.ends()
        return self.choice(data, method, stages, form="lifted", **end, **more)

    def kernel(self, data: str) -> Choice:
        end = self.protocol.kernel_iterations
        return self.choice(
            data, "dszog", (), model="rbf", setting=KERNEL, iterations=end
        )


def _comparison(runs: _Runs, number: int, title: str, rows: Sequence[str]) -> Table:
    """Tables 2 and 3: all methods."""
    cells = []
    for data in rows:
        forms = FORMS if data in PAIRWISE else FORMS[:1]
        columns: list[tuple[str, Choice, Form | None]] = [
            ("dszog", runs.published(data), None),
            (OURS, runs.ours(data), None),
            *((m, runs.baseline(data, m), form) for m in BASELINES for form in forms),
        ]
        cells += [
            Cell(
                row=data,
                column=LABELS[method]
                + (f", {form}" if form and data in PAIRWISE else ""),
                choice=choice,
                form=form,
                n_repetitions=runs.protocol.n_repetitions,
                printed=PRINTED[number][data].get(method),
            )
            for method, choice, form in columns
        ]
    return Table(number=number, title=title, cells=tuple(cells))


def _steps(runs: _Runs, number: int, title: str, rows: Sequence[str]) -> Table:
    """Tables 6 to 9: one step size varied, the other at 0.01."""
    varied, other = "step_size", "dual_step_size"
    if number in (8, 9):
        varied, other = other, varied
    cells = [
        Cell(
            row=data,
            column=column,
            choice=runs.published(data),
            override={varied: float(column), other: 1e-2},
            n_repetitions=runs.protocol.n_repetitions,
            printed=entry,
        )
        for data in rows
        for column, entry in PRINTED[number][data].items()
    ]
    return Table(number=number, title=title, cells=tuple(cells))


def _kernel(runs: _Runs, number: int, what: str) -> Table:
    """Tables 10 to 12: methods, penalties or averagings, with a kernel."""
    cells = []
    for data in FAIRNESS:
        for column, entry in PRINTED[number][data].items():
            choice, override = runs.kernel(data), {}
            if number == 10 and column != "dszog":
                choice = runs.baseline(data, column, model="rbf")
            elif number == 11:
                override = {"penalty": float(column)}
            elif number == 12:  # such as a=0.9,b=0.1
                letters = dict(part.split("=") for part in column.split(","))
                a, b = float(letters["a"]), float(letters["b"])
                override = {"dual_averaging": a, "averaging": b}
            cell = Cell(
                row=data,
                column=LABELS.get(column, column),
                choice=choice,
                override=override,
                n_repetitions=runs.protocol.kernel_repetitions,
                printed=entry,
            )
            cells.append(cell)
    title = f"Fairness with an RBF kernel: {what}"
    return Table(number=number, title=title, cells=tuple(cells))

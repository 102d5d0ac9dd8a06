"""Which runs each table needs, and which settings they are made with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dszog_paper.printed import PRINTED, Printed
from dszog_paper.protocol import KERNEL, PUBLISHED, Protocol, Stage, grid
from dszog_paper.units import OURS, Form, Setting, Unit

PAIRWISE = ("a9a", "w8a", "gen", "svm")
FAIRNESS = ("D1", "D2", "D3", "D4")
REAL_FAIRNESS = ("adult", "compas", "communities")
BASELINES = ("zoscgd", "zopsgd", "acczomda", "accszofw")
LABELS = {
    "dszog": "DSZOG",
    OURS: "DSZOG, our settings",
    "zoscgd": "ZOSCGD",
    "zopsgd": "ZOPSGD",
    "acczomda": "AccZOMDA",
    "accszofw": "AccSZOFW",
}

Record: TypeAlias = dict[str, Any]
Get: TypeAlias = Callable[[Unit], Record | None]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A run whose settings are chosen on validation data, stage by stage."""

    unit: Unit
    stages: tuple[Stage, ...] = ()
    n_selection: int = 1

    def candidates(self, stage: int, chosen: Unit) -> list[Unit]:
        """Return the runs of a stage, on top of what was chosen before it."""
        return [chosen.with_setting(**dict(setting)) for setting in self.stages[stage]]

    def best(self, get: Get, stage: int | None = None) -> Unit | None:
        """Return the unit with the settings chosen; None if runs are still missing.

        Up to but without `stage`, or all stages.
        """
        chosen = self.unit
        for number in range(len(self.stages) if stage is None else stage):
            scores = []
            for candidate in self.candidates(number, chosen):
                accuracies = [
                    record["validation_accuracy"]
                    for record in map(get, self.turns(candidate))
                    if record is not None
                ]
                if len(accuracies) < self.n_selection:
                    return None
                scores.append((sum(accuracies) / len(accuracies), candidate))
            chosen = max(scores, key=lambda score: score[0])[1]  # the first of equals
        return chosen

    def turns(self, unit: Unit) -> list[Unit]:
        """Return the repetitions that settings are chosen on."""
        return [unit.again(turn) for turn in range(self.n_selection)]

    def missing(self, get: Get) -> list[Unit]:
        """Return the runs of the first stage that is not complete."""
        for stage in range(len(self.stages)):
            chosen = self.best(get, stage)
            if chosen is None:
                break
            units = [
                turn
                for candidate in self.candidates(stage, chosen)
                for turn in self.turns(candidate)
                if get(turn) is None
            ]
            if units:
                return units
        return []


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One entry of a table."""

    row: str
    column: str
    choice: Choice
    override: Setting = ()
    form: Form | None = None  # another form than the one the settings were chosen in
    n_repetitions: int = 1
    printed: Printed | None = None

    def units(self, get: Get) -> list[Unit] | None:
        """Return the runs that are reported; None if settings are not chosen yet."""
        chosen = self.choice.best(get)
        if chosen is None:
            return None
        chosen = chosen.with_setting(**dict(self.override))
        if self.form is not None:
            chosen = replace(chosen, form=self.form)
        return [chosen.again(turn) for turn in range(self.n_repetitions)]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of accuracies."""

    number: int | str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    note: str = ""


def missing(tables: Iterable[Table], get: Get) -> list[Unit]:
    """Return the runs that can be made now and are not there; none if all is done."""
    wanted: dict[str, Unit] = {}
    for table in tables:
        for cell in table.cells:
            units = cell.choice.missing(get) or cell.units(get) or []
            wanted |= {unit.key: unit for unit in units if get(unit) is None}
    return list(wanted.values())


# ------------------------------------------------------------------------ the tables


class Planner:
    """Makes the tables for a protocol.

    Parameters
    ----------
    protocol : Protocol
    stand_ins : frozenset of str
        Data whose files are not at hand.
    """

    def __init__(
        self, protocol: Protocol, stand_ins: frozenset[str] = frozenset()
    ) -> None:
        self._protocol = protocol
        self._stand_ins = stand_ins

    def tables(self) -> list[Table]:
        """Return all tables of accuracies, in their order."""
        return [
            self._main(2, "pairwise", "Pairwise constraints: test accuracy", PAIRWISE),
            self._main(3, "fairness", "Fairness constraints: test accuracy", FAIRNESS),
            self._steps(6, "fairness", "step_size", "eta_w", FAIRNESS),
            self._steps(7, "pairwise", "step_size", "eta_w", PAIRWISE),
            self._steps(8, "fairness", "dual_step_size", "eta_p", FAIRNESS),
            self._steps(9, "pairwise", "dual_step_size", "eta_p", PAIRWISE),
            self._kernel_main(),
            self._kernel_penalties(),
            self._kernel_averagings(),
            self._main(
                "F",
                "fairness",
                "Beyond the paper: fairness on real data",
                REAL_FAIRNESS,
            ),
        ]

    def _unit(self, task: Any, data: str, method: str, **more: Any) -> Unit:
        stand_in = data in self._stand_ins
        return Unit(task=task, data=data, method=method, stand_in=stand_in, **more)

    def _dszog(self, task: Any, data: str) -> Choice:
        unit = self._unit(
            task, data, "dszog", setting=PUBLISHED, iterations=self._protocol.iterations
        )
        protocol = self._protocol
        return Choice(
            unit=unit, stages=protocol.stages, n_selection=protocol.n_selection
        )

    def _ours(self, task: Any, data: str) -> Choice:
        """Return our settings, with the iterations that cost the same queries."""
        protocol = self._protocol
        # Some 2,600 (1,500) queries an iteration against 800 (600).
        factor = 3 if task == "pairwise" else 2
        unit = self._unit(task, data, OURS, iterations=factor * protocol.iterations)
        return Choice(
            unit=unit, stages=(protocol.ours,), n_selection=protocol.n_selection
        )

    def _baseline(
        self, task: Any, data: str, method: str, form: Form = "lifted", **more: Any
    ) -> Choice:
        protocol = self._protocol
        unit = self._unit(task, data, method, form=form, **protocol.ends(), **more)
        return Choice(
            unit=unit,
            stages=(grid(step_size=protocol.steps),),
            n_selection=protocol.n_selection,
        )

    def _main(
        self, number: int | str, task: Any, title: str, rows: tuple[str, ...]
    ) -> Table:
        """Tables 2 and 3, and fairness on real data: all methods."""
        n = self._protocol.n_repetitions
        cells = []
        for data in rows:
            printed = PRINTED.get(number, {}) if isinstance(number, int) else {}
            known = printed.get(data, {})
            for method, choice in (
                ("dszog", self._dszog(task, data)),
                (OURS, self._ours(task, data)),
            ):
                cells.append(
                    Cell(
                        row=data,
                        column=LABELS[method],
                        choice=choice,
                        n_repetitions=n,
                        printed=known.get(method),
                    )
                )
            for method in BASELINES:
                choice = self._baseline(task, data, method)
                forms: tuple[Form, ...] = ("lifted",)
                if task == "pairwise":
                    forms = ("lifted", "full")
                for form in forms:
                    label = LABELS[method]
                    if task == "pairwise":
                        label = f"{label}, {form}"
                    cells.append(
                        Cell(
                            row=data,
                            column=label,
                            choice=choice,
                            form=form,
                            n_repetitions=n,
                            printed=known.get(method),
                        )
                    )
        return _table(number, title, rows, cells)

    def _steps(
        self, number: int, task: Any, field: str, letter: str, rows: tuple[str, ...]
    ) -> Table:
        """Tables 6 to 9: one step size varied, the other at 0.01."""
        other = "dual_step_size" if field == "step_size" else "step_size"
        cells = [
            Cell(
                row=data,
                column=column,
                choice=self._dszog(task, data),
                override=tuple(sorted({field: float(column), other: 1e-2}.items())),
                n_repetitions=self._protocol.n_repetitions,
                printed=entry,
            )
            for data in rows
            for column, entry in PRINTED[number][data].items()
        ]
        title = f"{task.capitalize()} constraints: DSZOG's {letter}"
        return _table(number, title, rows, cells)

    def _kernel_dszog(self, data: str, **override: float) -> Choice:
        unit = self._unit(
            "fairness",
            data,
            "dszog",
            model="rbf",
            setting=KERNEL,
            iterations=self._protocol.kernel_iterations,
        )
        return Choice(unit=unit.with_setting(**override))

    def _kernel_main(self) -> Table:
        cells = []
        n = self._protocol.kernel_repetitions
        for data in FAIRNESS:
            for method, entry in PRINTED[10][data].items():
                choice = (
                    self._kernel_dszog(data)
                    if method == "dszog"
                    else self._baseline("fairness", data, method, model="rbf")
                )
                cells.append(
                    Cell(
                        row=data,
                        column=LABELS[method],
                        choice=choice,
                        n_repetitions=n,
                        printed=entry,
                    )
                )
        return _table(10, "Fairness with an RBF kernel: test accuracy", FAIRNESS, cells)

    def _kernel_penalties(self) -> Table:
        cells = [
            Cell(
                row=data,
                column=column,
                choice=self._kernel_dszog(data, penalty=float(column)),
                n_repetitions=self._protocol.kernel_repetitions,
                printed=entry,
            )
            for data in FAIRNESS
            for column, entry in PRINTED[11][data].items()
        ]
        return _table(11, "Fairness with an RBF kernel: DSZOG's beta", FAIRNESS, cells)

    def _kernel_averagings(self) -> Table:
        cells = []
        for data in FAIRNESS:
            for column, entry in PRINTED[12][data].items():
                letters = dict(part.split("=") for part in column.split(","))
                choice = self._kernel_dszog(
                    data,
                    averaging=float(letters["b"]),
                    dual_averaging=float(letters["a"]),
                )
                cells.append(
                    Cell(
                        row=data,
                        column=column,
                        choice=choice,
                        n_repetitions=self._protocol.kernel_repetitions,
                        printed=entry,
                    )
                )
        title = "Fairness with an RBF kernel: DSZOG's a and b"
        return _table(12, title, FAIRNESS, cells)


def _table(
    number: int | str, title: str, rows: tuple[str, ...], cells: list[Cell]
) -> Table:
    columns = tuple(dict.fromkeys(cell.column for cell in cells))
    return Table(
        number=number, title=title, rows=rows, columns=columns, cells=tuple(cells)
    )


def all_units(tables: Iterable[Table], get: Get) -> Iterator[Unit]:
    """Yield every run that is reported or was chosen from, as far as they are known."""
    seen = set()
    for table in tables:
        for cell in table.cells:
            choice = cell.choice
            units = list(cell.units(get) or [])
            for stage in range(len(choice.stages)):
                chosen = choice.best(get, stage)
                if chosen is not None:
                    for candidate in choice.candidates(stage, chosen):
                        units += choice.turns(candidate)
            for unit in units:
                if unit.key not in seen:
                    seen.add(unit.key)
                    yield unit

"""What the caller is told: the table of all trials."""

from __future__ import annotations

from dataclasses import dataclass, field

from dszog.contract.arrays import FloatArray, IntArray
from dszog.status import Status


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One short run: its settings, what it cost, and what was found at its end.

    ``fun`` and ``maxcv`` are fresh evaluations at its best point, ``merit`` is made of
    them; all are `nan` or infinite where the trial failed.
    """

    settings: dict[str, float]
    rung: int  # 0 for the first, shortest ones
    nit: int
    nfev: int
    ncev: int
    fun: float
    maxcv: float
    merit: float
    status: Status | None  # None if a function failed
    note: str = ""

    @property
    def n_queries(self) -> int:
        """Values of losses and constraints that the trial evaluated."""
        return self.nfev + self.ncev


@dataclass(frozen=True, kw_only=True)
class TuningReport:
    """What was tried and what was chosen; print it for a table.

    ``merit`` of all trials is ``fun + penalty * maxcv**2`` with one `penalty`, that of
    the untuned method.

    Parameters
    ----------
    options : dict
        The chosen settings, as the chosen trial ended with them: for
        ``minimize(options=...)``.
    chosen : int
        The place of the chosen trial.
    trials : tuple of Trial
        In the order they were made.
    penalty : float
    x, weights
        Where the chosen trial got to: ``minimize(x0=x, weights=weights)`` goes on.
    """

    options: dict[str, float]
    chosen: int
    trials: tuple[Trial, ...]
    penalty: float
    x: FloatArray = field(repr=False)
    weights: tuple[IntArray, FloatArray] | None = field(repr=False)

    @property
    def nit(self) -> int:
        """Iterations of all trials."""
        return sum(trial.nit for trial in self.trials)

    @property
    def nfev(self) -> int:
        """Loss queries of all trials."""
        return sum(trial.nfev for trial in self.trials)

    @property
    def ncev(self) -> int:
        """Constraint queries of all trials."""
        return sum(trial.ncev for trial in self.trials)

    @property
    def n_queries(self) -> int:
        """Queries of all trials."""
        return self.nfev + self.ncev

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.trials[self.chosen]

    def __str__(self) -> str:
        names = list(self.trials[0].settings)
        rows = [["rung", *names, "queries", "objective", "violation", "merit", ""]]
        rows += [
            [
                str(trial.rung),
                *(f"{trial.settings[name]:.4g}" for name in names),
                f"{trial.n_queries:,}",
                f"{trial.fun:.6g}",
                f"{trial.maxcv:.3g}",
                f"{trial.merit:.6g}",
                "chosen" if place == self.chosen else trial.note,
            ]
            for place, trial in enumerate(self.trials)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (map(str.rjust, row, widths) for row in rows)
        return "\n".join("  ".join(line).rstrip() for line in lines)

"""What the caller is told: the table of all trials."""

from __future__ import annotations

from dataclasses import dataclass, field

from dszog.contract.arrays import FloatArray, IntArray
from dszog.tuning.trials import Trial


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
    sampler : str
    x, weights
        Where the chosen trial got to: ``minimize(x0=x, weights=weights)`` goes on.
    """

    options: dict[str, float]
    chosen: int
    trials: tuple[Trial, ...]
    penalty: float
    sampler: str
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
        heads = ["rung", *names, "queries", "objective", "violation", "merit", ""]
        rows = [heads]
        for place, trial in enumerate(self.trials):
            rows.append(
                [
                    str(trial.rung),
                    *(f"{trial.settings[name]:.4g}" for name in names),
                    f"{trial.n_queries:,}",
                    f"{trial.fun:.6g}",
                    f"{trial.maxcv:.3g}",
                    f"{trial.merit:.6g}",
                    "chosen" if place == self.chosen else trial.note,
                ]
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        )

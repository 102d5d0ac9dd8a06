"""What `minimize` returns: SciPy's result that can also be read, drawn and tabled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from os import PathLike
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult

from dszog.contract.validation import printable, shown_point
from dszog.errors import MissingExtraError
from dszog.evidence.certificate import EXCEEDED
from dszog.run.verdict import headline

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

WIDTH, INDENT = 88, 14  # of the text
N_HEAVIEST = 3  # weights that are named in the text
COUNTS = ("iteration", "n_queries", "n_touched", "n_constraint_queries", "n_failed")


class Binding(NamedTuple):
    """A constraint that holds a result where it is."""

    name: str  # or its index
    # What the objective would fall by, per unit that it gives way; `nan` of one that
    # the check found exceeded and the method did not learn.
    multiplier: float
    constraint: int  # its index


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """The answer of a run, and what it rests on.

    A :class:`scipy.optimize.OptimizeResult`: a dictionary whose entries are attributes.
    ``print(result)`` begins with the verdict. `minimize` says what the entries are.
    """

    @property
    def verdict(self) -> str:
        """What became of the run, in one sentence."""
        return headline(
            self.status,
            self.success,
            self.certificate,
            self.get("constraint_tol", 0.0),
            is_start=self.get("is_start", False),
        )

    @property
    def in_short(self) -> str:
        """The verdict with the figures behind it, in one line."""
        return (
            f"{self.verdict} Objective {self.fun:.6g}, worst violation checked "
            f"{self.maxcv:.3g}, {counted(self.nit, 'iteration')}, "
            f"{self.nfev + self.ncev:,} queries."
        )

    def plot(self, against: str = "queries", *, figure: Figure | None = None) -> Figure:
        """Draw how the run went and what is known of its result.

        The curves are of values seen in batches, which are samples; what was evaluated
        afresh at the returned point is drawn beside them. Needs the extra ``viz``.

        Parameters
        ----------
        against : {"queries", "time", "iterations"}
            What to draw against.
        figure : matplotlib.figure.Figure, optional
            An empty one to draw into, such as ``matplotlib.pyplot.figure()``.

        Returns
        -------
        matplotlib.figure.Figure
            To be shown by a notebook, or saved: ``result.plot().savefig("run.png")``.
        """
        from dszog.show.plot import plot_run

        return plot_run(self, against, figure=figure)

    def to_frame(self) -> DataFrame:
        """Return the history as a table of pandas, one row per recorded iteration.

        Needs the extra ``pandas``. Columns named ``sampled_*`` are of the batches.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingExtraError.of("to_frame", "pandas", "pandas") from error
        columns = dict(self.history)
        for name in COUNTS:
            if name in columns and not np.isnan(columns[name]).any():
                columns[name] = columns[name].astype(np.int64)
        return DataFrame(columns)

    def to_html(self) -> str:
        """Return a page on the result for those who did not run it.

        The verdict in plain words, all figures, and the picture if the extra ``viz`` is
        there. The page needs nothing else: ``Path("run.html").write_text(...)``.
        """
        from dszog.show.html import as_page

        return as_page(self, self._repr_html_())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to one file, which :func:`dszog.load_result` reads.

        It holds numbers and texts, nothing that could run, and is whole or not there;
        an earlier one of that name is replaced.
        """
        from dszog.save.result_file import save_result

        save_result(path, self)

    def binding(self) -> list[Binding]:
        """Return the constraints that hold the result where it is, the dearest first.

        A multiplier of 2 says that the objective would fall by some 0.02 if the
        constraint were allowed to be 0.01; of a simulator with a `scale`, units are
        those. Empty if none binds, or multipliers are not known; bounds of variables
        are not among them. Constraints that the check found exceeded come last, with
        the multiplier `nan`, if the method did not take part of them into its last
        step, as it is allowed to do within the tolerance. As a table of pandas:
        ``pandas.DataFrame(result.binding())``.
        """
        indices, multipliers = self.multipliers or ((), ())
        rows = [
            Binding(self.names.get(int(j), f"{j:,}"), float(force), int(j))
            for j, force in zip(indices, multipliers, strict=True)
        ]
        rows.sort(key=lambda row: -row.multiplier)
        if self.multipliers is None:
            return rows
        found, known = self.certificate.feasibility, {row.constraint for row in rows}
        worst = zip(found.worst_indices.tolist(), found.worst_values, strict=True)
        exceeded = [j for j, value in worst if value > EXCEEDED and j not in known]
        return rows + [
            Binding(self.names.get(j, f"{j:,}"), math.nan, j) for j in exceeded
        ]

    @property
    def point_text(self) -> str:
        """The point, its variables by name where they have names."""
        if digest := self.get("weights_digest"):  # x is the name of a point
            return f"the weights of the network, digest {digest[:12]}"
        if names := self.get("variables"):
            return shown_point(self.x, names)
        with np.printoptions(threshold=8, edgeitems=3, precision=6, linewidth=70):
            return str(self.x)

    def evidence(self) -> list[tuple[str, str]]:
        """Return what the result rests on, as names and texts."""
        lines = str(self.certificate).splitlines()
        rows = [(name, text) for name, text in (line.split(None, 1) for line in lines)]
        costs, failures = self.costs, self.failures
        work = (
            f"{counted(self.nit, 'iteration')}; {self.nfev:,} loss and "
            f"{self.ncev:,} constraint queries; {costs.time:.3g} s, of which "
            f"{costs.time_estimate:.3g} s in the functions"
        )
        again = "calls made again, as they failed or their worker was lost"
        if "n_forwards" in self:  # of a network
            work += (
                f"; {self.n_forwards:,} examples went through the network, "
                f"{self.n_looks:,} of them before the run"
            )
            again = "made again (a constraint that is drawn twice is evaluated twice)"
        rows.append(("work", work))
        beside = []
        if costs.n_lost:
            beside.append(
                f"{costs.n_lost:,} queries of earlier processes that are not used here "
                "(cut short, or the check of an earlier result)"
            )
        if costs.n_retried:
            beside.append(f"{costs.n_retried:,} {again}")
        if beside:
            said = f"{', and '.join(beside)}; they count against max_queries"
            rows.append(("beside", said))
        if failures.n_failed:
            points = f"{failures.n_failed:,} of {failures.n_points:,} points"
            rows.append(("failures", f"{points} ({failures.policy})"))
        if failures.first:
            rows.append(("first failure", failures.first[0].message))
        return rows

    def _rows(self) -> list[tuple[str, str]]:
        """Return what there is to say below the verdict, as names and texts."""
        rows = self.evidence()
        rows.append(("x", self.point_text))
        rows.append(("weights", _weights(self.weights, self.get("names", {}))))
        rows.append(("seed", str(self.seed)))
        rows.append(("message", self.message))
        return [(name, printable(text, keep="\n")) for name, text in rows]

    @property
    def _is_whole(self) -> bool:
        """Whether it is what a run returned, and not what somebody made of it."""
        wanted = ("status", "success", "certificate", "costs", "failures", "weights")
        return all(name in self for name in (*wanted, "x", "nit", "message", "seed"))

    def __repr__(self) -> str:
        if not self._is_whole:
            return str(super().__repr__())
        lines = [self.verdict]
        for name, text in self._rows():
            lines += _hanging(name, text)
        return "\n".join(lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Show it to a notebook: in plain words, with all figures to be unfolded."""
        if not self._is_whole:
            return f"<pre>{escape(repr(self))}</pre>"
        from dszog.show.html import as_html

        return as_html(self, self._rows())

    def __dir__(self) -> list[str]:
        return sorted({*self.keys(), *object.__dir__(self)})


def counted(n: int, noun: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "iteration"), counted(2000, "iteration")
    ('1 iteration', '2,000 iterations')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _hanging(name: str, text: str) -> list[str]:
    """Return the lines of a text, with its name before the first."""
    lines = [
        part for line in text.split("\n") for part in wrap(line, WIDTH - INDENT) or [""]
    ]
    names = [name, *("" for _ in lines[1:])]
    return [f"{a:<{INDENT}}{b}" for a, b in zip(names, lines, strict=True)]


def _weights(weights: Any, names: Mapping[int, str]) -> str:
    indices, values = (entry[weights[1] > 0.0] for entry in weights)
    if not len(indices):
        return "no constraint has a weight of its own"
    heaviest = np.argsort(-values, kind="stable")[:N_HEAVIEST]
    named = ", ".join(
        f"{names.get(int(indices[j]), f'{indices[j]:,}')} ({values[j]:.3g})"
        for j in heaviest
    )
    if len(indices) == 1:
        return f"one constraint has a weight of its own: {named}"
    n = f"{len(indices):,}"
    return f"{n} constraints have weights of their own; the heaviest: {named}"

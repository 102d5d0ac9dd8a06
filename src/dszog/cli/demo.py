"""`dszog demo`: a heavily constrained problem, solved and explained."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import OptimizeResult

import dszog
from dszog.cli.files import as_json, make_output, write_text
from dszog.cli.options import Count, OutputFolder
from dszog.cli.talk import DONE, INTERRUPTED, NO_SUCCESS, answered, say
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import InputError, MissingExtraError
from dszog.maths.random_stream import stream

N_ROWS, N_FEATURES, N_INFORMATIVE, N_REDUNDANT = 500, 50, 15, 15
MARGIN = -0.3


@dataclass(frozen=True)
class DemoProblem:
    """The relaxed pairwise problem: 50 variables, about 62,500 constraints.

    The loss of a row is ``1 - exp(-(y - x.w)^2)``; every pair of a positive and a
    negative row is a constraint: the positive one scores at most 0.3 lower.
    """

    X: FloatArray  # (500, 50)
    y: FloatArray  # (500,), +1 or -1

    @cached_property
    def problem(self) -> dszog.Problem:
        """The problem, with the objective and the constraints as black boxes."""
        X, y = self.X, self.y
        pairs = dszog.Constraints.pairwise(X[y > 0], X[y < 0], margin=MARGIN)
        losses = dszog.Losses(
            lambda points, rows: _loss(y[rows], points @ X[rows].T), len(y)
        )
        return dszog.Problem(losses, pairs.black_box(), X.shape[1])

    def objective(self, w: FloatArray) -> float:
        """Return the mean loss over all rows; for the report, not for the method."""
        return float(_loss(self.y, self.X @ w).mean())


def _loss(labels: FloatArray, scores: FloatArray) -> FloatArray:
    loss: FloatArray = 1.0 - np.exp(-np.square(labels - scores))
    return loss


def demo_problem(seed: int) -> DemoProblem:
    """Return the problem of a seed."""
    X, labels = classification(seed)
    X, y = X[:N_ROWS], np.where(labels[:N_ROWS] > 0, 1.0, -1.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0) * 2.0 / np.sqrt(N_FEATURES)
    return DemoProblem(X, y)


def classification(seed: int) -> tuple[FloatArray, IntArray]:
    """Return rows of two Gaussian classes, with redundant and useless features.

    Each class is one cluster around a corner of a cube in the informative features;
    the redundant ones are mixtures of these, the others noise; a tenth of the labels is
    drawn again.
    """
    rng = stream(seed, 0)
    n, k = 2 * N_ROWS, N_INFORMATIVE
    labels = rng.permutation(np.arange(n) % 2)
    corners = 0.7 * rng.choice([-1.0, 1.0], size=(2, k))
    mixing = rng.uniform(-1.0, 1.0, size=(2, k, k))
    informative = rng.standard_normal((n, k))
    informative = np.einsum("nk,nkj->nj", informative, mixing[labels]) + corners[labels]
    redundant = informative @ rng.uniform(-1.0, 1.0, size=(k, N_REDUNDANT))
    noise = rng.standard_normal((n, N_FEATURES - k - N_REDUNDANT))
    X = np.concatenate([informative, redundant, noise], axis=1)
    X = X[:, rng.permutation(N_FEATURES)]
    flipped = rng.random(n) < 0.1
    labels = np.where(flipped, rng.integers(2, size=n), labels)
    return X, labels


def demo(
    *,
    output: OutputFolder = Path("dszog-demo"),
    seed: int = 0,
    max_queries: Count = 3_000_000,
) -> int:
    """Solve a problem with 62,000 constraints from start to end.

    Trains a classifier on generated data so that no positive row scores more than 0.3
    below any negative one, by evaluations alone. Takes well under a minute and needs
    no data. Writes a picture and the figures into the output folder.

    For example:

    dszog demo

    dszog demo --seed 1 --max-queries 1000000 -o demo-1

    Exit codes: 0 success; 3 the run ended without one; 130 Ctrl-C; 2 wrong usage; 1
    other errors.

    Parameters
    ----------
    output
        Folder for the picture and the figures.
    seed
        Random seed of the data and of the run.
    max_queries
        Most values of losses and constraints to evaluate, together.
    """
    return answered(
        "demo",
        lambda: _run(Console(), output, seed, max_queries),
        ["max_queries", "seed"],
    )


def _run(console: Console, output: Path, seed: int, max_queries: int) -> int:
    """Solve, show and save; return the exit code: 0 if the run did what it should."""
    if not 0 <= seed < 2**32:
        raise InputError(
            f"dszog demo: `seed` must lie between 0 and 2**32 - 1, got {seed}. Try 0."
        )
    demo = demo_problem(seed)
    size = demo.problem.size
    make_output("demo", output)
    console.print(
        f"[bold]dszog demo[/bold]: train a classifier on {N_ROWS} rows so that no "
        f"positive row scores more than {-MARGIN} below any negative one.\n"
        f"{size.dim} variables, {size.n_constraints:,} constraints, one per pair of "
        f"rows; objective and constraints are black boxes.\n"
        f"Data of seed {seed}."
    )
    started = time.perf_counter()
    result = dszog.minimize(
        demo.problem,
        method="dszog",
        max_queries=max_queries,
        seed=seed,
        progress=True,
    )
    found = _figures(demo, result, time.perf_counter() - started)
    write_text(output / "demo.json", as_json(found))
    console.print(_table(found))
    say(console, _verdict(found), style="green" if result.success else "yellow")
    if not result.success:
        say(console, result.message)
    say(console, f"Figures: {output / 'demo.json'}")
    try:
        result.plot().savefig(output / "demo.png", dpi=120)
    except MissingExtraError as missing:
        say(console, f"No picture: {missing}")
    else:
        say(console, f"Picture: {output / 'demo.png'}")
    if result.status == dszog.Status.INTERRUPTED:
        return INTERRUPTED
    moved = found["objective"] != found["objective_at_start"]
    return DONE if result.success and moved else NO_SUCCESS


def _figures(
    demo: DemoProblem, result: OptimizeResult, seconds: float
) -> dict[str, Any]:
    m = demo.problem.size.n_constraints
    points = result.method.n_directions + 1
    return {
        "success": bool(result.success),
        "message": result.message,
        "constraints": m,
        "iterations": result.nit,
        "objective_at_start": demo.objective(demo.problem.x0),
        "objective": float(result.fun),
        "worst_violation": float(result.maxcv),
        "share_violated": result.certificate.feasibility.n_violated / m,
        "loss_queries": result.nfev,
        "constraint_queries": result.ncev,
        "looks_at_all_constraints": result.ncev / m,
        "constraint_queries_of_full_looks": result.nit * points * m,
        "seconds": round(seconds, 2),
        "dszog": dszog.__version__,
    }


ROWS = {
    "objective": "{objective:.4f}, from {objective_at_start:.4f} at the start",
    "worst violation": "{worst_violation:.4f}",
    "share violated": "{share_violated:.3%} of all {constraints:,} constraints (all "
    "checked)",
    "queries": "{loss_queries:,} of losses, {constraint_queries:,} of constraints",
    "that is": "{looks_at_all_constraints:.1f} looks at all constraints",
    "iterations": "{iterations:,} in {seconds} s",
}
"""What is said of the figures."""


def _table(found: dict[str, Any]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, text in ROWS.items():
        table.add_row(f"[bold]{name}[/bold]", text.format(**found))
    return table


def _verdict(found: dict[str, Any]) -> str:
    ratio = found["constraint_queries_of_full_looks"] / found["constraint_queries"]
    achieved = "The best point found"
    if found["objective"] == found["objective_at_start"]:
        achieved = "No better point than the start"
    elif found["success"]:
        achieved = "A point that keeps every constraint to within the tolerance"
    return (
        f"{achieved} (worst violation {found['worst_violation']:.4f}) was found for "
        f"the price of {found['looks_at_all_constraints']:.0f} looks at all "
        f"constraints; looking at all of them at each of the {found['iterations']:,} "
        f"steps would have cost {ratio:,.0f} times as many constraint queries."
    )

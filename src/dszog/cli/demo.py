"""`dszog demo`: a heavily constrained problem, solved and explained."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import OptimizeResult, minimize

import dszog
from dszog import kernels
from dszog.cli.files import as_json, make_output, write_text
from dszog.cli.options import Count, Flag, OutputFolder
from dszog.cli.talk import DONE, INTERRUPTED, NO_SUCCESS, say
from dszog.contract.arrays import FloatArray
from dszog.errors import InputError, MissingExtraError
from dszog.maths.random_stream import stream

N_ROWS, N_FEATURES, N_INFORMATIVE, N_REDUNDANT = 500, 50, 15, 15
MARGIN = -0.3
USUAL = "L-BFGS on a penalty"
PENALTY = 4e4  # of the mean squared violation: it keeps the tolerance for seeds 0 to 2
MOST_LOOKS = 20_000
TELL_EVERY = 3.0  # seconds
COLOURS = ("#0072B2", "#D55E00")
Step: TypeAlias = tuple[float, float, float]  # looks, objective, worst violation


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

    def violations(self, w: FloatArray) -> FloatArray:
        """Return by how much each pair is out of order, 0 where it is not."""
        scores = self.X @ w
        high, low = scores[self.y > 0], scores[self.y < 0]
        gaps: FloatArray = np.maximum(low - high[:, np.newaxis] + MARGIN, 0.0)
        return gaps

    def step(self, looks: float, w: FloatArray) -> Step:
        """Return where a method is after so many looks at all constraints."""
        return looks, self.objective(w), float(self.violations(w).max())


def _loss(labels: FloatArray, scores: FloatArray) -> FloatArray:
    loss: FloatArray = 1.0 - np.exp(-np.square(labels - scores))
    return loss


def demo_problem(seed: int) -> DemoProblem:
    """Return rows of two Gaussian classes, with redundant and useless features."""
    # Each class is one cluster around a corner of a cube in the informative features;
    # the redundant ones are mixtures of these, the others noise; a tenth of the labels
    # is drawn again. The second half of the rows is not used.
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
    X = X[:, rng.permutation(N_FEATURES)][:N_ROWS]
    flipped = rng.random(n) < 0.1
    labels = np.where(flipped, rng.integers(2, size=n), labels)[:N_ROWS]
    X = (X - X.mean(axis=0)) / X.std(axis=0) * 2.0 / np.sqrt(N_FEATURES)
    return DemoProblem(X, np.where(labels > 0, 1.0, -1.0))


def demo(
    *,
    output: OutputFolder = Path("dszog-demo"),
    seed: int = 0,
    max_queries: Count = 3_000_000,
    alone: Flag = False,
) -> int:
    """Solve a problem with 62,000 constraints, beside the usual way to do it.

    Trains a classifier on generated data so that no positive row scores more than 0.3
    below any negative one, by evaluations alone; then minimises a penalty that looks at
    all constraints, and draws both. Takes well under a minute and needs no data. Writes
    a picture and the figures into the output folder.

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
    alone
        Leave out the usual way.
    """
    console = Console()
    if not 0 <= seed < 2**32:
        raise InputError(f"`seed` must lie between 0 and 2**32 - 1, got {seed}. Try 0.")
    demo = demo_problem(seed)
    size = demo.problem.size
    make_output(output)
    console.print(
        f"[bold]dszog demo[/bold]: train a classifier on {N_ROWS} rows so that no "
        f"positive row scores more than {-MARGIN} below any negative one.\n"
        f"{size.dim} variables, {size.n_constraints:,} constraints, one per pair of "
        f"rows; objective and constraints are black boxes.\n"
        f"Data of seed {seed}."
    )
    if kernels.chosen().NAME == "compiled":
        say(console, "(The first run ever compiles its loops, for some 15 seconds.)")
    ours: list[Step] = []
    usual: list[Step] = []
    started = time.perf_counter()

    def note(progress: dszog.Progress) -> None:
        looks = progress.n_constraint_queries / size.n_constraints
        ours.append(demo.step(looks, progress.x))

    result = dszog.minimize(
        demo.problem, max_queries=max_queries, seed=seed, progress=True, callback=note
    )
    found = _figures(demo, result, time.perf_counter() - started)
    ours.append(demo.step(found["looks_at_all_constraints"], result.x))
    if not alone and result.status != dszog.Status.INTERRUPTED:
        say(
            console,
            f"The usual way, for comparison: {USUAL}. Every value of it looks at all "
            f"{size.n_constraints:,} constraints; its penalty is chosen beforehand.",
        )
        found["usual"] = _usual_way(console, demo, usual)
    write_text(output / "demo.json", as_json(found))
    console.print(_table(found))
    say(console, _verdict(found), style="green" if result.success else "yellow")
    if not result.success:
        say(console, result.message)
    say(console, f"Figures: {output / 'demo.json'}")
    try:
        _draw(output / "demo.png", {"dszog": ours, USUAL: usual}, found)
    except ImportError:
        missing = MissingExtraError.of("The picture", "matplotlib", "viz")
        say(console, f"No picture: {missing}")
    else:
        say(console, f"Picture: {output / 'demo.png'}")
    if result.status == dszog.Status.INTERRUPTED:
        return INTERRUPTED
    moved = found["objective"] != found["objective_at_start"]
    return DONE if result.success and moved else NO_SUCCESS


def _usual_way(
    console: Console, demo: DemoProblem, steps: list[Step]
) -> dict[str, Any]:
    """Minimise a penalised objective by differences; tell how far it is."""
    looks, started = 0, time.perf_counter()
    told = started

    def total(w: FloatArray) -> float:
        nonlocal looks, told
        looks += 1
        if time.perf_counter() > told + TELL_EVERY:
            told = time.perf_counter()
            say(console, f"  {looks:,} looks after {told - started:.0f} s")
        return demo.objective(w) + PENALTY * float(np.square(demo.violations(w)).mean())

    x = minimize(
        total,
        demo.problem.x0,
        method="L-BFGS-B",
        options={"maxfun": MOST_LOOKS, "maxiter": MOST_LOOKS},
        callback=lambda w: steps.append(demo.step(looks, w)),
    ).x
    seconds = round(time.perf_counter() - started, 2)
    steps.append(demo.step(looks, x))
    names = ("looks_at_all_constraints", "objective", "worst_violation")
    return dict(zip(names, steps[-1], strict=True)) | {"seconds": seconds}


def _draw(path: Path, ways: dict[str, list[Step]], found: dict[str, Any]) -> None:
    """Draw both ways in one picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, steps), colour in zip(ways.items(), COLOURS, strict=True):
        if not steps:
            continue
        looks, objective, worst = np.array(steps).T
        label = f"{name}: {looks[-1]:,.{1 if looks[-1] < 99 else 0}f} looks"
        looks, worst = np.maximum(looks, 1e-2), np.maximum(worst, 1e-6)
        left.plot(looks, objective, ".-", color=colour, label=label)
        right.plot(looks, worst, ".-", color=colour)
    for axes, title in ((left, "Objective"), (right, "Worst violation (cut at 1e-6)")):
        axes.set(title=title, xscale="log", xlabel="looks at all constraints")
        axes.grid(color="#e3e3e8")
    right.set_yscale("log")
    tolerance = found["constraint_tol"]
    right.axhline(tolerance, color="#6E6E6E", lw=1, ls="--")
    right.annotate("tolerance", (10, 1.2 * tolerance), color="#6E6E6E", fontsize=9)
    figure.legend(
        loc="outside upper center",
        ncols=2,
        frameon=False,
        title=f"What an answer costs: {found['constraints']:,} constraints, "
        f"{N_FEATURES} variables",
        title_fontsize=12,
    )
    figure.supxlabel(
        "Each dot is a step. A jump: the step met constraints that were not known yet; "
        "the next ones\nkeep them. A penalty ends lower by violating constraints.",
        fontsize=9,
    )
    figure.savefig(path, dpi=200)


def _figures(
    demo: DemoProblem, result: OptimizeResult, seconds: float
) -> dict[str, Any]:
    m = demo.problem.size.n_constraints
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
        "constraint_tol": result.constraint_tol,
        "seconds": round(seconds, 2),
        "dszog": dszog.__version__,
    }


ROWS = {
    "objective": "{objective:.4f}",
    "worst violation": "{worst_violation:.2g}",
    "looks at all constraints": "{looks_at_all_constraints:,.1f}",
    "seconds": "{seconds}",
}
"""What is said of the figures of each way."""


def _table(found: dict[str, Any]) -> Table:
    ways = {"dszog": found}
    if "usual" in found:
        ways[USUAL] = found["usual"]
    table = Table("", *ways, box=None, padding=(0, 2))
    for name, text in ROWS.items():
        cells = (text.format(**way).removesuffix(".0") for way in ways.values())
        table.add_row(name, *cells)
    return table


def _verdict(found: dict[str, Any]) -> str:
    achieved = "The best point found"
    if found["objective"] == found["objective_at_start"]:
        achieved = "No better point than the start"
    elif found["success"]:
        achieved = "A point that keeps every constraint to within the tolerance"
    looks = found["looks_at_all_constraints"]
    said = (
        f"{achieved} (worst violation {found['worst_violation']:.2g}, all "
        f"{found['constraints']:,} checked; objective {found['objective']:.4f}, from "
        f"{found['objective_at_start']:.4f}) was found for the price of {looks:.1f} "
        "looks at all constraints"
    )
    if "usual" not in found:
        return f"{said}."
    ratio = found["usual"]["looks_at_all_constraints"] / looks
    return f"{said}; the usual way took {ratio:,.0f} times as many."

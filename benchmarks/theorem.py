r"""The paper's theorem, seen: the average of |grad g|^2 falls as the run gets longer.

A smooth problem with known gradients: quadratic losses, discs as constraints, and a
ridge of order one, so that the maximiser p*(w), and with it the gradient of the outer
function g(w) = max_p L(w, p), can be computed exactly at every iterate ::

    python benchmarks/theorem.py

For each number of iterations T the parameters have the orders of the theorem for the
accuracy eps = T^(-1/4): averaging, step and dual step proportional to T^(-1/2). The
theorem's own constants (`DSZOG.from_theorem`) are printed beside: they ask for so many
iterations that only their order can be followed.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import dszog
from dszog.distribution import project_onto_simplex
from dszog.evaluators import Serial
from dszog.methods.theory import TheoremConstants

RESULTS = Path(__file__).parent / "results"
DIM, N_LOSSES, N_CONSTRAINTS = 5, 40, 30
PENALTY, RIDGE = 2.0, 1.0


class SmoothProblem:
    """Quadratic losses around random targets, under random discs."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.targets = rng.normal(1.0, 0.5, size=(N_LOSSES, DIM))
        self.centres = rng.normal(0.0, 0.3, size=(N_CONSTRAINTS, DIM))

    def problem(self) -> dszog.Problem:
        """Return the problem as black boxes."""

        def losses(points: Any, i: Any) -> Any:
            return 0.5 * np.square(points[:, None] - self.targets[i]).mean(axis=2)

        def discs(points: Any, j: Any) -> Any:
            return np.square(points[:, None] - self.centres[j]).mean(axis=2) - 0.3

        return dszog.Problem(
            dszog.Losses(losses, N_LOSSES),
            dszog.Constraints(discs, N_CONSTRAINTS),
            DIM,
        )

    def outer_gradient(self, w: Any) -> Any:
        """Return the gradient of g at `w`."""
        values = np.square(w - self.centres).mean(axis=1) - 0.3
        violations = np.maximum(values, 0.0)
        p = project_onto_simplex(PENALTY * violations**2 / RIDGE)
        slopes = 2.0 * (w - self.centres) / DIM
        gradient = (w - self.targets).mean(axis=0) / DIM
        return gradient + 2.0 * PENALTY * (p * violations) @ slopes


def average_square(n_iterations: int, seed: int) -> float:
    """Return the mean of ``|grad g|^2`` over the iterates of one run."""
    smooth = SmoothProblem()
    problem = smooth.problem()
    rate = n_iterations**-0.5
    method = dszog.DSZOG.as_published(
        penalty=PENALTY,
        dual_ridge=RIDGE,
        step_size=1.0 * rate,
        dual_step_size=1.0 * rate,
        averaging=min(10.0 * rate, 1.0),
        dual_averaging=0.9,
        loss_batch=4,
        constraint_batch=4,
        dual_batch=4,
        n_directions=2,
        radius=1e-4,
    )
    answer = Serial(problem)
    state = method.init(np.full(DIM, 2.0), problem.size, seed)
    squares = []
    while len(squares) < n_iterations:
        queries = method.ask(state)
        state, _ = method.tell(state, queries, answer(queries))
        squares.append(np.square(smooth.outer_gradient(state.x)).sum())
    return float(np.mean(squares))


def draw(lengths: list[int], means: Any, errors: Any, slope: float, path: Path) -> None:
    """Draw the averages against T, with the slope of the theorem."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    axes.errorbar(lengths, means, yerr=errors, marker="o", capsize=3, label="measured")
    reference = means[-1] * np.sqrt(lengths[-1] / np.array(lengths))
    axes.plot(lengths, reference, "--", color="0.5", label="slope -1/2 (theorem)")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("iterations T")
    axes.set_ylabel(r"average of $|\nabla g(w_t)|^2$ over the run")
    axes.set_title(f"The gradient of g vanishes on average (slope {slope:.2f})")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Run all lengths, print and store the averages, draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--longest", type=int, default=25_600)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    lengths = [100 * 4**k for k in range(9) if 100 * 4**k <= arguments.longest]
    table = np.array(
        [[average_square(t, seed) for seed in range(arguments.seeds)] for t in lengths]
    )
    means = table.mean(axis=1)
    errors = table.std(axis=1, ddof=1) / np.sqrt(arguments.seeds)
    slope = float(np.polyfit(np.log(lengths), np.log(means), 1)[0])
    print("| T | average of |grad g|^2 | standard error | T the theorem asks for |")
    print("|---|---|---|---|")
    for t, mean, error in zip(lengths, means, errors, strict=True):
        constants = TheoremConstants(
            accuracy=t**-0.25,
            dim=DIM,
            smoothness=2.0,
            concavity=RIDGE,
            gap=1.0,
            variance=0.1,
            dual_variance=0.1,
        )
        asked = dszog.DSZOG.from_theorem(constants).horizon
        print(f"| {t:,} | {mean:.5f} | {error:.5f} | {asked:.2g} |")
    print(f"slope {slope:.2f} on logarithmic axes; the theorem has -0.5")
    figures = {
        "iterations": lengths,
        "averages": means.tolist(),
        "standard_errors": errors.tolist(),
        "slope": slope,
    }
    (arguments.output / "theorem.json").write_text(json.dumps(figures, indent=1) + "\n")
    draw(lengths, means, errors, slope, arguments.output / "theorem.png")


if __name__ == "__main__":
    main()

"""Small runs of every method, to be killed and resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult

import dszog
from dszog import METHODS, Constraints, Losses, Problem
from dszog.contract.arrays import FloatArray, IntArray
from dszog.methods import FeasibleMethod
from dszog.save.container import pack, unpack

DIM, N, M = 3, 30, 40


class Killed(BaseException):
    """What no handler of the library catches: the process is as good as dead."""


def die_at(n_calls: int) -> Callable[[int], None]:
    """Return what is to be done before a call, if the process shall die in this one."""

    def before(number: int) -> None:
        if number == n_calls:
            raise Killed

    return before


def charged(result: Any) -> int:
    """Return all queries that a run has charged to its budget."""
    costs = result.costs
    return int(result.nfev + result.ncev + costs.n_retried + costs.n_lost)


def change_headers(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what the checkpoints of a folder say of themselves."""
    for path in folder.glob("checkpoint-*"):
        facts, arrays = unpack(path.read_bytes())
        change(facts)
        path.write_bytes(b"".join(pack(facts, arrays)))


@dataclass
class Cell:
    """One method on one form of the same problem."""

    name: str
    method: str
    options: dict[str, Any]
    form: str  # of the constraints: "values", "matrix", "sparse matrix", "jacobian"
    n_calls: int = 0
    before_call: Callable[[int], None] = field(default=lambda n: None)

    def __str__(self) -> str:
        return self.name

    def fresh(self, before_call: Callable[[int], None] = lambda n: None) -> Cell:
        """Return the same for a new process, so to speak."""
        return replace(self, n_calls=0, before_call=before_call)

    def problem(self) -> Problem:
        rng = np.random.Generator(np.random.Philox(key=5))
        centres = rng.normal(1.0, 0.3, (N, DIM))
        rows = rng.normal(size=(M, DIM))
        limits = rows @ np.full(DIM, 0.2) + 0.3

        def values(points: FloatArray, i: IntArray) -> FloatArray:
            self.n_calls += 1
            self.before_call(self.n_calls)
            return np.asarray(((points[:, None, :] - centres[i]) ** 2).sum(axis=2))

        def gradient(point: FloatArray, i: IntArray) -> FloatArray:
            return np.asarray(2.0 * (point - centres[i]))

        def violations(points: FloatArray, j: IntArray) -> FloatArray:
            return np.asarray(points @ rows[j].T - limits[j])

        made: dict[str, Callable[[], Constraints]] = {
            "values": lambda: Constraints(violations, M),
            "matrix": lambda: Constraints.linear(rows, limits),
            "sparse matrix": lambda: Constraints.linear(sparse.csr_array(rows), limits),
            "jacobian": lambda: Constraints(
                violations, M, jacobian=lambda point, j: rows[j]
            ),
        }
        needs_gradient = getattr(METHODS[self.method], "needs_gradient", False)
        return Problem(
            Losses(values, N, gradient=gradient if needs_gradient else None),
            made[self.form](),
            DIM,
            x0=np.full(DIM, 0.1),
            tag="cells",
        )

    def run(self, folder: Path | None = None, **more: Any) -> OptimizeResult:
        settings: dict[str, Any] = {"max_iterations": 12, "seed": 1, "resume": True}
        if folder is None:
            del settings["resume"]
        return dszog.minimize(
            self.problem(),
            method=self.method,
            options=self.options,
            checkpoint=folder,
            **(settings | more),
        )


def cells() -> list[Cell]:
    """Return all methods, each on dense and on sparse data, and what is special."""
    weights: dict[str, dict[str, Any]] = {
        "sparse": {"dual_batch": 8, "radius": 1e-4},  # Algorithm 1: an option of it
        "dense": {"distribution": "dense", "dual_batch": 8},
        "uniform": {"distribution": "uniform"},
        "plain": {"dual_estimate": "plain", "dual_batch": 8},
        "centred": {"dual_estimate": "centred", "dual_batch": 8},
        "slopes": {"dual_batch": 8},
    }
    made = [
        Cell(f"dszog-{name}", "dszog", options, "values")
        for name, options in weights.items()
    ]
    made += [
        Cell(f"sampled_sqp-{form}", "sampled_sqp", {"loss_batch": 6}, form)
        for form in ("values", "jacobian")
    ]
    small: dict[str, Any] = {"loss_batch": 6, "n_directions": 3}
    for name, kind in METHODS.items():
        if not issubclass(kind, FeasibleMethod):
            continue
        options = small | ({"period": 3} if hasattr(kind, "period") else {})
        for form in ("matrix", "sparse matrix"):
            made.append(Cell(f"{name}-{form.split()[0]}", name, options, form))
    made += [
        Cell(f"{name}-{how}", name, small | {"nonconvex": how}, "jacobian")
        for name, how in (("acczomda", "linearise"), ("accszofw", "retract"))
    ]
    return made


CELLS = cells()

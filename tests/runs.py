"""Runs that several files of tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dszog
from dszog import Constraints, ProblemSize, Result, minimize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.kernels.tables import DualStep

ROOT = Path(__file__).parents[1]
Record = Callable[[str, object], None]  # what `record_property` is
# The paper's algorithm: an option of it, here its default, leaves nothing to choose.
by_dszog = partial(minimize, method="dszog", options={"radius": 1e-4})


def size_of(dim: int, n: int = 1, m: int = 0, **more: Any) -> ProblemSize:
    """Return the size of a problem without bounds."""
    nowhere = np.full(dim, np.inf)
    bounds: dict[str, Any] = {"lower": -nowhere, "upper": nowhere}
    return ProblemSize(dim=dim, n_losses=n, n_constraints=m, **bounds | more)


def disc(m: int) -> Constraints:
    """Return half-planes around the unit disc, or nearly: a regular polygon."""

    def values(points: FloatArray, j: IntArray) -> FloatArray:
        angles = 2.0 * np.pi * j / m
        return np.asarray(points @ [np.cos(angles), np.sin(angles)] - 1.0)

    return Constraints(values, m)


def short_run(**changes: Any) -> Result:
    """Run DSZOG on nine half-planes that are all the same."""

    def values(points: FloatArray, indices: IntArray) -> FloatArray:
        return points[:, :1] - 1.0 + 0.0 * indices

    arguments: dict[str, Any] = {"max_iterations": 40, "seed": 0} | changes
    return by_dszog(
        lambda x: float(np.sum((x - 2.0) ** 2)),
        [0.0, 1.0],
        Constraints(values, 9),
        **arguments,
    )


def python(*words: str, **environment: str) -> dict[str, Any]:
    """Return how to start a Python of its own, which finds the library and the tests.

    As arguments of `subprocess.run` or `subprocess.Popen`.
    """
    paths = os.pathsep.join([str(Path(dszog.__file__).parents[1]), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths} | environment
    words = (sys.executable, *words)
    return {"args": words, "env": environment, "cwd": ROOT, "text": True}


def said_by(*words: str, **environment: str) -> str:
    """Return what such a Python prints."""
    start = python(*words, **environment)
    done: subprocess.CompletedProcess[str]
    done = subprocess.run(**start, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def learned(
    weights: Any, indices: IntArray, penalties: FloatArray, step: DualStep, first: bool
) -> Any:
    """Return weights after a step, of which the first estimate is the average."""
    step = step._replace(averaging=1.0) if first else step
    return weights.learn(indices, penalties, step, weights.n_constraints / len(indices))
